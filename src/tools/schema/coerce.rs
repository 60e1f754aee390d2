//! Arguments that a model sent as the JSON text of a value, where the schema wants the value.

use jsonschema::Validator;
use jsonschema::error::{TypeKind, ValidationErrorKind};
use serde_json::Value;

use super::splice::Replacement;

/// The most values coerced in one call.
const MOST: usize = 64;

/// Replaces each string that is exactly the JSON of a number, boolean, array or object where the schema accepts that
/// and excludes strings (`"10"` becomes `10`; `"ten"` and `"10 "` stay). What doesn't help is left as it was. Returns
/// what was replaced, in order.
pub fn coerce(validator: &Validator, schema: &Value, arguments: &mut Value) -> Vec<Replacement> {
    let mut coerced: Vec<Replacement> = Vec::new();
    while coerced.len() < MOST {
        let next = validator.iter_errors(arguments).find_map(|error| {
            let text = error.instance().as_str()?;
            let wanted = excludes_strings(error.kind(), schema, &error.schema_path().to_string());
            let value = wanted.then(|| parse_exactly(text)).flatten()?;
            let pointer = error.instance_path().to_string();
            let fresh = coerced.iter().all(|done| done.pointer != pointer);
            fresh.then(|| (Replacement { pointer, text: text.to_owned() }, value))
        });
        let Some((next, value)) = next else { break };
        let Some(slot) = arguments.pointer_mut(&next.pointer) else { break };
        let before = std::mem::replace(slot, value);
        let still_wrong =
            validator.iter_errors(arguments).any(|error| error.instance_path().to_string() == next.pointer);
        if still_wrong {
            if let Some(slot) = arguments.pointer_mut(&next.pointer) {
                *slot = before;
            }
            break;
        }
        coerced.push(next);
    }
    coerced
}

fn parse_exactly(text: &str) -> Option<Value> {
    let value: Value = serde_json::from_str(text).ok()?;
    let exact = text.trim() == text;
    (exact && !value.is_string() && !value.is_null()).then_some(value)
}

fn excludes_strings(kind: &ValidationErrorKind, schema: &Value, schema_path: &str) -> bool {
    match kind {
        ValidationErrorKind::Type { kind: TypeKind::Single(one) } => one.to_string() != "string",
        ValidationErrorKind::Type { kind: TypeKind::Multiple(many) } => {
            many.iter().all(|one| one.to_string() != "string")
        }
        ValidationErrorKind::AnyOf { .. } | ValidationErrorKind::OneOfNotValid { .. } => schema
            .pointer(schema_path)
            .and_then(Value::as_array)
            .is_some_and(|branches| branches.iter().all(names_no_string)),
        _ => false,
    }
}

fn names_no_string(branch: &Value) -> bool {
    match branch.get("type") {
        Some(Value::String(one)) => one != "string",
        Some(Value::Array(many)) => many.iter().all(|one| one != "string"),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::compile;
    use super::*;

    fn coerced(property: Value, given: Value) -> (Value, Vec<String>) {
        let schema = json!({"type": "object", "properties": {"a": property}});
        let validator = compile("input_schema", &schema).unwrap();
        let mut arguments = json!({"a": given});
        let list = coerce(&validator, &schema, &mut arguments);
        (arguments["a"].clone(), list.into_iter().map(|done| done.pointer).collect())
    }

    #[test]
    fn json_in_a_string_becomes_the_value_where_strings_are_excluded() {
        assert_eq!(coerced(json!({"type": "number"}), json!("10")), (json!(10), vec!["/a".to_owned()]));
        assert_eq!(coerced(json!({"type": "boolean"}), json!("true")).0, json!(true));
        assert_eq!(coerced(json!({"type": "array"}), json!("[1,2]")).0, json!([1, 2]));
        assert_eq!(coerced(json!({"type": "object"}), json!("{\"k\":1}")).0, json!({"k": 1}));
        let optional = json!({"anyOf": [{"type": "number"}, {"type": "null"}]});
        assert_eq!(coerced(optional, json!("1.5")).0, json!(1.5));
        assert_eq!(coerced(json!({"type": "array", "items": {"type": "integer"}}), json!(["1", "2"])).0, json!([1, 2]));
    }

    #[test]
    fn anything_else_stays() {
        for (property, given) in [
            (json!({"type": "number"}), json!("ten")),
            (json!({"type": "number"}), json!("10 ")),
            (json!({"type": "number"}), json!("true")),
            (json!({"type": "integer", "maximum": 5}), json!("10")),
            (json!({"type": ["number", "string"], "maxLength": 1}), json!("10")),
            (json!({"anyOf": [{"type": "number"}, {"type": "string", "maxLength": 1}]}), json!("10")),
            (json!({"type": "number"}), json!(true)),
        ] {
            assert_eq!(coerced(property, given.clone()), (given, vec![]));
        }
    }
}
