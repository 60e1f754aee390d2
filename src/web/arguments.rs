//! A form made from a tool's input schema, and the arguments that it sends.

use serde_json::{Map, Value};

use super::text::Markup;

/// How deep objects nest before they are written as JSON.
const DEEPEST: usize = 4;
/// What stands before the path of a field.
const PREFIX: &str = "a/";

/// What a form was filled with: names and values in order.
pub(super) type Filled = Vec<(String, String)>;

/// The fields of a schema; `given` are the arguments that they show.
pub(super) fn fields(schema: &Value, given: Option<&Value>) -> Markup {
    let mut html = Markup::default();
    let maker = Maker { root: schema };
    maker.members(&mut html, schema, given, (PREFIX, 0));
    html
}

/// The arguments that a filled form means; a raw JSON text stands over all fields.
///
/// # Errors
/// The field, and what is wrong with it.
pub(super) fn arguments(schema: &Value, filled: &Filled) -> Result<String, String> {
    let raw = filled.iter().find(|(name, _)| name == "json").map(|(_, value)| value.trim()).unwrap_or_default();
    if !raw.is_empty() {
        return match serde_json::from_str::<Map<String, Value>>(raw) {
            Ok(_) => Ok(raw.to_owned()),
            Err(error) => Err(format!("The arguments are no JSON object: {error}.")),
        };
    }
    let maker = Maker { root: schema };
    let object = maker.read_members(schema, filled, (PREFIX, 0))?.unwrap_or_default();
    serde_json::to_string(&object).map_err(|error| error.to_string())
}

struct Maker<'a> {
    root: &'a Value,
}

/// What kind of field a schema gets.
enum Kind<'a> {
    Choice(&'a Vec<Value>),
    Flag,
    Number(&'static str),
    Text(&'static str),
    Lines(&'a Value),
    Object,
    Json,
}

impl<'a> Maker<'a> {
    /// The schema behind references and behind "or null"; and whether null is allowed.
    fn settled(&self, schema: &'a Value) -> (&'a Value, bool) {
        let (mut schema, mut nullable) = (schema, false);
        for _ in 0..16 {
            if let Some(pointer) = schema.get("$ref").and_then(Value::as_str).and_then(|text| text.strip_prefix('#')) {
                let Some(target) = self.root.pointer(pointer) else { break };
                schema = target;
                continue;
            }
            let any = ["anyOf", "oneOf"].iter().find_map(|key| schema.get(*key).and_then(Value::as_array));
            let Some(any) = any else { break };
            let others: Vec<&Value> = any.iter().filter(|one| one.get("type") != Some(&Value::from("null"))).collect();
            nullable |= others.len() < any.len();
            let [only] = others.as_slice() else { break };
            schema = only;
        }
        (schema, nullable)
    }

    fn kind(&self, schema: &'a Value, depth: usize) -> Kind<'a> {
        if let Some(values) = schema.get("enum").and_then(Value::as_array).filter(|values| values.len() <= 200) {
            return Kind::Choice(values);
        }
        let named = match schema.get("type") {
            Some(Value::String(name)) => name.as_str(),
            Some(Value::Array(names)) => {
                let mut names = names.iter().filter_map(Value::as_str).filter(|name| *name != "null");
                names.next().filter(|_| names.next().is_none()).unwrap_or_default()
            }
            _ => "",
        };
        match named {
            "boolean" => Kind::Flag,
            "integer" => Kind::Number("1"),
            "number" => Kind::Number("any"),
            "string" => Kind::Text(match schema.get("format").and_then(Value::as_str).unwrap_or_default() {
                "date" => "date",
                "email" => "email",
                "uri" | "url" => "url",
                _ => "text",
            }),
            "array" => {
                let items = schema.get("items").map(|items| self.settled(items).0);
                let scalar = |item: &&Value| matches!(self.kind(item, DEEPEST), Kind::Text(_) | Kind::Number(_));
                items.filter(scalar).map_or(Kind::Json, Kind::Lines)
            }
            "object" if depth < DEEPEST && schema.get("properties").is_some_and(Value::is_object) => Kind::Object,
            _ => Kind::Json,
        }
    }

    fn members(&self, html: &mut Markup, schema: &'a Value, given: Option<&Value>, (path, depth): (&str, usize)) {
        let properties = schema.get("properties").and_then(Value::as_object);
        let required = schema.get("required").and_then(Value::as_array);
        for (name, member) in properties.into_iter().flatten() {
            let is_required = required.is_some_and(|list| list.iter().any(|item| item == name));
            let given = given.and_then(|given| given.get(name));
            self.field(html, (name, member), (is_required, given), (&format!("{path}{}", escaped(name)), depth));
        }
    }

    fn field(
        &self,
        html: &mut Markup,
        (name, outer): (&str, &'a Value),
        (is_required, given): (bool, Option<&Value>),
        (path, depth): (&str, usize),
    ) {
        let (schema, nullable) = self.settled(outer);
        let said = |key: &str| outer.get(key).or_else(|| schema.get(key));
        let shown = given.or_else(|| said("default")).filter(|value| !value.is_null());
        let kind = self.kind(schema, depth);
        if matches!(kind, Kind::Object) {
            html.raw("<fieldset class=\"nest\"><legend><bdi>").text(name).raw("</bdi></legend>");
            self.members(html, schema, shown, (&format!("{path}/"), depth + 1));
            html.raw("</fieldset>");
            return;
        }
        let id = format!("f-{}", path.replace(|c: char| !c.is_ascii_alphanumeric(), "-"));
        let mut words = words(&kind, schema).to_owned();
        words += if nullable { " or nothing" } else { "" };
        words += if is_required { " required" } else { "" };
        html.raw("<div class=\"field\"><label")
            .attribute("for", &id)
            .raw("><bdi>")
            .text(name)
            .raw("</bdi><span class=\"type\">");
        html.text(&words).raw("</span></label>");
        let about = said("description").and_then(Value::as_str).unwrap_or_default();
        let mut common = Markup::default();
        common.attribute("id", &id).attribute("name", path);
        if !about.is_empty() {
            common.attribute("aria-describedby", &format!("{id}-h"));
        }
        control(html, (&kind, schema), &common, (is_required && given.is_none(), shown));
        if !about.is_empty() {
            html.raw("<span class=\"hint\"")
                .attribute("id", &format!("{id}-h"))
                .raw("><bdi>")
                .text(about)
                .raw("</bdi></span>");
        }
        html.raw("</div>");
    }

    fn read_members(
        &self,
        schema: &'a Value,
        filled: &Filled,
        (path, depth): (&str, usize),
    ) -> Result<Option<Map<String, Value>>, String> {
        let mut object = Map::new();
        let required = schema.get("required").and_then(Value::as_array);
        for (name, member) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
            let is_required = required.is_some_and(|list| list.iter().any(|item| item == name));
            let path = format!("{path}{}", escaped(name));
            let (schema, _) = self.settled(member);
            let value = match self.kind(schema, depth) {
                Kind::Object => {
                    let inner = self.read_members(schema, filled, (&format!("{path}/"), depth + 1))?;
                    inner.map(Value::Object).or_else(|| is_required.then(|| Value::Object(Map::new())))
                }
                kind => {
                    let text = filled.iter().find(|(name, _)| *name == path).map(|(_, text)| text.as_str());
                    self.read(&kind, text.unwrap_or_default(), is_required).map_err(|why| format!("{name}: {why}"))?
                }
            };
            if let Some(value) = value {
                object.insert(name.clone(), value);
            }
        }
        Ok(Some(object).filter(|object| !object.is_empty()))
    }

    /// What a field's text means; nothing where it is empty, so that the default holds.
    fn read(&self, kind: &Kind<'_>, text: &str, is_required: bool) -> Result<Option<Value>, String> {
        let text = text.replace("\r\n", "\n");
        let is_text = matches!(kind, Kind::Text(_));
        if text.is_empty() || (!is_text && text.trim().is_empty()) {
            return Ok((is_text && is_required).then(|| Value::String(String::new())));
        }
        let parsed = |text: &str| serde_json::from_str::<Value>(text.trim());
        match kind {
            Kind::Text(_) => Ok(Some(Value::String(text))),
            Kind::Number(_) => match parsed(&text) {
                Ok(value @ Value::Number(_)) => Ok(Some(value)),
                _ => Err(format!("`{text}` is no number")),
            },
            Kind::Lines(items) => {
                let inner = self.kind(items, DEEPEST);
                let lines = text.lines().filter(|line| !line.trim().is_empty());
                let items: Result<Vec<Option<Value>>, String> =
                    lines.map(|line| self.read(&inner, line, true)).collect();
                Ok(Some(Value::Array(items?.into_iter().flatten().collect())))
            }
            Kind::Choice(_) | Kind::Flag | Kind::Json | Kind::Object => match parsed(&text) {
                Ok(value) => Ok(Some(value)),
                Err(error) => Err(format!("this is no JSON: {error}")),
            },
        }
    }
}

/// A member's name within a path.
fn escaped(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

fn words(kind: &Kind<'_>, schema: &Value) -> &'static str {
    match kind {
        Kind::Choice(_) => "one of these",
        Kind::Flag => "yes or no",
        Kind::Number("1") => "integer",
        Kind::Number(_) => "number",
        Kind::Text("date") => "date",
        Kind::Text(_) if schema.get("format").is_some() => "text of a format",
        Kind::Text(_) => "text",
        Kind::Lines(_) => "list, one on a line",
        Kind::Object => "object",
        Kind::Json => "JSON",
    }
}

fn control(
    html: &mut Markup,
    (kind, schema): (&Kind<'_>, &Value),
    common: &Markup,
    (must, shown): (bool, Option<&Value>),
) {
    let required = if must { " required" } else { "" };
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    match kind {
        Kind::Choice(values) => select(html, values, common, shown),
        Kind::Flag => select(html, &vec![Value::Bool(true), Value::Bool(false)], common, shown),
        Kind::Number(step) => {
            html.raw("<input class=\"input num\" type=\"number\" autocomplete=\"off\"").attribute("step", step);
            for (limit, key) in [("min", "minimum"), ("max", "maximum")] {
                if let Some(value) = schema.get(key).filter(|value| value.is_number()) {
                    html.attribute(limit, &value.to_string());
                }
            }
            html.attribute("value", &shown.map(text).unwrap_or_default()).push(common).raw(required).raw(">");
        }
        Kind::Text("text") if shown.map(text).is_some_and(|text| text.contains('\n') || text.len() > 80) => {
            html.raw("<textarea rows=\"3\"").push(common).raw(required).raw(">\n");
            html.text(&shown.map(text).unwrap_or_default()).raw("</textarea>");
        }
        Kind::Text(input) => {
            html.raw("<input class=\"input\" autocomplete=\"off\"").attribute("type", input);
            if let Some(most) = schema.get("maxLength").and_then(Value::as_u64) {
                html.attribute("maxlength", &most.to_string());
            }
            html.attribute("value", &shown.map(text).unwrap_or_default()).push(common).raw(required).raw(">");
        }
        Kind::Lines(_) => {
            let lines =
                shown.and_then(Value::as_array).map(|items| items.iter().map(text).collect::<Vec<_>>().join("\n"));
            html.raw("<textarea rows=\"3\"").push(common).raw(required).raw(">\n");
            html.text(&lines.unwrap_or_default()).raw("</textarea>");
        }
        Kind::Object | Kind::Json => {
            let text = shown.and_then(|value| serde_json::to_string_pretty(value).ok()).unwrap_or_default();
            html.raw("<textarea class=\"mono\" rows=\"3\" spellcheck=\"false\"").push(common).raw(required).raw(">\n");
            html.text(&text).raw("</textarea>");
        }
    }
}

fn select(html: &mut Markup, values: &Vec<Value>, common: &Markup, shown: Option<&Value>) {
    html.raw("<span class=\"pick\"><select").push(common).raw("><option value=\"\">–</option>");
    for value in values {
        html.raw("<option").attribute("value", &value.to_string());
        if shown == Some(value) {
            html.raw(" selected");
        }
        let words = match value {
            Value::Bool(true) => "yes".to_owned(),
            Value::Bool(false) => "no".to_owned(),
            other => other.as_str().map_or_else(|| other.to_string(), str::to_owned),
        };
        html.raw(">").text(&words).raw("</option>");
    }
    html.raw("</select></span>");
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn schema() -> Value {
        json!({"type": "object", "required": ["name", "size"], "$defs": {"Size": {"enum": ["s", "m"]}},
            "properties": {"name": {"type": "string", "description": "<b>who</b>"}, "size": {"$ref": "#/$defs/Size"},
                "when": {"anyOf": [{"type": "string", "format": "date"}, {"type": "null"}], "default": null},
                "many": {"type": "array", "items": {"type": "integer"}}, "flag": {"type": "boolean", "default": true},
                "place": {"type": "object", "properties": {"lat": {"type": "number"}, "a/b": {"type": "string"}}},
                "rest": {"type": "object"}}})
    }

    #[test]
    fn fields_follow_the_schema() {
        let html = fields(&schema(), Some(&json!({"name": "\"x\"", "many": [1, 2]}))).to_string();
        for part in [
            "type=\"date\"",
            "&lt;b&gt;who&lt;/b&gt;",
            "value=\"&quot;x&quot;\"",
            "name=\"a/place/lat\"",
            ">\n1\n2</textarea>",
            "<option value=\"&quot;m&quot;\">m</option>",
            "<option value=\"true\" selected>yes",
            "date or nothing",
        ] {
            assert!(html.contains(part), "{part}: {html}");
        }
    }

    #[test]
    fn a_filled_form_means_arguments() {
        let filled = |pairs: &[(&str, &str)]| {
            let pairs: Filled = pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
            arguments(&schema(), &pairs)
        };
        let sent = filled(&[
            ("a/name", "Nora"),
            ("a/size", "\"m\""),
            ("a/when", ""),
            ("a/many", "3\r\n4\r\n"),
            ("a/place/lat", "5.50"),
            ("a/place/a~1b", "x"),
            ("a/rest", "{\"q\": [1]}"),
        ]);
        let value: Value = serde_json::from_str(&sent.unwrap()).unwrap();
        let place = json!({"lat": 5.5, "a/b": "x"});
        assert_eq!(value, json!({"name": "Nora", "size": "m", "many": [3, 4], "place": place, "rest": {"q": [1]}}));
        assert_eq!(filled(&[("json", "{\"raw\": 1}"), ("a/name", "x")]).unwrap(), "{\"raw\": 1}");
        assert!(filled(&[("json", "[1]")]).unwrap_err().contains("no JSON object"));
        assert!(filled(&[("a/many", "x")]).unwrap_err().contains("many: `x` is no number"));
        assert_eq!(filled(&[]).unwrap(), "{\"name\":\"\"}");
    }
}
