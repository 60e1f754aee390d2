//! JSON Schema: what is refused when a tool is saved, and how arguments and results are checked.
//!
//! Schemas are stored and served verbatim; nothing here changes one.

mod budget;
mod coerce;
mod headers;
mod limits;
mod splice;

use std::fmt::Write as _;

use jsonschema::error::ValidationErrorKind;
use jsonschema::{Draft, PatternOptions, ValidationError, Validator};
use serde_json::Value;

pub use budget::within_budget;
pub use coerce::coerce;
pub use headers::check_headers;
pub use splice::splice;

/// The most bytes of a schema's JSON.
const SCHEMA_BYTES: usize = 256 * 1024;
/// How many problems one message lists.
const PROBLEMS_SHOWN: usize = 5;
/// How many characters of a problem are shown: it may quote the whole value.
const PROBLEM_CHARACTERS: usize = 300;

/// Why a schema can't be used.
#[derive(Debug, thiserror::Error, PartialEq)]
pub enum SchemaError {
    /// The root is no object.
    #[error("{which} must be a JSON object (a schema), got {got}")]
    NotObject {
        /// `input_schema` or `output_schema`.
        which: &'static str,
        /// What it is instead.
        got: &'static str,
    },
    /// The root of an input schema must say `"type": "object"`.
    #[error("input_schema must have \"type\": \"object\" at its root (arguments are always an object), got {got}")]
    RootType {
        /// What `type` says instead.
        got: String,
    },
    /// Too many bytes.
    #[error("{which} is {bytes} bytes of JSON; at most {SCHEMA_BYTES} are allowed")]
    TooLarge {
        /// Which schema.
        which: &'static str,
        /// Its size.
        bytes: usize,
    },
    /// Too deep, too many visits, a reference that leaves the document, an unknown dialect.
    #[error("{which} at `{pointer}`: {problem}")]
    At {
        /// Which schema.
        which: &'static str,
        /// Where, as a JSON pointer (empty: the root).
        pointer: String,
        /// What is wrong and what would be right.
        problem: String,
    },
}

/// Checks a schema as it is saved, and compiles it.
///
/// # Errors
/// [`SchemaError`] names the place and what would be right.
pub fn compile(which: &'static str, schema: &Value) -> Result<Validator, SchemaError> {
    let Value::Object(map) = schema else {
        return Err(SchemaError::NotObject { which, got: kind(schema) });
    };
    if which == "input_schema" && map.get("type") != Some(&Value::from("object")) {
        let got = map.get("type").map_or_else(|| "no \"type\"".to_owned(), Value::to_string);
        return Err(SchemaError::RootType { got });
    }
    let bytes = schema.to_string().len();
    if bytes > SCHEMA_BYTES {
        return Err(SchemaError::TooLarge { which, bytes });
    }
    limits::check(which, schema)?;
    build(which, schema)
}

fn build(which: &'static str, schema: &Value) -> Result<Validator, SchemaError> {
    let draft = dialect(which, schema)?;
    jsonschema::options()
        .with_draft(draft)
        .should_validate_formats(true)
        .with_pattern_options(PatternOptions::regex())
        .with_keyword(budget::KEYWORD, |_, _, _| Ok(Box::new(budget::Work)))
        .build(&budget::counted(schema))
        .map_err(|error| SchemaError::At { which, pointer: place(&error), problem: build_problem(&error) })
}

/// An invalid schema is an instance that its meta-schema refuses, so the instance path is the place in the schema.
fn place(error: &ValidationError<'_>) -> String {
    error.instance_path().to_string()
}

fn build_problem(error: &ValidationError<'_>) -> String {
    let text = shorten(&error.to_string());
    match error.kind() {
        ValidationErrorKind::Format { format } if format == "regex" => {
            format!(
                "{text}; patterns with look-around or back-references aren't supported (they can take exponential time)"
            )
        }
        ValidationErrorKind::Referencing(_) => {
            format!("{text}; a `$ref` must point into this document, such as `#/$defs/name`")
        }
        _ => text,
    }
}

fn dialect(which: &'static str, schema: &Value) -> Result<Draft, SchemaError> {
    let Some(named) = schema.get("$schema") else { return Ok(Draft::Draft202012) };
    let text = named.as_str().unwrap_or_default();
    let bare = text.trim_end_matches('#').trim_start_matches("https://").trim_start_matches("http://");
    match bare {
        "json-schema.org/draft/2020-12/schema" => Ok(Draft::Draft202012),
        "json-schema.org/draft/2019-09/schema" => Ok(Draft::Draft201909),
        "json-schema.org/draft-07/schema" => Ok(Draft::Draft7),
        _ => Err(SchemaError::At {
            which,
            pointer: "/$schema".to_owned(),
            problem: format!("the dialect {named} isn't supported; use 2020-12 (the default), 2019-09 or draft-07"),
        }),
    }
}

/// Says what is wrong with the instance: one line a problem, each with pointer, expected and got; `None` when valid.
pub fn problems(validator: &Validator, instance: &Value) -> Option<String> {
    let bytes = instance.to_string().len();
    within_budget(bytes, || listed(validator, instance)).unwrap_or_else(|too_much| Some(format!(" {too_much}")))
}

fn listed(validator: &Validator, instance: &Value) -> Option<String> {
    let mut errors = validator.iter_errors(instance);
    let first = errors.next()?;
    let mut text = String::new();
    for error in std::iter::once(first).chain(errors.by_ref()).take(PROBLEMS_SHOWN) {
        let pointer = error.instance_path().to_string();
        let pointer = if pointer.is_empty() { "the arguments".to_owned() } else { format!("`{pointer}`") };
        let _ = write!(text, "\n- {pointer}: {}{}", shorten(&error.to_string()), got(&error));
    }
    let more = errors.count();
    if more > 0 {
        let _ = write!(text, "\n- and {more} more");
    }
    Some(text)
}

/// Names what was found where the message alone does not.
fn got(error: &ValidationError<'_>) -> String {
    match error.kind() {
        ValidationErrorKind::Type { kind: expected } => {
            let expected = match expected {
                jsonschema::error::TypeKind::Single(one) => one.to_string(),
                jsonschema::error::TypeKind::Multiple(many) => {
                    many.iter().map(|one| one.to_string()).collect::<Vec<_>>().join(" or ")
                }
            };
            format!(" (expected {expected}, got {})", kind(error.instance()))
        }
        _ => String::new(),
    }
}

fn shorten(text: &str) -> String {
    match text.char_indices().nth(PROBLEM_CHARACTERS) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}

/// The JSON type of a value, in JSON Schema's words.
pub fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn refused(schema: Value) -> String {
        compile("input_schema", &schema).unwrap_err().to_string()
    }

    #[test]
    fn a_bad_schema_says_where_and_what_would_be_right() {
        assert!(refused(json!([])).contains("must be a JSON object (a schema), got array"));
        assert!(refused(json!({})).contains("\"type\": \"object\" at its root"));
        assert!(refused(json!({"type": "string"})).contains("got \"string\""));
        let text = refused(json!({"type": "object", "properties": {"a": {"type": "nummer"}}}));
        assert!(text.contains("/properties/a/type"), "{text}");
        let text = refused(json!({"type": "object", "properties": {"a": {"pattern": "(?=x)y"}}}));
        assert!(text.contains("look-around"), "{text}");
        let text = refused(json!({"type": "object", "properties": {"a": {"$ref": "https://example.com/s.json"}}}));
        assert!(text.contains("$ref"), "{text}");
        let text = refused(json!({"$schema": "http://json-schema.org/draft-04/schema#", "type": "object"}));
        assert!(text.contains("/$schema") && text.contains("2020-12"), "{text}");
        let text = refused(json!({"type": "object", "description": "x".repeat(SCHEMA_BYTES)}));
        assert!(text.contains("at most"), "{text}");
    }

    #[test]
    fn problems_name_pointer_expected_and_got() {
        let schema = json!({"type": "object", "properties": {"net": {"type": "number"}}, "required": ["net"],
            "additionalProperties": false});
        let validator = compile("input_schema", &schema).unwrap();
        assert_eq!(problems(&validator, &json!({"net": 1})), None);
        let text = problems(&validator, &json!({"net": "ten"})).unwrap();
        assert!(text.contains("`/net`") && text.contains("expected number, got string"), "{text}");
        assert!(problems(&validator, &json!({})).unwrap().contains("\"net\" is a required property"));
        assert!(problems(&validator, &json!({"net": 1, "x": 2})).unwrap().contains("'x'"));
    }

    #[test]
    fn formats_are_checked() {
        let schema = json!({"type": "object", "properties": {"at": {"type": "string", "format": "date"}}});
        let validator = compile("input_schema", &schema).unwrap();
        assert!(problems(&validator, &json!({"at": "2026-13-01"})).is_some());
    }
}
