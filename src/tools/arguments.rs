//! The arguments of a call: an object, held against the tool's schema, coerced where the author's schema allows it.

use std::sync::Arc;

use jsonschema::Validator;
use serde_json::Value;

use super::domain::CallError;
use super::schema;
use crate::model::{CallReply, Fault, Json};

/// Above this many bytes validation runs off the async threads.
const INLINE_BYTES: usize = 64 << 10;

/// The compiled schemas of one version.
#[derive(Debug)]
pub struct Checks {
    /// The input schema, verbatim.
    pub input_schema: Value,
    /// The same, compiled.
    pub input: Validator,
    /// The output schema, compiled, where there is one.
    pub output: Option<Validator>,
}

/// Arguments that may go to the script.
#[derive(Debug)]
pub struct Checked {
    /// The bytes for the script: the caller's own but for what was coerced.
    pub json: Json,
    /// Where something was coerced, as JSON pointers.
    pub coerced: Vec<String>,
}

/// Why the arguments can't be used.
#[derive(Debug, thiserror::Error)]
pub enum ArgumentsError {
    /// Not an object at all: a malformed request.
    #[error("`arguments` must be a JSON object, got {0}")]
    NotObject(&'static str),
    /// JSON that no value can hold: nested too deeply, or a number beyond every double.
    #[error("Arguments can't be read: {0}")]
    Unreadable(String),
    /// An object that the schema refuses: the caller can mend it.
    #[error("Arguments do not match inputSchema:{0}")]
    Mismatch(String),
}

impl ArgumentsError {
    /// What the caller is answered: a malformed request is an error, the rest the tool's own.
    ///
    /// # Errors
    /// [`CallError::InvalidParams`] for a malformed request.
    pub fn answer(self) -> Result<CallReply, CallError> {
        match self {
            Self::NotObject(_) => Err(CallError::InvalidParams(self.to_string())),
            Self::Unreadable(_) | Self::Mismatch(_) => Ok(CallReply::fault(Fault::Arguments, self.to_string())),
        }
    }
}

/// Checks the arguments of a call. `slots` bounds how many large validations run at once.
///
/// # Errors
/// [`ArgumentsError`].
pub async fn check(
    checks: Arc<Checks>,
    given: Option<Json>,
    strict: bool,
    slots: &tokio::sync::Semaphore,
) -> Result<Checked, ArgumentsError> {
    let given = given.unwrap_or_else(Json::empty_object);
    if given.get().len() <= INLINE_BYTES {
        return check_within_budget(&checks, given, strict);
    }
    let _permit = slots.acquire().await;
    let task = tokio::task::spawn_blocking(move || check_within_budget(&checks, given, strict));
    task.await.unwrap_or_else(|_| Err(ArgumentsError::Mismatch(" they could not be checked".to_owned())))
}

fn check_within_budget(checks: &Checks, given: Json, strict: bool) -> Result<Checked, ArgumentsError> {
    let checked = schema::within_budget(given.get().len(), || check_now(checks, given, strict));
    checked.unwrap_or_else(|too_much| Err(ArgumentsError::Mismatch(format!(" {too_much}"))))
}

fn check_now(checks: &Checks, given: Json, strict: bool) -> Result<Checked, ArgumentsError> {
    let mut value = given.to_value().map_err(|error| ArgumentsError::Unreadable(error.to_string()))?;
    if !value.is_object() {
        return Err(ArgumentsError::NotObject(schema::kind(&value)));
    }
    if checks.input.is_valid(&value) {
        return Ok(Checked { json: given, coerced: Vec::new() });
    }
    let coerced = if strict { Vec::new() } else { schema::coerce(&checks.input, &checks.input_schema, &mut value) };
    if let Some(problems) = schema::problems(&checks.input, &value) {
        return Err(ArgumentsError::Mismatch(problems));
    }
    let text = schema::splice(given.get(), &coerced).and_then(|text| Json::parse(text).ok());
    let json = text.ok_or_else(|| ArgumentsError::Mismatch(" they could not be coerced".to_owned()))?;
    Ok(Checked { json, coerced: coerced.into_iter().map(|done| done.pointer).collect() })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    async fn checked(schema: Value, arguments: &str, strict: bool) -> Result<Checked, ArgumentsError> {
        let input = schema::compile("input_schema", &schema).unwrap();
        let checks = Arc::new(Checks { input_schema: schema, input, output: None });
        let given = Json::parse(arguments.to_owned()).unwrap();
        check(checks, Some(given), strict, &tokio::sync::Semaphore::new(1)).await
    }

    #[tokio::test]
    async fn bytes_go_on_as_they_came_but_for_what_was_coerced() {
        let schema =
            json!({"type": "object", "properties": {"n": {"type": "number"}, "l": {"items": {"type": "number"}}}});
        let long = r#"{"n": 3.14159265358979323846264338327950}"#;
        assert_eq!(checked(schema.clone(), long, false).await.unwrap().json.get(), long);
        let given = r#"{"n": "10", "big": 123456789012345678901234567890, "l": [1.00, "2.50"]}"#;
        let coerced = checked(schema.clone(), given, false).await.unwrap();
        let expected = r#"{"n": 10, "big": 123456789012345678901234567890, "l": [1.00, 2.50]}"#;
        assert_eq!((coerced.json.get(), coerced.coerced), (expected, vec!["/n".to_owned(), "/l/1".to_owned()]));
        assert!(checked(schema.clone(), r#"{"n": "10"}"#, true).await.is_err());
        assert!(matches!(checked(schema.clone(), "[1]", false).await, Err(ArgumentsError::NotObject("array"))));
        assert!(matches!(checked(schema, r#"{"n": 1e999}"#, false).await, Err(ArgumentsError::Unreadable(_))));
    }

    #[tokio::test]
    async fn numbers_inside_a_coerced_text_are_kept_too() {
        let schema = json!({"type": "object", "properties": {"o": {"type": "object",
            "properties": {"a": {"type": "integer"}}}}});
        let given = r#"{"o": "{\"a\":\"123456789012345678901234567890\",\"b\":0.10}"}"#;
        let coerced = checked(schema, given, false).await.unwrap();
        assert_eq!(coerced.json.get(), r#"{"o": {"a":123456789012345678901234567890,"b":0.10}}"#);
    }

    #[tokio::test]
    async fn large_arguments_are_checked_too() {
        let schema = json!({"type": "object", "properties": {"s": {"type": "number"}}});
        let text = format!("{{\"s\": \"{}\"}}", "x".repeat(INLINE_BYTES));
        assert!(matches!(checked(schema, &text, false).await, Err(ArgumentsError::Mismatch(_))));
    }
}
