//! Schemas in their plainest form, for clients and model providers that refuse more: no `$schema`, no references, no
//! combinator at the root. What is served may allow more than the tool takes: calls are checked against the real schema.

use serde_json::{Map, Value, json};

/// How deep references are followed.
const DEPTH: usize = 24;
/// The most schemas that a plain one is made of.
const VISITS: usize = 4_000;

/// This schema without what not everybody understands; its root is an object schema.
pub fn portable(schema: &Value) -> Value {
    let mut writer = Writer { root: schema, visits: 0 };
    let mut plain = match writer.write(schema, 0) {
        Value::Object(map) => map,
        _ => Map::new(),
    };
    merge_root(&mut plain);
    plain.insert("type".to_owned(), json!("object"));
    Value::Object(plain)
}

struct Writer<'a> {
    root: &'a Value,
    visits: usize,
}

impl Writer<'_> {
    fn write(&mut self, schema: &Value, depth: usize) -> Value {
        self.visits += 1;
        let Value::Object(map) = schema else { return schema.clone() };
        if depth > DEPTH || self.visits > VISITS {
            return json!({});
        }
        let mut plain = Map::new();
        if let Some(target) = self.target(map) {
            // What stands beside a reference counts too, and says more than what it refers to.
            if let Value::Object(target) = self.write(&target, depth + 1) {
                plain = target;
            }
        }
        for (keyword, value) in map {
            match keyword.as_str() {
                "$schema" | "$id" | "$anchor" | "$dynamicAnchor" | "$recursiveAnchor" | "$vocabulary" | "$comment"
                | "$ref" | "$dynamicRef" | "$recursiveRef" | "$defs" | "definitions" => {}
                "properties" | "patternProperties" | "dependentSchemas" => {
                    plain.insert(keyword.clone(), self.each(value, depth));
                }
                "allOf" | "anyOf" | "oneOf" | "prefixItems" => {
                    plain.insert(keyword.clone(), self.list(value, depth));
                }
                "items" if value.is_array() => {
                    plain.insert(keyword.clone(), self.list(value, depth));
                }
                "items"
                | "additionalProperties"
                | "contains"
                | "not"
                | "if"
                | "then"
                | "else"
                | "propertyNames"
                | "unevaluatedItems"
                | "unevaluatedProperties"
                | "additionalItems" => {
                    plain.insert(keyword.clone(), self.write(value, depth + 1));
                }
                _ => {
                    plain.insert(keyword.clone(), value.clone());
                }
            }
        }
        Value::Object(plain)
    }

    fn each(&mut self, value: &Value, depth: usize) -> Value {
        let Value::Object(map) = value else { return value.clone() };
        Value::Object(map.iter().map(|(name, schema)| (name.clone(), self.write(schema, depth + 1))).collect())
    }

    fn list(&mut self, value: &Value, depth: usize) -> Value {
        let Value::Array(list) = value else { return value.clone() };
        Value::Array(list.iter().map(|schema| self.write(schema, depth + 1)).collect())
    }

    /// What a reference refers to, as far as that is in the document under a pointer; one that isn't says nothing.
    fn target(&self, map: &Map<String, Value>) -> Option<Value> {
        let reference = map.get("$ref")?.as_str()?;
        let pointer = reference.strip_prefix('#')?;
        let pointer = percent_encoding::percent_decode_str(pointer).decode_utf8().ok()?;
        self.root.pointer(&pointer).cloned()
    }
}

/// Takes the combinators away from the root: what all branches of `allOf` say together; of `anyOf` and `oneOf` the
/// properties of each branch, none of them required but by all.
fn merge_root(root: &mut Map<String, Value>) {
    for keyword in ["not", "if", "then", "else", "dependentSchemas", "dependentRequired", "enum", "const"] {
        root.remove(keyword);
    }
    if let Some(Value::Array(branches)) = root.remove("allOf") {
        for mut branch in objects(branches) {
            merge_root(&mut branch);
            require(root, required(&branch));
            adopt(root, branch);
        }
    }
    for keyword in ["anyOf", "oneOf"] {
        let Some(Value::Array(branches)) = root.remove(keyword) else { continue };
        let mut common: Option<Vec<Value>> = None;
        for mut branch in objects(branches) {
            merge_root(&mut branch);
            let needs = required(&branch);
            common = Some(match common {
                None => needs,
                Some(before) => before.into_iter().filter(|name| needs.contains(name)).collect(),
            });
            adopt(root, branch);
        }
        require(root, common.unwrap_or_default());
    }
}

fn objects(branches: Vec<Value>) -> impl Iterator<Item = Map<String, Value>> {
    branches.into_iter().filter_map(|branch| match branch {
        Value::Object(map) => Some(map),
        _ => None,
    })
}

fn required(schema: &Map<String, Value>) -> Vec<Value> {
    schema.get("required").and_then(Value::as_array).cloned().unwrap_or_default()
}

fn require(root: &mut Map<String, Value>, names: Vec<Value>) {
    let mut all = required(root);
    all.extend(names.into_iter().filter(|name| !required(root).contains(name)));
    if !all.is_empty() {
        root.insert("required".to_owned(), Value::Array(all));
    }
}

/// Takes over a branch's properties. A root that was closed stays closed only for names that it knows itself.
fn adopt(root: &mut Map<String, Value>, branch: Map<String, Value>) {
    if let Some(Value::Object(properties)) = branch.get("properties") {
        let own = root.entry("properties").or_insert_with(|| json!({}));
        if let Value::Object(own) = own {
            for (name, schema) in properties {
                own.entry(name.clone()).or_insert_with(|| schema.clone());
            }
        }
    }
    for keyword in ["title", "description"] {
        if let Some(text) = branch.get(keyword) {
            root.entry(keyword).or_insert_with(|| text.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_are_written_out_and_a_circle_ends() {
        let schema = json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema", "$id": "x", "type": "object",
            "properties": {"a": {"$ref": "#/$defs/money", "description": "the price"}, "t": {"$ref": "#/$defs/tree"}},
            "required": ["a"], "$defs": {"money": {"type": "number", "description": "money"},
                "tree": {"type": "object", "properties": {"child": {"$ref": "#/$defs/tree"}}}}
        });
        let plain = portable(&schema);
        let text = plain.to_string();
        assert!(!text.contains('$'), "{text}");
        assert_eq!(plain["properties"]["a"], json!({"type": "number", "description": "the price"}));
        assert_eq!(plain["properties"]["t"]["properties"]["child"]["type"], "object");
        assert_eq!(plain["required"], json!(["a"]));
    }

    #[test]
    fn combinators_leave_the_root_and_stay_below() {
        let schema = json!({"type": "object", "properties": {"x": {"anyOf": [{"type": "string"}, {"type": "null"}]}},
            "allOf": [{"required": ["x"]}, {"$ref": "#/$defs/more"}],
            "oneOf": [{"properties": {"b": {"type": "integer"}, "k": {}}, "required": ["b", "k"]},
                      {"properties": {"c": {}, "k": {}}, "required": ["c", "k"]}],
            "if": {}, "not": {"required": ["z"]},
            "$defs": {"more": {"properties": {"m": {"type": "boolean"}}, "required": ["m"]}}});
        let plain = portable(&schema);
        for keyword in ["allOf", "oneOf", "anyOf", "not", "if", "$defs"] {
            assert!(plain.get(keyword).is_none(), "{keyword}");
        }
        let names: Vec<&String> = plain["properties"].as_object().unwrap().keys().collect();
        assert_eq!(names, ["x", "m", "b", "k", "c"]);
        assert_eq!(plain["required"], json!(["x", "m", "k"]));
        assert!(plain["properties"]["x"]["anyOf"].is_array());
    }

    #[test]
    fn doubling_references_do_not_grow_without_bound() {
        let mut defs = Map::new();
        for number in 0..25 {
            let next = json!({"$ref": format!("#/$defs/d{}", number + 1)});
            defs.insert(format!("d{number}"), json!({"properties": {"a": next.clone(), "b": next}}));
        }
        let schema = json!({"type": "object", "properties": {"a": {"$ref": "#/$defs/d0"}}, "$defs": defs});
        assert!(portable(&schema).to_string().len() < 400_000);
    }
}
