//! How large, deep and entangled a schema may be, before anything compiles it.

use std::collections::HashMap;

use serde_json::Value;

use super::SchemaError;

/// The deepest nesting of a schema.
const DEPTH: usize = 60;
/// The most subschemas visited in one validation with every `$ref` followed.
const VISITS: usize = 10_000;

/// Refuses a schema that is too deep, or that doubles its work with each reference.
///
/// # Errors
/// [`SchemaError::At`] with the place.
pub fn check(which: &'static str, schema: &Value) -> Result<(), SchemaError> {
    if depth(schema) > DEPTH {
        let problem = format!("it is nested deeper than {DEPTH} levels");
        return Err(SchemaError::At { which, pointer: String::new(), problem });
    }
    let mut anchors = HashMap::new();
    collect_anchors(schema, &mut anchors);
    let mut walk = Walk { which, root: schema, anchors, visits: 0, open: Vec::new() };
    walk.visit(schema, String::new())
}

fn depth(value: &Value) -> usize {
    // Values come from a parser that stops at 128 levels, so this recursion is bounded.
    1 + match value {
        Value::Object(map) => map.values().map(depth).max().unwrap_or(0),
        Value::Array(items) => items.iter().map(depth).max().unwrap_or(0),
        _ => 0,
    }
}

fn collect_anchors<'a>(value: &'a Value, anchors: &mut HashMap<&'a str, &'a Value>) {
    match value {
        Value::Object(map) => {
            for key in ["$anchor", "$dynamicAnchor"] {
                if let Some(name) = map.get(key).and_then(Value::as_str) {
                    anchors.insert(name, value);
                }
            }
            map.values().for_each(|inner| collect_anchors(inner, anchors));
        }
        Value::Array(items) => items.iter().for_each(|inner| collect_anchors(inner, anchors)),
        _ => {}
    }
}

struct Walk<'a> {
    which: &'static str,
    root: &'a Value,
    anchors: HashMap<&'a str, &'a Value>,
    visits: usize,
    /// The references being followed: one that comes again is a recursion, whose depth the instance bounds.
    open: Vec<String>,
}

impl<'a> Walk<'a> {
    fn visit(&mut self, schema: &'a Value, pointer: String) -> Result<(), SchemaError> {
        match schema {
            Value::Object(map) => {
                self.count(&pointer)?;
                for key in ["$ref", "$dynamicRef"] {
                    if let Some(target) = map.get(key).and_then(Value::as_str) {
                        self.follow(target, &format!("{pointer}/{key}"))?;
                    }
                }
                for (key, inner) in map {
                    if !matches!(key.as_str(), "$defs" | "definitions" | "enum" | "const" | "default" | "examples") {
                        self.visit(inner, format!("{pointer}/{}", escape(key)))?;
                    }
                }
                Ok(())
            }
            Value::Array(items) => {
                items.iter().enumerate().try_for_each(|(index, inner)| self.visit(inner, format!("{pointer}/{index}")))
            }
            _ => Ok(()),
        }
    }

    fn count(&mut self, pointer: &str) -> Result<(), SchemaError> {
        self.visits += 1;
        if self.visits <= VISITS {
            return Ok(());
        }
        let problem = format!("with every `$ref` followed it has more than {VISITS} subschemas; flatten it");
        Err(SchemaError::At { which: self.which, pointer: pointer.to_owned(), problem })
    }

    fn follow(&mut self, target: &str, pointer: &str) -> Result<(), SchemaError> {
        let Some(fragment) = target.strip_prefix('#') else {
            let problem = format!("`{target}` points outside this document; use `#/$defs/name`");
            return Err(SchemaError::At { which: self.which, pointer: pointer.to_owned(), problem });
        };
        if self.open.iter().any(|open| open == fragment) {
            return Ok(());
        }
        let found = match fragment {
            "" => Some(self.root),
            path if path.starts_with('/') => self.root.pointer(&percent_decode(path)),
            name => self.anchors.get(name).copied(),
        };
        let Some(found) = found else {
            let problem = format!("`{target}` points to nothing in this document");
            return Err(SchemaError::At { which: self.which, pointer: pointer.to_owned(), problem });
        };
        self.open.push(fragment.to_owned());
        let result = self.visit(found, pointer.to_owned());
        self.open.pop();
        result
    }
}

fn escape(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}

fn percent_decode(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut index = 0;
    while index < bytes.len() {
        let hex = (bytes[index] == b'%')
            .then(|| text.get(index + 1..index + 3).and_then(|pair| u8::from_str_radix(pair, 16).ok()))
            .flatten();
        decoded.push(hex.unwrap_or(bytes[index]));
        index += if hex.is_some() { 3 } else { 1 };
    }
    String::from_utf8_lossy(&decoded).into_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn doubling_definitions_are_refused() {
        let mut defs = serde_json::Map::new();
        for n in 0..25 {
            let next = json!({"$ref": format!("#/$defs/d{}", n + 1)});
            defs.insert(format!("d{n}"), json!({"properties": {"a": next, "b": next}}));
        }
        defs.insert("d25".into(), json!({"type": "number"}));
        let schema = json!({"type": "object", "properties": {"x": {"$ref": "#/$defs/d0"}}, "$defs": defs});
        assert!(check("input_schema", &schema).unwrap_err().to_string().contains("flatten"));
    }

    #[test]
    fn recursion_and_anchors_are_fine() {
        let schema = json!({"type": "object", "properties": {"next": {"$ref": "#"}, "a": {"$ref": "#node"}},
            "$defs": {"n": {"$anchor": "node", "type": "string"}}});
        assert_eq!(check("input_schema", &schema), Ok(()));
    }

    #[test]
    fn depth_and_dangling_references_are_refused() {
        let deep = (0..70).fold(json!({}), |inner, _| json!({"not": inner}));
        assert!(check("input_schema", &deep).unwrap_err().to_string().contains("60 levels"));
        let text =
            check("input_schema", &json!({"properties": {"a": {"$ref": "#/$defs/none"}}})).unwrap_err().to_string();
        assert!(text.contains("/properties/a/$ref") && text.contains("points to nothing"), "{text}");
    }
}
