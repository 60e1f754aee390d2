//! The work that one check may take. Two branches of a combinator that lead back to themselves double it with each level of
//! the value, and the library that checks has no limit of its own; so each combinator that is entered is counted, by a
//! keyword that is put beside it in the copy that is compiled.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use jsonschema::{Keyword, ValidationError};
use serde_json::{Map, Value};

/// The keyword's name.
pub(super) const KEYWORD: &str = "x-omniforge-work";
/// How many combinators are entered for any value.
const STEPS: u64 = 20_000;
/// And how many more for each byte of it.
const STEPS_PER_BYTE: u64 = 2;
/// What branches.
const COMBINATORS: [&str; 5] = ["anyOf", "oneOf", "allOf", "not", "if"];
/// What holds schemas by names of its own.
const NAMED: [&str; 5] = ["properties", "patternProperties", "$defs", "definitions", "dependentSchemas"];
/// What holds values, not schemas.
const VALUES: [&str; 5] = ["enum", "const", "default", "examples", "required"];

thread_local! {
    /// What is left to the check that this thread is at.
    static LEFT: Cell<Option<u64>> = const { Cell::new(None) };
}

/// A check that would take too much work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "this value, nested as it is, takes too much work to check against this schema, whose alternatives refer to themselves; \
     nest it less, or let each alternative be told by a `const`"
)]
pub struct TooMuchWork;

/// Does a check of a value of so many bytes, or gives up. What is checked within a check shares its budget.
///
/// # Errors
/// [`TooMuchWork`].
pub fn within_budget<T>(bytes: usize, check: impl FnOnce() -> T) -> Result<T, TooMuchWork> {
    if LEFT.get().is_some() {
        return Ok(check());
    }
    let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
    LEFT.set(Some(STEPS.saturating_add(bytes.saturating_mul(STEPS_PER_BYTE))));
    let done = catch_unwind(AssertUnwindSafe(check));
    LEFT.set(None);
    done.map_err(|payload| match payload.downcast::<TooMuchWork>() {
        Ok(too_much) => *too_much,
        Err(panic) => resume_unwind(panic),
    })
}

/// Counts one step. A library that checks recursively is left at once only by unwinding.
fn step() {
    match LEFT.get() {
        Some(0) => resume_unwind(Box::new(TooMuchWork)),
        Some(left) => LEFT.set(Some(left - 1)),
        None => {}
    }
}

/// The keyword: everything fits it.
pub(super) struct Work;

impl Keyword<'_> for Work {
    fn validate(&self, _: &Value) -> Result<(), ValidationError<'static>> {
        step();
        Ok(())
    }

    fn is_valid(&self, _: &Value) -> bool {
        step();
        true
    }
}

/// The schema with the keyword beside each combinator, before it in the order of keywords.
pub(super) fn counted(schema: &Value) -> Value {
    match schema {
        Value::Object(map) => Value::Object(counted_object(map)),
        Value::Array(items) => items.iter().map(counted).collect(),
        other => other.clone(),
    }
}

fn counted_object(map: &Map<String, Value>) -> Map<String, Value> {
    let mut counted_map = Map::new();
    if COMBINATORS.iter().any(|combinator| map.contains_key(*combinator)) {
        counted_map.insert(KEYWORD.to_owned(), Value::Bool(true));
    }
    for (key, inner) in map {
        let inner = match inner {
            Value::Object(named) if NAMED.contains(&key.as_str()) => {
                named.iter().map(|(name, schema)| (name.clone(), counted(schema))).collect()
            }
            value if VALUES.contains(&key.as_str()) => value.clone(),
            schema => counted(schema),
        };
        counted_map.insert(key.clone(), inner);
    }
    counted_map
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::{compile, problems};
    use super::*;

    fn nested(depth: usize) -> Value {
        (0..depth).fold(json!(5), |inner, _| json!({"a": inner}))
    }

    #[test]
    fn alternatives_that_refer_to_themselves_end_soon() {
        let next = json!({"properties": {"a": {"$ref": "#/$defs/n"}}});
        for combinator in ["anyOf", "oneOf", "allOf"] {
            let node = json!({"type": "object", combinator: [next, next]});
            let schema = json!({"type": "object", "properties": {"a": {"$ref": "#/$defs/n"}}, "$defs": {"n": node}});
            let validator = compile("input_schema", &schema).unwrap();
            assert!(problems(&validator, &nested(4)).is_some_and(|text| !text.contains("too much work")));
            for depth in [20, 40, 100] {
                let text = problems(&validator, &nested(depth)).unwrap();
                assert!(text.contains("too much work"), "{combinator} {depth}: {text}");
            }
        }
    }

    #[test]
    fn long_lists_of_alternatives_are_checked_whole() {
        let item = json!({"anyOf": [{"type": "integer"}, {"type": "string"}]});
        let schema = json!({"type": "object", "properties": {"l": {"type": "array", "items": item}}});
        let validator = compile("input_schema", &schema).unwrap();
        let list: Vec<Value> = (0..50_000).map(|number| json!(number)).collect();
        assert_eq!(problems(&validator, &json!({"l": list})), None);
    }

    #[test]
    fn values_and_properties_of_these_names_stay_as_they_are() {
        let schema =
            json!({"const": {"anyOf": [1]}, "properties": {"anyOf": {"type": "integer"}}, "enum": [{"not": 1}]});
        assert_eq!(counted(&schema), schema);
        assert_eq!(counted(&json!({"anyOf": [true]})), json!({KEYWORD: true, "anyOf": [true]}));
    }

    #[test]
    fn a_panic_is_no_excess_of_work() {
        let caught = catch_unwind(|| within_budget(0, || resume_unwind(Box::new("other"))).map(|(): ()| ()));
        assert_eq!(*caught.unwrap_err().downcast::<&str>().unwrap(), "other");
        assert_eq!(within_budget(0, || 1), Ok(1));
    }
}
