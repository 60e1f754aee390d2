//! One definition from what was given, what stood before and what the code says.

use serde_json::{Value, json};

use super::{Draft, FieldError};
use crate::model::{EnvironmentLock, Inferred, Language, Mode, ToolDefinition, ToolName};
use crate::runner::Inspection;

/// Everything a definition is made from.
pub struct Parts<'a> {
    /// The tool's name; the last resort for a description.
    pub name: &'a str,
    /// What was given now.
    pub draft: &'a Draft,
    /// The version that is changed, where there is one.
    pub before: Option<&'a ToolDefinition>,
    /// The source text that will stand on the version.
    pub code: &'a str,
    /// Its language.
    pub language: Language,
    /// What the code says.
    pub inspection: &'a Inspection,
}

/// A definition, and what the author should know about how it was made.
pub struct Assembled {
    /// The definition; its lock is still to be made.
    pub definition: ToolDefinition,
    /// What was guessed or left open.
    pub warnings: Vec<String>,
}

impl Parts<'_> {
    /// Puts the definition together. `lock` is left empty.
    pub fn assemble(&self) -> Assembled {
        let mut warnings = self.inspection.warnings.clone();
        let (description, description_inferred) = self.description();
        let (input_schema, input_inferred) = self.input_schema(&mut warnings);
        let (output_schema, output_inferred) = self.output_schema();
        let (draft, before) = (self.draft, self.before);
        let definition = ToolDefinition {
            title: match &draft.title {
                Some(title) => title.clone().filter(|title| !title.is_empty()),
                None => before.and_then(|before| before.title.clone()),
            },
            description,
            language: self.language,
            style: self.inspection.style,
            code: self.code.to_owned(),
            dependencies: draft.dependencies.clone().or(before.map(|b| b.dependencies.clone())).unwrap_or_default(),
            code_dependencies: self.inspection.dependencies.clone(),
            inferred: Inferred {
                input_schema: input_inferred,
                output_schema: output_inferred,
                description: description_inferred,
            },
            requires_python: self.inspection.requires_python.clone(),
            input_schema,
            output_schema,
            annotations: draft.annotations.clone().or(before.map(|b| b.annotations.clone())).unwrap_or_default(),
            icons: draft.icons.clone().or(before.map(|b| b.icons.clone())).unwrap_or_default(),
            tags: draft.tags.clone().or(before.map(|b| b.tags.clone())).unwrap_or_default(),
            meta: draft.meta.clone().unwrap_or_else(|| before.and_then(|b| b.meta.clone())),
            timeout_seconds: draft.timeout_seconds.unwrap_or_else(|| before.and_then(|b| b.timeout_seconds)),
            memory_mb: draft.memory_mb.unwrap_or_else(|| before.and_then(|b| b.memory_mb)),
            grants: draft.grants(before.map(|b| b.grants.clone()).unwrap_or_default()),
            mode: draft.mode().or(before.map(|b| b.mode)).unwrap_or_default(),
            task_required: draft.task_required.or(before.map(|b| b.task_required)).unwrap_or_default(),
            retry: draft.retry.or(before.map(|b| b.retry)).unwrap_or_default(),
            strict_arguments: draft.strict_arguments.or(before.map(|b| b.strict_arguments)).unwrap_or(false),
            lock: None::<EnvironmentLock>,
        };
        Assembled { definition, warnings }
    }

    fn description(&self) -> (String, bool) {
        match &self.draft.description {
            Some(Some(text)) if !text.is_empty() => return (text.clone(), false),
            Some(_) => {}
            None => {
                if let Some(before) = self.before.filter(|before| !before.inferred.description) {
                    return (before.description.clone(), false);
                }
            }
        }
        let title = match &self.draft.title {
            Some(title) => title.clone(),
            None => self.before.and_then(|before| before.title.clone()),
        };
        let said = self.inspection.description.as_deref().map(super::clean).filter(|text| !text.is_empty());
        let title = title.filter(|title| !title.is_empty());
        (said.or(title).unwrap_or_else(|| self.name.to_owned()), true)
    }

    fn input_schema(&self, warnings: &mut Vec<String>) -> (Value, bool) {
        match &self.draft.input_schema {
            Some(Some(given)) => return (given.clone(), false),
            Some(None) => {}
            None => {
                if let Some(before) = self.before.filter(|before| !before.inferred.input_schema) {
                    return (before.input_schema.clone(), false);
                }
            }
        }
        let inferred = self.inspection.input_schema.clone().unwrap_or_else(|| {
            warnings.push(
                "no input_schema was given and none can be read from the code: any arguments are accepted".into(),
            );
            json!({"type": "object"})
        });
        (inferred, true)
    }

    fn output_schema(&self) -> (Option<Value>, bool) {
        match &self.draft.output_schema {
            Some(Some(given)) => (Some(given.clone()), false),
            Some(None) => (None, false),
            None => match self.before {
                Some(before) if !before.inferred.output_schema => (before.output_schema.clone(), false),
                _ => (self.inspection.output_schema.clone(), true),
            },
        }
    }
}

/// Holds the mode against what needs one.
///
/// # Errors
/// [`FieldError`] where two fields contradict each other.
pub fn check_mode(definition: &ToolDefinition) -> Result<(), FieldError> {
    let wrong = |field: &'static str, problem: &str| Err(FieldError { field, problem: problem.to_owned() });
    match definition.mode {
        Mode::Sync if definition.task_required => {
            wrong("task_required", "a `sync` tool never becomes a task; use the mode `async` or `auto`")
        }
        Mode::Sync | Mode::Auto if definition.retry => {
            wrong("retry", "only a run that nobody waits for is started again; use the mode `async`")
        }
        _ => Ok(()),
    }
}

/// All requirements of a definition: those of the field, then those of the code that the field doesn't name.
pub fn requirements(definition: &ToolDefinition) -> Vec<String> {
    let mut all = definition.dependencies.clone();
    all.extend(definition.code_dependencies.iter().filter(|code| !definition.dependencies.contains(code)).cloned());
    all
}

/// Parses a tool's name as an author gave it.
///
/// # Errors
/// [`FieldError`] with what is wrong and what would be right.
pub fn tool_name(text: &str) -> Result<ToolName, FieldError> {
    ToolName::parse(text).map_err(|error| FieldError { field: "name", problem: error.to_string() })
}
