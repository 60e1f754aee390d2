//! Tools and their immutable versions.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{Language, PrincipalId, Style, Timestamp, ToolName};

/// A tool's id (UUIDv7 text). It stays when the tool is renamed or changed.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ToolId(pub String);

/// The number of a version within its tool, from 1.
pub type VersionNumber = i64;

/// Whether a call answers inline (DESIGN §4).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// Inline, becoming a handle when it takes long.
    #[default]
    Auto,
    /// Always inline.
    Sync,
    /// Never inline: a handle, or a task.
    Async,
}

impl Mode {
    /// The mode of that name.
    pub fn parse(name: &str) -> Option<Self> {
        match name {
            "auto" => Some(Self::Auto),
            "sync" => Some(Self::Sync),
            "async" => Some(Self::Async),
            _ => None,
        }
    }
}

/// The reach a version asks for (DESIGN §3). Empty means none.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grants {
    /// Hosts such as `api.example.com:443`, or `full` by itself: the entries of a [`super::Network`].
    #[serde(default)]
    pub network: Vec<String>,
    /// Names of secrets.
    #[serde(default)]
    pub secrets: Vec<String>,
    /// Names of tools with reach that it calls.
    #[serde(default)]
    pub calls: Vec<String>,
    /// State that all callers share.
    #[serde(default, skip_serializing_if = "is_false")]
    pub shared_state: bool,
}

/// Which fields were understood from the code.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Inferred {
    /// The input schema.
    pub input_schema: bool,
    /// The output schema.
    pub output_schema: bool,
    /// The description.
    pub description: bool,
}

/// What the resolver fixed for a version's dependencies.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EnvironmentLock {
    /// The hash of lock, interpreter, platform and flags: the environment directory's name.
    pub hash: String,
    /// The lock file's text (requirements with hashes).
    pub lock: String,
}

/// Everything that stands on a version: what the author gave and what was understood.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolDefinition {
    /// A name for people.
    pub title: Option<String>,
    /// What it does; never empty.
    pub description: String,
    /// What the code is written in.
    pub language: Language,
    /// How the code is called.
    pub style: Style,
    /// The source text.
    pub code: String,
    /// The requirements that the author gave in the field.
    pub dependencies: Vec<String>,
    /// The requirements from the code's own metadata block.
    #[serde(default)]
    pub code_dependencies: Vec<String>,
    /// What was understood from the code rather than given, so that a change of code is understood anew.
    #[serde(default)]
    pub inferred: Inferred,
    /// The `requires-python` specifier.
    pub requires_python: Option<String>,
    /// JSON Schema of the arguments, verbatim or inferred.
    pub input_schema: Value,
    /// JSON Schema of the structured result.
    pub output_schema: Option<Value>,
    /// The author's tool annotations (MCP names).
    pub annotations: Map<String, Value>,
    /// Icons (MCP shape).
    pub icons: Vec<Value>,
    /// Free words to search by.
    pub tags: Vec<String>,
    /// `_meta` of the listed tool.
    pub meta: Option<Map<String, Value>>,
    /// Wall seconds, where not the default.
    pub timeout_seconds: Option<f64>,
    /// Mebibytes of memory, where not the default.
    pub memory_mb: Option<u64>,
    /// The reach it asks for.
    pub grants: Grants,
    /// How calls answer.
    pub mode: Mode,
    /// Only clients with the tasks extension may call it.
    #[serde(default, skip_serializing_if = "is_false")]
    pub task_required: bool,
    /// An asynchronous run that the server's end interrupted is started again.
    #[serde(default, skip_serializing_if = "is_false")]
    pub retry: bool,
    /// Arguments are never coerced.
    pub strict_arguments: bool,
    /// The fixed dependencies; `None` where there are none.
    pub lock: Option<EnvironmentLock>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
fn is_false(flag: &bool) -> bool {
    !flag
}

impl ToolDefinition {
    /// Whether the tool is listed with its output schema. An asynchronous one is not: strict clients refuse a handle as
    /// the result of a tool that lists one.
    pub fn lists_output(&self) -> bool {
        self.output_schema.is_some() && self.mode != Mode::Async
    }
}

/// A tool's row: what may change about it.
#[derive(Clone, Debug, PartialEq)]
pub struct Tool {
    /// Its id.
    pub id: ToolId,
    /// Its name.
    pub name: ToolName,
    /// Whose it is.
    pub owner: PrincipalId,
    /// Whether it is listed and can be called.
    pub enabled: bool,
    /// The version that calls run; `None` while none may serve.
    pub serving_version: Option<VersionNumber>,
    /// The newest version.
    pub latest_version: VersionNumber,
    /// When it was made.
    pub created_at: Timestamp,
    /// When the serving version or the switch changed last; lists are ordered by it.
    pub updated_at: Timestamp,
}

/// One immutable version.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolVersion {
    /// The tool it belongs to.
    pub tool: ToolId,
    /// Its number.
    pub number: VersionNumber,
    /// What it says.
    pub definition: ToolDefinition,
    /// BLAKE3 over the canonical JSON of the definition, hex.
    pub fingerprint: String,
    /// When it was saved.
    pub created_at: Timestamp,
    /// By whom.
    pub created_by: PrincipalId,
    /// What happened: `create`, `update`, `rollback to 3`.
    pub note: String,
}

/// The value's JSON with the keys of every object sorted, without spaces: what fingerprints are taken over.
pub fn canonical_json(value: &Value) -> String {
    fn sort(value: &Value) -> Value {
        match value {
            Value::Object(map) => {
                let mut entries: Vec<_> = map.iter().collect();
                entries.sort_by_key(|(key, _)| key.as_str());
                Value::Object(entries.into_iter().map(|(key, value)| (key.clone(), sort(value))).collect())
            }
            Value::Array(items) => Value::Array(items.iter().map(sort).collect()),
            other => other.clone(),
        }
    }
    sort(value).to_string()
}
