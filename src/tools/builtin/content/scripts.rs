//! The scripts of resources and prompts, and the suggestions for their values.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::wrong;
use crate::model::{Completions, ContentDefinition, Mode, Style, ToolDefinition};
use crate::tools::Tools;
use crate::tools::authoring::{self, Draft};
use crate::tools::builtin::Failed;

/// The most fixed values for one argument, and the most bytes of all.
const VALUES: (usize, usize) = (1_000, 256 << 10);

/// The fields about suggestions.
#[derive(Default, Deserialize)]
pub(super) struct CompletionsDraft {
    completions: Option<BTreeMap<String, Vec<String>>>,
    completion_code: Option<String>,
}

/// The field `options`: what is seldom said.
#[derive(Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Options {
    icons: Option<Vec<Value>>,
    meta: Option<Map<String, Value>>,
    dependencies: Option<Vec<String>>,
    timeout_seconds: Option<f64>,
    memory_mb: Option<u64>,
    network: Option<Vec<String>>,
    secrets: Option<Vec<String>>,
    calls: Option<Vec<String>>,
}

impl Options {
    /// Refuses what has no effect on content that no script makes.
    pub(super) fn check_unscripted(&self, draft: &Draft) -> Result<(), Failed> {
        let given = [
            ("input_schema", draft.input_schema.is_some()),
            ("options/dependencies", self.dependencies.is_some()),
            ("options/timeout_seconds", self.timeout_seconds.is_some()),
            ("options/memory_mb", self.memory_mb.is_some()),
            ("options/network", self.network.is_some()),
            ("options/secrets", self.secrets.is_some()),
            ("options/calls", self.calls.is_some()),
        ];
        match given.into_iter().find(|(_, given)| *given) {
            Some((field, _)) => wrong(field, "it is for `code`, and none is given"),
            None => Ok(()),
        }
    }

    /// The draft with these.
    pub(super) fn complete(self, draft: Draft) -> Draft {
        Draft {
            icons: self.icons,
            meta: self.meta.map(Some),
            dependencies: self.dependencies,
            timeout_seconds: self.timeout_seconds.map(Some),
            memory_mb: self.memory_mb.map(Some),
            network: self.network,
            secrets: self.secrets,
            calls: self.calls,
            ..draft
        }
    }
}

/// A script, and what its author should know.
pub(super) struct Script {
    pub(super) definition: ToolDefinition,
    pub(super) understood: Vec<String>,
    pub(super) warnings: Vec<String>,
}

impl Tools {
    /// The script that makes contents; `before` is the one that made them until now. `variables` are the arguments that it gets, where they are known before it is
    /// read; a program, which has no signature, takes exactly them.
    pub(super) async fn content_script(
        &self,
        name: &str,
        draft: Draft,
        variables: Option<&[String]>,
        before: Option<&ToolDefinition>,
    ) -> Result<Script, Failed> {
        let understood = self.understand(name, draft, (None, before)).await?;
        let (mut definition, mut warnings) = (understood.definition, understood.warnings);
        // What `main` returns is read as contents, not as a tool's structured result.
        definition.output_schema = None;
        // Somebody waits for it: it never becomes a handle.
        definition.mode = Mode::Sync;
        if definition.style == Style::Script && definition.inferred.input_schema {
            definition.input_schema = texts(variables.unwrap_or_default());
            warnings.retain(|warning| !warning.starts_with("no input_schema was given"));
        }
        let mut lines =
            vec![format!("Understood: {} in {} style.", definition.language.as_str(), definition.style.as_str())];
        let requirements = authoring::requirements(&definition);
        if !requirements.is_empty() {
            lines.push(format!("Dependencies: {}", requirements.join(", ")));
        }
        Ok(Script { definition, understood: lines, warnings })
    }

    /// The suggestions for these arguments.
    pub(super) async fn content_completions(
        &self,
        given: CompletionsDraft,
        arguments: &[String],
        (language, before): (Option<String>, Option<&ToolDefinition>),
    ) -> Result<Completions, Failed> {
        let values = given.completions.unwrap_or_default();
        if let Some(unknown) = values.keys().find(|name| !arguments.contains(name)) {
            let known = if arguments.is_empty() { "none".to_owned() } else { arguments.join(", ") };
            return wrong("completions", format!("there is no argument `{unknown}`; there is {known}"));
        }
        let bytes: usize = values.values().flatten().map(String::len).sum();
        if values.values().any(|values| values.len() > VALUES.0) || bytes > VALUES.1 {
            let most = format!("at most {} values for an argument and {} bytes in all are allowed", VALUES.0, VALUES.1);
            return wrong("completions", format!("{most}; give `completion_code` instead"));
        }
        let script = match given.completion_code {
            None => None,
            Some(_) if arguments.is_empty() => {
                return wrong("completion_code", "there is no argument whose value it could suggest");
            }
            Some(code) => Some(self.completion_script(code, language, before).await?),
        };
        Ok(Completions { values, script })
    }

    async fn completion_script(
        &self,
        code: String,
        language: Option<String>,
        before: Option<&ToolDefinition>,
    ) -> Result<ToolDefinition, Failed> {
        let draft = Draft { code: Some(code), language, ..Draft::default() };
        let understood = self.understand("completion", draft, (None, before)).await.map_err(|failed| match failed {
            Failed::Refused(text) => Failed::Refused(text.replacen("`code`", "`completion_code`", 1)),
            Failed::Fault(fault) => Failed::Refused(format!("`completion_code`: {fault}")),
            other => other,
        })?;
        let mut definition = understood.definition;
        definition.output_schema = None;
        definition.mode = Mode::Sync;
        let required = definition.input_schema.get("required").and_then(Value::as_array);
        let known = ["argument", "value", "arguments"];
        let unknown = required.into_iter().flatten().filter_map(Value::as_str).find(|name| !known.contains(name));
        match unknown {
            Some(name) => {
                let problem = format!("`main` needs `{name}`; it gets {} and may leave out any", known.join(", "));
                wrong("completion_code", problem)
            }
            None => Ok(definition),
        }
    }
}

/// The script that suggests values.
pub(super) fn suggester(definition: Option<&ContentDefinition>) -> Option<&ToolDefinition> {
    definition?.completions()?.script.as_ref()
}

/// Holds the parameters of a script against the variables that it gets.
pub(super) fn check_parameters(definition: &ToolDefinition, variables: &[String]) -> Result<(), Failed> {
    let schema = &definition.input_schema;
    let properties = schema.get("properties").and_then(Value::as_object);
    let closed = schema.get("additionalProperties") == Some(&Value::Bool(false));
    let knows = |name: &str| properties.is_some_and(|properties| properties.contains_key(name));
    if let Some(variable) = variables.iter().find(|variable| closed && !knows(variable)) {
        return wrong("code", format!("the URI template has `{{{variable}}}`, but `main` has no such parameter"));
    }
    let required = schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
    for name in required {
        if !variables.iter().any(|variable| variable == name) {
            return wrong("code", format!("`main` needs `{name}`, which is no variable of the URI template"));
        }
    }
    Ok(())
}

/// The schema of arguments that are all texts.
pub(super) fn texts(names: &[String]) -> Value {
    let properties: serde_json::Map<String, Value> =
        names.iter().map(|name| (name.clone(), json!({"type": ["string", "array"]}))).collect();
    json!({"type": "object", "properties": properties, "additionalProperties": false})
}
