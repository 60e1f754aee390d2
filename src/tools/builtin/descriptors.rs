//! What the built-in tools are called, take and promise, in their fixed order.

use serde_json::{Map, Value, json};

use super::super::domain::ListedTool;
use super::content;
use crate::model::Scope;

/// A built-in tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Builtin {
    /// The authoring guide.
    Instructions,
    /// Saves a new tool.
    CreateTool,
    /// Changes a tool.
    UpdateTool,
    /// Shows a tool.
    GetTool,
    /// Searches tools.
    ListTools,
    /// Deletes a tool.
    DeleteTool,
    /// Switches a tool on or off.
    SetEnabled,
    /// Runs unsaved code or a saved version once.
    TestTool,
    /// Calls a saved tool by name.
    CallTool,
    /// Versions and differences.
    ToolHistory,
    /// Returns to a version.
    RollbackTool,
    /// Shows a run.
    GetRun,
    /// Lists runs.
    ListRuns,
    /// Stops a run.
    CancelRun,
    /// The result of a run, in the words of nanoHUB.
    JobResult,
    /// Saves a resource.
    SaveResource,
    /// Saves a prompt.
    SavePrompt,
    /// Saves a skill.
    SaveSkill,
    /// Searches and shows saved content.
    ListContent,
    /// Deletes saved content.
    DeleteContent,
}

impl Builtin {
    /// Every built-in, in the order in which they are listed.
    pub const ALL: [Self; 20] = [
        Self::Instructions,
        Self::CreateTool,
        Self::UpdateTool,
        Self::GetTool,
        Self::ListTools,
        Self::DeleteTool,
        Self::SetEnabled,
        Self::TestTool,
        Self::CallTool,
        Self::ToolHistory,
        Self::RollbackTool,
        Self::GetRun,
        Self::ListRuns,
        Self::CancelRun,
        Self::JobResult,
        Self::SaveResource,
        Self::SavePrompt,
        Self::SaveSkill,
        Self::ListContent,
        Self::DeleteContent,
    ];

    /// The tool's name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Instructions => "omniforge_instructions",
            Self::CreateTool => "omniforge_create_tool",
            Self::UpdateTool => "omniforge_update_tool",
            Self::GetTool => "omniforge_get_tool",
            Self::ListTools => "omniforge_list_tools",
            Self::DeleteTool => "omniforge_delete_tool",
            Self::SetEnabled => "omniforge_set_enabled",
            Self::TestTool => "omniforge_test_tool",
            Self::CallTool => "omniforge_call_tool",
            Self::ToolHistory => "omniforge_tool_history",
            Self::RollbackTool => "omniforge_rollback_tool",
            Self::GetRun => "omniforge_get_run",
            Self::ListRuns => "omniforge_list_runs",
            Self::CancelRun => "omniforge_cancel_run",
            Self::JobResult => "get_job_result",
            Self::SaveResource => "omniforge_save_resource",
            Self::SavePrompt => "omniforge_save_prompt",
            Self::SaveSkill => "omniforge_save_skill",
            Self::ListContent => "omniforge_list_content",
            Self::DeleteContent => "omniforge_delete_content",
        }
    }

    /// The built-in of that name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|builtin| builtin.name() == name)
    }

    /// What a caller needs to see and call it.
    pub fn scope(self) -> Scope {
        match self {
            Self::ListTools | Self::CallTool | Self::GetRun | Self::ListRuns | Self::CancelRun | Self::JobResult => {
                Scope::Call
            }
            _ => Scope::Author,
        }
    }

    /// The entry of `tools/list`.
    pub fn listed(self) -> ListedTool {
        let (title, description) = self.texts();
        let (read_only, destructive, idempotent) = self.hints();
        let annotations = json!({"readOnlyHint": read_only, "destructiveHint": destructive,
            "idempotentHint": idempotent, "openWorldHint": self == Self::CallTool});
        ListedTool {
            name: self.name().to_owned(),
            title: Some(title.to_owned()),
            description: description.to_owned(),
            input_schema: self.input_schema(),
            output_schema: None,
            annotations: annotations.as_object().cloned().unwrap_or_default(),
            icons: Vec::new(),
            meta: None,
        }
    }

    fn texts(self) -> (&'static str, &'static str) {
        match self {
            Self::Instructions => (
                "How to write tools",
                "How to write tools here: the script contract, limits, installed languages, an example each. Read it before the first omniforge_create_tool.",
            ),
            Self::CreateTool => (
                "Create a tool",
                "Saves a script as a tool that can be called at once, in this conversation too. The reply says what was understood and how to call it.",
            ),
            Self::UpdateTool => (
                "Change a tool",
                "Changes the fields that are given, as a new version; the others stay. null takes back what was given before.",
            ),
            Self::GetTool => ("Show a tool", "A tool's definition, code, version and status."),
            Self::ListTools => (
                "Search tools",
                "Searches the saved tools by words and tag, also those that are switched off. Made for catalogues of thousands.",
            ),
            Self::DeleteTool => {
                ("Delete a tool", "Deletes a tool with all its versions. Its runs stay in the history.")
            }
            Self::SetEnabled => {
                ("Switch a tool on or off", "A tool that is off is neither listed nor callable; nothing is lost.")
            }
            Self::TestTool => (
                "Try code once",
                "Runs unsaved code, or a saved version, once with the given arguments; answers with result, output, log and time. Saves nothing.",
            ),
            Self::CallTool => (
                "Call a saved tool",
                "Calls a saved tool by name: for clients whose tool list is fixed when they connect. Where the tool itself is listed, call it directly.",
            ),
            Self::ToolHistory => {
                ("Versions of a tool", "A tool's versions, newest first, and the difference between two of them.")
            }
            Self::RollbackTool => ("Return to a version", "Makes an earlier version serve again, as a new version."),
            Self::GetRun => ("Show a run", "A run's status, result, output and log."),
            Self::ListRuns => ("List runs", "Runs, newest first, by tool and ending."),
            Self::CancelRun => ("Stop a run", "Stops a run and every process it started."),
            Self::JobResult => (
                "Result of a job",
                "The result of a call that was answered with a job_id, or that it is still running.",
            ),
            Self::SaveResource => {
                ("Save a resource", "Saves what clients read under a URI. Replaces what was there, as a new version.")
            }
            Self::SavePrompt => {
                ("Save a prompt", "Saves a prompt that clients offer. Replaces what was there, as a new version.")
            }
            Self::SaveSkill => {
                ("Save a skill", "Saves a SKILL.md with its files. Replaces what was there, as a new version.")
            }
            Self::ListContent => ("Search content", "Searches the saved resources, prompts and skills; shows one."),
            Self::DeleteContent => ("Delete content", "Deletes a resource, prompt or skill with all its versions."),
        }
    }

    /// Read-only, destructive, idempotent.
    fn hints(self) -> (bool, bool, bool) {
        match self {
            Self::Instructions
            | Self::GetTool
            | Self::ListTools
            | Self::ToolHistory
            | Self::GetRun
            | Self::ListRuns
            | Self::JobResult => (true, false, true),
            Self::ListContent => (true, false, true),
            Self::CreateTool => (false, false, false),
            Self::TestTool => (true, false, false),
            Self::UpdateTool | Self::RollbackTool => (false, true, false),
            Self::DeleteTool | Self::CallTool | Self::DeleteContent => (false, true, false),
            Self::SaveResource | Self::SavePrompt | Self::SaveSkill => (false, true, true),
            Self::SetEnabled | Self::CancelRun => (false, true, true),
        }
    }

    fn input_schema(self) -> Value {
        let name = json!({"type": "string", "description": "The tool's name"});
        let run = json!({"type": "string", "description": "The run's id"});
        let version = json!({"type": "integer", "minimum": 1, "description": "A version's number"});
        let limit = json!({"type": "integer", "minimum": 1, "maximum": 200, "default": 50});
        let arguments = json!({"type": "object", "description": "The arguments of the call", "default": {}});
        match self {
            Self::Instructions => closed(json!({}), &[]),
            Self::CreateTool => create_schema(),
            Self::UpdateTool => update_schema(name),
            Self::GetTool => closed(json!({"name": name, "version": version}), &["name"]),
            Self::ListTools => closed(
                json!({"query": {"type": "string", "description": "Words of what it is to do; any of them, in whatever form"},
                    "tag": {"type": "string"}, "limit": limit, "offset": {"type": "integer", "minimum": 0, "default": 0}}),
                &[],
            ),
            Self::DeleteTool => closed(json!({"name": name}), &["name"]),
            Self::SetEnabled => closed(json!({"name": name, "enabled": {"type": "boolean"}}), &["name", "enabled"]),
            Self::TestTool => test_schema(name, version, arguments),
            Self::CallTool => closed(json!({"name": name, "arguments": arguments}), &["name"]),
            Self::ToolHistory => closed(
                json!({"name": name, "from": version, "to": {"type": "integer", "minimum": 1, "description": "Shows the difference from `from` (default: the version before) to this one"}}),
                &["name"],
            ),
            Self::RollbackTool => closed(json!({"name": name, "version": version}), &["name", "version"]),
            Self::JobResult => closed(json!({"job_id": run}), &["job_id"]),
            Self::SaveResource => content::save_resource(),
            Self::SavePrompt => content::save_prompt(),
            Self::SaveSkill => content::save_skill(),
            Self::ListContent => content::list_content(),
            Self::DeleteContent => content::delete_content(),
            Self::GetRun | Self::CancelRun => closed(json!({"run_id": run}), &["run_id"]),
            Self::ListRuns => closed(
                json!({"tool": name, "ending": {"enum": ["ok", "error", "exit", "signal", "timeout", "cancelled", "limit", "interrupted", "running"]},
                    "before": {"type": "string", "description": "Runs older than this run id"}, "limit": limit}),
                &[],
            ),
        }
    }
}

pub(super) fn closed(properties: Value, required: &[&str]) -> Value {
    let mut schema = json!({"type": "object", "properties": properties});
    if !required.is_empty() {
        schema["required"] = json!(required);
    }
    schema["additionalProperties"] = json!(false);
    schema
}

fn strings(description: &str) -> Value {
    json!({"type": "array", "items": {"type": "string"}, "description": description})
}

fn language() -> Value {
    json!({"enum": ["python", "javascript", "typescript", "bash"], "default": "python"})
}

/// The fields that create and update share.
fn fields() -> Map<String, Value> {
    let fields = json!({
        "code": {"type": "string", "description": "Python: define main(a: float, b: str = \"x\"), arguments by name, the return value is the result. Anything else runs as a program: JSON arguments on stdin, stdout is the result."},
        "title": {"type": "string"},
        "description": {"type": "string", "description": "What it does and when to use it; taken from the docstring when left out"},
        "language": language(),
        "dependencies": strings("Requirements such as httpx>=0.27; a `# /// script` block in the code works too"),
        "input_schema": {"type": "object", "description": "JSON Schema of the arguments; inferred from main's signature when left out"},
        "output_schema": {"type": "object", "description": "JSON Schema of the result"},
        "annotations": {"type": "object", "description": "readOnlyHint, destructiveHint, idempotentHint, openWorldHint"},
        "icons": {"type": "array", "items": {"type": "object"}},
        "tags": strings("Words to find it by"),
        "timeout_seconds": {"type": "number", "exclusiveMinimum": 0, "description": "Default 60"},
        "memory_mb": {"type": "integer", "minimum": 16, "description": "Default 512"},
        "network": {"type": ["array", "string"], "items": {"type": "string"}, "description": "Hosts it may reach, such as api.example.com:443 or *.example.org; or \"full\". Needs approval"},
        "secrets": strings("Secrets it may read. Needs approval"),
        "calls": strings("Tools with reach that it calls. Needs approval"),
        "shared_state": {"type": "boolean", "description": "ctx.state with scope=\"tool\". Needs approval"},
        "mode": {"enum": ["auto", "sync", "async"], "default": "auto"},
        "task_required": {"type": "boolean"},
        "retry": {"type": "boolean"},
        "resident": {"enum": [false, true, "shared"]},
        "meta": {"type": "object", "description": "_meta of the listed tool"},
        "strict_arguments": {"type": "boolean", "description": "Refuse \"10\" where a number is wanted"},
        "enabled": {"type": "boolean"},
    });
    fields.as_object().cloned().unwrap_or_default()
}

fn create_schema() -> Value {
    let mut properties = Map::new();
    let name = json!({"type": "string", "description": "A letter, then up to 63 letters, digits, _ or -"});
    properties.insert("name".into(), name);
    properties.extend(fields());
    properties.insert(
        "replace".into(),
        json!({"type": "boolean", "description": "Overwrite a tool of that name (as a new version)"}),
    );
    closed(Value::Object(properties), &["name", "code"])
}

/// The same fields without their descriptions (they stand on create), and `null` where a value can be taken back.
fn update_schema(name: Value) -> Value {
    let mut properties = Map::new();
    properties.insert("name".into(), name);
    for (key, mut field) in fields() {
        if let Some(field) = field.as_object_mut() {
            field.remove("description");
            field.remove("default");
            let nullable =
                ["title", "description", "input_schema", "output_schema", "timeout_seconds", "memory_mb", "meta"];
            if nullable.contains(&key.as_str()) {
                field["type"] = json!([field["type"], "null"]);
            }
        }
        properties.insert(key, field);
    }
    closed(Value::Object(properties), &["name"])
}

fn test_schema(name: Value, version: Value, arguments: Value) -> Value {
    let shared = fields();
    let take = |key: &str| shared.get(key).cloned().unwrap_or_default();
    closed(
        json!({"name": name, "version": version, "code": {"type": "string", "description": "Unsaved code; give either this or name"},
            "language": language(), "dependencies": {"type": "array", "items": {"type": "string"}},
            "input_schema": {"type": "object"}, "output_schema": {"type": "object"},
            "timeout_seconds": take("timeout_seconds"), "memory_mb": take("memory_mb"), "arguments": arguments,
            "learn": {"type": "boolean", "description": "Let nothing out, record what it tries to reach, propose the network entries"}}),
        &[],
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tools::schema;

    #[test]
    fn all_entries_together_stay_small_and_well_formed() {
        let listed: Vec<_> = Builtin::ALL.into_iter().map(Builtin::listed).collect();
        let bytes = serde_json::to_string(&listed).unwrap().len();
        println!("{bytes} bytes");
        assert!(bytes <= 16 * 1024, "{bytes} bytes");
        for tool in &listed {
            schema::compile("input_schema", &tool.input_schema).unwrap();
            assert!(!tool.description.is_empty());
        }
        assert_eq!(listed[0].name, "omniforge_instructions");
        assert_eq!(listed[1].name, "omniforge_create_tool");
    }
}
