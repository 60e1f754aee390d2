//! What clients will stumble over, and what a change breaks for those who call the tool already.

use serde_json::{Map, Value};

use crate::model::ToolName;

/// Warnings about a schema that some clients are known to refuse or ignore.
pub fn schema_warnings(schema: &Value) -> Vec<String> {
    let mut warnings = Vec::new();
    for keyword in ["anyOf", "oneOf", "allOf", "not", "if"] {
        if schema.get(keyword).is_some() {
            warnings.push(format!(
                "input_schema has `{keyword}` at its root: several model providers refuse that; the server checks it all the same"
            ));
        }
    }
    let text = schema.to_string();
    if text.contains("\"$ref\"") || text.contains("\"$dynamicRef\"") {
        warnings
            .push("input_schema uses `$ref`: some clients don't follow it; write the schema out where you can".into());
    }
    for name in schema.get("properties").and_then(Value::as_object).into_iter().flat_map(Map::keys) {
        let plain = !name.is_empty()
            && name.len() <= 64
            && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-'));
        if !plain {
            warnings.push(format!(
                "the argument `{name}`: some model providers only take names of up to 64 letters, digits, `_`, `.` and `-`"
            ));
        }
    }
    warnings
}

/// A warning where the name folds together with another tool's; `others` are names and how they fold.
pub fn fold_warning(name: &ToolName, others: &[(ToolName, String)]) -> Option<String> {
    let folded = name.folded();
    let (twin, _) = others.iter().find(|(other, others_folded)| other != name && *others_folded == folded)?;
    Some(format!(
        "some clients mount this tool and `{twin}` both as `{folded}` and show only one of them; choose a more distinct name"
    ))
}

/// What a change of the input schema breaks for those who call the tool already.
pub fn breaking_changes(before: &Value, after: &Value) -> Vec<String> {
    let properties = |schema: &Value| schema.get("properties").and_then(Value::as_object).cloned().unwrap_or_default();
    let (old, new) = (properties(before), properties(after));
    let required = |schema: &Value, name: &str| {
        let list = schema.get("required").and_then(Value::as_array);
        list.is_some_and(|list| list.iter().any(|item| item == name))
    };
    let closed = |schema: &Value| schema.get("additionalProperties") == Some(&Value::Bool(false));
    let mut changes = Vec::new();
    for (name, property) in &old {
        match new.get(name) {
            None if closed(after) => changes.push(format!("breaking: the argument `{name}` is gone and now refused")),
            None => changes.push(format!("breaking: the argument `{name}` is gone")),
            Some(now) if now.get("type") != property.get("type") => {
                changes.push(format!("breaking: the argument `{name}` has another type"));
            }
            Some(_) => {}
        }
    }
    for name in new.keys().filter(|name| required(after, name) && !required(before, name)) {
        changes.push(format!("breaking: the argument `{name}` is now required"));
    }
    if closed(after) && !closed(before) {
        changes.push("breaking: other arguments are now refused".into());
    }
    changes
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn breaking_changes_are_told_from_harmless_ones() {
        let before = json!({"properties": {"a": {"type": "number"}, "b": {}}, "required": ["a"]});
        let harmless = json!({"properties": {"a": {"type": "number"}, "b": {}, "c": {}}, "required": []});
        assert!(breaking_changes(&before, &harmless).is_empty());
        let after =
            json!({"properties": {"a": {"type": "string"}, "c": {}}, "required": ["c"], "additionalProperties": false});
        let changes = breaking_changes(&before, &after).join("\n");
        for part in ["`a` has another type", "`b` is gone and now refused", "`c` is now required", "now refused"] {
            assert!(changes.contains(part), "{changes}");
        }
    }

    #[test]
    fn names_that_fold_together_and_odd_schemas_are_warned_of() {
        let name = |text| ToolName::parse(text).unwrap();
        let with_fold = |text| (name(text), name(text).folded());
        assert!(fold_warning(&name("add_vat"), &[with_fold("Add-VAT")]).unwrap().contains("`Add-VAT`"));
        assert_eq!(fold_warning(&name("add_vat"), &[with_fold("add_vat"), with_fold("add_vat2")]), None);
        let odd = json!({"type": "object", "anyOf": [], "properties": {"a b": {"$ref": "#"}}});
        assert_eq!(schema_warnings(&odd).len(), 3);
        assert!(schema_warnings(&json!({"type": "object", "properties": {"a": {}}})).is_empty());
    }
}
