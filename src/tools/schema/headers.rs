//! `x-mcp-header`: arguments that clients of 2026-07-28 repeat in HTTP headers, `Mcp-Param-…`.
//!
//! A client refuses a tool with a bad annotation, so one is refused when it is saved.
//! Source: <https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/streamable-http>.

use serde_json::{Map, Value};

use super::SchemaError;

const KEYWORD: &str = "x-mcp-header";
/// Members that map names to schemas; only the first leads to arguments that every call may have.
const NAMED: [&str; 6] =
    ["properties", "$defs", "definitions", "dependencies", "dependentSchemas", "patternProperties"];
/// Members that hold values or names, not schemas.
const VALUES: [&str; 6] = ["default", "const", "enum", "examples", "dependentRequired", "required"];

/// Checks the header annotations of an input schema.
///
/// # Errors
/// [`SchemaError::At`] with the place, what is wrong and what would be right.
pub fn check_headers(input_schema: &Value) -> Result<(), SchemaError> {
    let mut walk = Walk { seen: Vec::new() };
    walk.visit(input_schema, &mut String::new(), Place::Root)
}

/// How a subschema is reached.
#[derive(Clone, Copy, PartialEq)]
enum Place {
    Root,
    /// Through `properties` alone.
    Argument,
    Elsewhere,
}

struct Walk {
    /// The headers so far, in lower case, and where each stands.
    seen: Vec<(String, String)>,
}

impl Walk {
    fn visit(&mut self, schema: &Value, pointer: &mut String, place: Place) -> Result<(), SchemaError> {
        match schema {
            Value::Array(items) => items
                .iter()
                .enumerate()
                .try_for_each(|(index, item)| self.enter(item, pointer, &index.to_string(), Place::Elsewhere)),
            Value::Object(map) => {
                if let Some(header) = map.get(KEYWORD) {
                    self.annotation(map, header, &format!("{pointer}/{KEYWORD}"), place)?;
                }
                map.iter().filter(|(key, _)| !VALUES.contains(&key.as_str())).try_for_each(|(key, inner)| {
                    if !NAMED.contains(&key.as_str()) {
                        return self.enter(inner, pointer, key, Place::Elsewhere);
                    }
                    let leads = key == "properties" && place != Place::Elsewhere;
                    let place = if leads { Place::Argument } else { Place::Elsewhere };
                    self.named(inner, pointer, key, place)
                })
            }
            _ => Ok(()),
        }
    }

    fn named(&mut self, map: &Value, pointer: &mut String, key: &str, place: Place) -> Result<(), SchemaError> {
        let length = pointer.len();
        push(pointer, key);
        let schemas = map.as_object().into_iter().flatten();
        let found = schemas.into_iter().try_for_each(|(name, schema)| self.enter(schema, pointer, name, place));
        pointer.truncate(length);
        found
    }

    fn enter(&mut self, schema: &Value, pointer: &mut String, token: &str, place: Place) -> Result<(), SchemaError> {
        let length = pointer.len();
        push(pointer, token);
        let found = self.visit(schema, pointer, place);
        pointer.truncate(length);
        found
    }

    fn annotation(
        &mut self,
        schema: &Map<String, Value>,
        header: &Value,
        pointer: &str,
        place: Place,
    ) -> Result<(), SchemaError> {
        let refuse =
            |problem: String| Err(SchemaError::At { which: "input_schema", pointer: pointer.to_owned(), problem });
        if place != Place::Argument {
            return refuse(format!(
                "{KEYWORD} may stand only on a property that `properties` alone lead to, not inside items, $defs, anyOf \
                 and the like"
            ));
        }
        let Some(name) = header.as_str().filter(|name| !name.is_empty() && name.bytes().all(is_token)) else {
            return refuse(format!(
                "{header} is no header name; use letters, digits and `-`, such as \"Region\" (sent as Mcp-Param-Region)"
            ));
        };
        if !matches!(schema.get("type").and_then(Value::as_str), Some("string" | "integer" | "boolean")) {
            let got = schema.get("type").map_or_else(|| "no type".to_owned(), Value::to_string);
            return refuse(format!(
                "{KEYWORD} needs \"type\": \"string\", \"integer\" or \"boolean\" beside it, got {got}"
            ));
        }
        let lower = name.to_ascii_lowercase();
        if let Some((_, first)) = self.seen.iter().find(|(other, _)| *other == lower) {
            return refuse(format!("the header {header} is taken by `{first}`; upper and lower case are one"));
        }
        self.seen.push((lower, pointer.to_owned()));
        Ok(())
    }
}

fn push(pointer: &mut String, token: &str) {
    pointer.push('/');
    pointer.push_str(&token.replace('~', "~0").replace('/', "~1"));
}

/// A character of an HTTP token (RFC 9110, section 5.6.2).
fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn refused(properties: Value) -> String {
        check_headers(&json!({"type": "object", "properties": properties})).unwrap_err().to_string()
    }

    #[test]
    fn arguments_of_simple_types_may_have_one_header_each() {
        let inner = json!({"type": "object", "properties": {"id": {"type": "integer", "x-mcp-header": "Id"}}});
        let schema = json!({"type": "object", "properties": {"region": {"type": "string", "x-mcp-header": "Region"},
            "flag": {"type": "boolean", "x-mcp-header": "X-Flag"}, "inner": inner,
            "x-mcp-header": {"type": "array"}, "plain": {"default": {"x-mcp-header": 1}}}});
        assert_eq!(check_headers(&schema), Ok(()));
    }

    #[test]
    fn anything_else_is_refused_with_its_place() {
        for (property, words) in [
            (json!({"type": "string", "x-mcp-header": ""}), "is no header name"),
            (json!({"type": "string", "x-mcp-header": 1}), "is no header name"),
            (json!({"type": "string", "x-mcp-header": "not a token"}), "\"not a token\" is no header name"),
            (json!({"type": "string", "x-mcp-header": "a\r\nb"}), "is no header name"),
            (json!({"type": "string", "x-mcp-header": "Größe"}), "is no header name"),
            (json!({"type": "number", "x-mcp-header": "N"}), "got \"number\""),
            (json!({"type": ["string", "null"], "x-mcp-header": "N"}), "got [\"string\",\"null\"]"),
            (json!({"x-mcp-header": "N"}), "got no type"),
        ] {
            let text = refused(json!({"a/b": property}));
            assert!(text.contains("`/properties/a~1b/x-mcp-header`") && text.contains(words), "{text}");
        }
        let header = json!({"type": "string", "x-mcp-header": "A"});
        for (property, place) in [
            (json!({"type": "array", "items": header}), "/properties/a/items/x-mcp-header"),
            (json!({"anyOf": [header]}), "/properties/a/anyOf/0/x-mcp-header"),
            (json!({"not": {"properties": {"b": header}}}), "/properties/a/not/properties/b/x-mcp-header"),
            (json!({"$defs": {"d": header}}), "/properties/a/$defs/d/x-mcp-header"),
        ] {
            let text = refused(json!({"a": property}));
            assert!(text.contains(place) && text.contains("`properties` alone"), "{text}");
        }
        assert!(check_headers(&json!({"type": "object", "x-mcp-header": "A"})).is_err());
    }

    #[test]
    fn a_header_belongs_to_one_argument() {
        let property = |header: &str| json!({"type": "string", "x-mcp-header": header});
        let nested = json!({"type": "object", "properties": {"c": property("region")}});
        let text = refused(json!({"a": property("Region"), "b": nested}));
        assert!(text.contains("/properties/b/properties/c") && text.contains("`/properties/a/x-mcp-header`"), "{text}");
    }
}
