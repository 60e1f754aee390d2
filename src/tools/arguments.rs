//! The arguments of a call: an object, held against the tool's schema, coerced where the author's schema allows it.

use std::sync::Arc;

use jsonschema::Validator;
use serde_json::Value;
use serde_json::value::RawValue;

use super::domain::CallError;
use super::schema;
use crate::model::CallReply;

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
    /// The bytes for the script: the caller's own unless something was coerced.
    pub raw: Box<RawValue>,
    /// The parsed value.
    pub value: Value,
    /// What was coerced.
    pub coerced: schema::Coerced,
}

/// Why the arguments can't be used.
#[derive(Debug, thiserror::Error)]
pub enum ArgumentsError {
    /// Not an object at all: a malformed request.
    #[error("`arguments` must be a JSON object, got {0}")]
    NotObject(&'static str),
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
            Self::Mismatch(_) => Ok(CallReply::error(self.to_string())),
        }
    }
}

/// Checks the arguments of a call. `slots` bounds how many large validations run at once.
///
/// # Errors
/// [`ArgumentsError`].
pub async fn check(
    checks: Arc<Checks>,
    given: Option<Box<RawValue>>,
    strict: bool,
    slots: &tokio::sync::Semaphore,
) -> Result<Checked, ArgumentsError> {
    let raw = match given {
        Some(raw) => raw,
        None => RawValue::from_string("{}".to_owned()).map_err(|_| ArgumentsError::NotObject("nothing"))?,
    };
    if raw.get().len() <= INLINE_BYTES {
        return check_now(&checks, raw, strict);
    }
    let _permit = slots.acquire().await;
    let task = tokio::task::spawn_blocking(move || check_now(&checks, raw, strict));
    task.await.unwrap_or_else(|_| Err(ArgumentsError::Mismatch(" they could not be checked".to_owned())))
}

fn check_now(checks: &Checks, raw: Box<RawValue>, strict: bool) -> Result<Checked, ArgumentsError> {
    let mut value: Value = serde_json::from_str(raw.get()).map_err(|_| ArgumentsError::NotObject("malformed JSON"))?;
    if !value.is_object() {
        return Err(ArgumentsError::NotObject(schema::kind(&value)));
    }
    if checks.input.is_valid(&value) {
        return Ok(Checked { raw, value, coerced: Vec::new() });
    }
    let coerced = if strict { Vec::new() } else { schema::coerce(&checks.input, &checks.input_schema, &mut value) };
    match schema::problems(&checks.input, &value) {
        Some(problems) => Err(ArgumentsError::Mismatch(problems)),
        None => {
            let raw =
                serde_json::value::to_raw_value(&value).map_err(|error| ArgumentsError::Mismatch(error.to_string()))?;
            Ok(Checked { raw, value, coerced })
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    async fn checked(schema: Value, arguments: &str, strict: bool) -> Result<Checked, ArgumentsError> {
        let input = schema::compile("input_schema", &schema).unwrap();
        let checks = Arc::new(Checks { input_schema: schema, input, output: None });
        let raw = RawValue::from_string(arguments.to_owned()).unwrap();
        check(checks, Some(raw), strict, &tokio::sync::Semaphore::new(1)).await
    }

    #[tokio::test]
    async fn bytes_go_on_as_they_came_unless_something_was_coerced() {
        let schema = json!({"type": "object", "properties": {"n": {"type": "number"}}});
        let long = r#"{"n": 3.14159265358979323846264338327950}"#;
        assert_eq!(checked(schema.clone(), long, false).await.unwrap().raw.get(), long);
        let coerced = checked(schema.clone(), r#"{"n": "10"}"#, false).await.unwrap();
        assert_eq!((coerced.raw.get(), coerced.coerced), (r#"{"n":10}"#, vec!["/n".to_owned()]));
        assert!(checked(schema.clone(), r#"{"n": "10"}"#, true).await.is_err());
        assert!(matches!(checked(schema, "[1]", false).await, Err(ArgumentsError::NotObject("array"))));
    }

    #[tokio::test]
    async fn large_arguments_are_checked_too() {
        let schema = json!({"type": "object", "properties": {"s": {"type": "number"}}});
        let text = format!("{{\"s\": \"{}\"}}", "x".repeat(INLINE_BYTES));
        assert!(matches!(checked(schema, &text, false).await, Err(ArgumentsError::Mismatch(_))));
    }
}
