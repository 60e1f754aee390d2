//! Suggestions: from fixed values, from what the schema allows, or from a script.

use serde_json::{Map, Value, json};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::catalog::{Entry, Seen};
use super::domain::{Asked, Completion, CompletionOf, CompletionRequest, ContentError, Step};
use super::script::{Made, Purpose, ScriptCall};
use super::{UriTemplate, nearest, prompts};
use crate::model::{Caller, ToolDefinition};
use crate::tools::Tools;
use crate::tools::attend::Lines;

/// The most values of an answer.
const VALUES: usize = 100;

impl Tools {
    pub(super) async fn suggest(
        &self,
        caller: &Caller,
        (request, asked): (CompletionRequest, Asked),
        cancel: &CancellationToken,
    ) -> Result<Completion, ContentError> {
        let seen = self.seen_content(caller).await?;
        let (entry, arguments) = find(&seen, &request.of)?;
        let argument = request.argument.as_str();
        if !arguments.iter().any(|known| known == argument) {
            let known = if arguments.is_empty() { "none".to_owned() } else { arguments.join(", ") };
            return Err(ContentError::InvalidParams(format!("there is no argument `{argument}`; there is {known}")));
        }
        let definition = &entry.version.definition;
        let Some(completions) = definition.completions() else { return Ok(Completion::default()) };
        if let Some(values) = completions.values.get(argument) {
            return Ok(matching(values.iter().map(String::as_str), &request.value));
        }
        let allowed = definition.script().map(|script| allowed(&script.input_schema, argument)).unwrap_or_default();
        if !allowed.is_empty() {
            return Ok(matching(allowed.iter().map(String::as_str), &request.value));
        }
        let Some(script) = &completions.script else { return Ok(Completion::default()) };
        let arguments = script_arguments(script, &request);
        let call = ScriptCall { entry, script, purpose: Purpose::Completion, arguments, asked };
        let (events, _nobody) = mpsc::channel(1);
        let lines = Lines { events, cancel: cancel.clone() };
        let values = match self.run_script::<Vec<String>>(caller, call, lines).await? {
            Step::Done(Made::Returned(values, _)) => values,
            Step::Done(Made::Printed(text, _)) => text.lines().map(str::to_owned).collect(),
            Step::Asking(asking) => {
                self.live.cancel(asking.run, Some(&caller.principal));
                let text = "a script that suggests values can't ask its client".to_owned();
                return Err(ContentError::Failed { text, run: Some(asking.run) });
            }
        };
        Ok(cut(values))
    }
}

/// The entry, and the arguments that it has.
fn find<'a>(seen: &'a Seen, of: &CompletionOf) -> Result<(&'a Entry, Vec<String>), ContentError> {
    match of {
        CompletionOf::Prompt(name) => {
            let entry = seen.prompts.get(name).ok_or_else(|| {
                let nearest = nearest(name, seen.prompts.keys().map(String::as_str));
                ContentError::NoPrompt { name: name.clone(), nearest }
            })?;
            let arguments = prompts::definition(entry).into_iter().flat_map(|prompt| &prompt.arguments);
            Ok((entry, arguments.map(|argument| argument.name.clone()).collect()))
        }
        CompletionOf::Resource(uri) => {
            let template = seen.templates.iter().find(|(_, entry)| entry.item.name == *uri);
            let found = template.map(|(template, entry)| (entry, names(template)));
            found
                .or_else(|| seen.resources.get(uri).map(|entry| (entry, Vec::new())))
                .ok_or_else(|| ContentError::InvalidParams(format!("there is no resource template `{uri}`")))
        }
    }
}

fn names(template: &UriTemplate) -> Vec<String> {
    template.variables().into_iter().map(str::to_owned).collect()
}

/// Those of `argument`, `value` and `arguments` that the script takes.
fn script_arguments(script: &ToolDefinition, request: &CompletionRequest) -> Map<String, Value> {
    let schema = &script.input_schema;
    let closed = schema.get("additionalProperties") == Some(&Value::Bool(false));
    let taken = |name: &str| !closed || schema.get("properties").and_then(|known| known.get(name)).is_some();
    let all = [
        ("argument", json!(request.argument)),
        ("value", json!(request.value)),
        ("arguments", json!(request.arguments)),
    ];
    all.into_iter().filter(|(name, _)| taken(name)).map(|(name, value)| (name.to_owned(), value)).collect()
}

/// The values that a schema allows for a property, where it lists them.
fn allowed(schema: &Value, property: &str) -> Vec<String> {
    let Some(property) = schema.get("properties").and_then(|properties| properties.get(property)) else {
        return Vec::new();
    };
    let mut values = Vec::new();
    listed(schema, property, &mut values, 0);
    values.iter().map(super::fill::text_of).collect()
}

fn listed(root: &Value, schema: &Value, values: &mut Vec<Value>, depth: usize) {
    if depth > 4 {
        return;
    }
    if let Some(target) = schema.get("$ref").and_then(Value::as_str).and_then(|text| text.strip_prefix('#'))
        && let Some(target) = root.pointer(target)
    {
        listed(root, target, values, depth + 1);
    }
    values.extend(schema.get("enum").and_then(Value::as_array).into_iter().flatten().filter(|v| !v.is_null()).cloned());
    values.extend(schema.get("const").filter(|value| !value.is_null()).cloned());
    if schema.get("type").and_then(Value::as_str) == Some("boolean") {
        values.extend([json!(true), json!(false)]);
    }
    for branch in ["anyOf", "oneOf"] {
        for schema in schema.get(branch).and_then(Value::as_array).into_iter().flatten() {
            listed(root, schema, values, depth + 1);
        }
    }
}

/// Those that begin with what was typed, then those that hold it, in any case.
fn matching<'a>(values: impl Iterator<Item = &'a str>, typed: &str) -> Completion {
    let typed = typed.to_lowercase();
    let (mut first, mut second) = (Vec::new(), Vec::new());
    for value in values {
        match value.to_lowercase().find(&typed) {
            Some(0) => first.push(value.to_owned()),
            Some(_) => second.push(value.to_owned()),
            None => {}
        }
    }
    first.append(&mut second);
    cut(first)
}

fn cut(mut values: Vec<String>) -> Completion {
    let total = values.len();
    values.truncate(VALUES);
    Completion { values, total }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_that_begin_with_it_come_first() {
        let values = ["Berlin", "Paris", "Bergen", "Lemberg"];
        let found = matching(values.into_iter(), "ber");
        assert_eq!(found, Completion { values: ["Berlin", "Bergen", "Lemberg"].map(str::to_owned).into(), total: 3 });
        assert_eq!(matching(values.into_iter(), "").total, 4);
        let many: Vec<String> = (0..250).map(|number| number.to_string()).collect();
        let found = matching(many.iter().map(String::as_str), "");
        assert_eq!((found.values.len(), found.total), (100, 250));
    }

    #[test]
    fn a_schemas_own_values_are_found() {
        let schema = json!({"$defs": {"C": {"enum": ["red", "blue"]}}, "properties": {
            "a": {"$ref": "#/$defs/C"}, "b": {"anyOf": [{"enum": [1, 2]}, {"type": "null"}]}, "c": {"type": "boolean"},
            "d": {"type": "string"}, "e": {"$ref": "#/properties/e"}}});
        for (property, expected) in [
            ("a", vec!["red", "blue"]),
            ("b", vec!["1", "2"]),
            ("c", vec!["true", "false"]),
            ("d", vec![]),
            ("e", vec![]),
            ("f", vec![]),
        ] {
            assert_eq!(allowed(&schema, property), expected, "{property}");
        }
    }
}
