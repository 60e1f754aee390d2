//! Runs: what happens while a script runs and how it ended.

use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{Block, Json, Limit, NetworkUse, PrincipalId, Timestamp, ToolId, ToolsetId, VersionNumber};

/// A run's id (UUIDv7); serves as `job_id` and `taskId` too.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RunId(pub uuid::Uuid);

impl std::fmt::Display for RunId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

/// The severity of a log message (RFC 5424 words, as MCP uses them), least severe first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogLevel {
    /// Details for the author.
    Debug,
    /// What happens.
    Info,
    /// Worth a look.
    Notice,
    /// Something may be wrong.
    Warning,
    /// Something went wrong.
    Error,
    /// A part fails.
    Critical,
    /// Someone must act now.
    Alert,
    /// Nothing works.
    Emergency,
}

/// One of a process's two output streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Stream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

impl Stream {
    /// The name used in JSON and file names.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Stdout => "stdout",
            Self::Stderr => "stderr",
        }
    }

    /// The stream of that name.
    pub fn parse(text: &str) -> Option<Self> {
        [Self::Stdout, Self::Stderr].into_iter().find(|stream| stream.as_str() == text)
    }
}

/// Something a running script says, in order.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum RunEvent {
    /// `ctx.log(level, data)`.
    Log {
        /// How severe.
        level: LogLevel,
        /// Any JSON value.
        data: Value,
        /// Who speaks, where the script named one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        logger: Option<String>,
    },
    /// `ctx.close_stream()`: the response stream may end before the answer.
    CloseStream,
    /// `ctx.progress(progress, total, message)`.
    Progress {
        /// How far.
        progress: f64,
        /// Of how much.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        total: Option<f64>,
        /// In words.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message: Option<String>,
    },
}

/// What the script handed back over its result descriptor.
#[derive(Clone, Debug, PartialEq)]
pub enum ReturnValue {
    /// `main` returned `None`/`undefined`: what was printed is the text.
    Nothing,
    /// A text.
    Text(String),
    /// Any other JSON value.
    Value(Json),
    /// Content blocks.
    Content(Vec<Block>),
    /// A whole result; what it leaves out is made from the rest, or from what was printed.
    Result {
        /// Content blocks.
        content: Option<Vec<Block>>,
        /// The structured value.
        structured: Option<Json>,
        /// `_meta` of the result.
        meta: Option<Map<String, Value>>,
    },
    /// `raise ToolError(text, data)`.
    ToolError {
        /// Exactly the author's text.
        text: String,
        /// Structured data for the caller.
        data: Option<Json>,
    },
    /// `raise ProtocolError(code, text)`.
    ProtocolError {
        /// The JSON-RPC code.
        code: i32,
        /// The message.
        text: String,
    },
    /// Any other exception.
    Exception(ToolException),
}

/// An uncaught exception of the script.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolException {
    /// The exception's type, such as `ValueError`.
    pub kind: String,
    /// Its message.
    pub message: String,
    /// The frames of the tool's own code, as text, where there are any.
    #[serde(default)]
    pub traceback: String,
}

/// What was captured of one output stream.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Capture {
    /// The first bytes, up to the inline limit, decoded; invalid UTF-8 became U+FFFD.
    pub text: String,
    /// How many bytes the script wrote.
    pub total_bytes: u64,
    /// Whether `text` holds fewer than were written.
    pub truncated: bool,
    /// Where the whole stream was spooled, when it did not fit inline.
    pub spool: Option<PathBuf>,
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", content = "detail", rename_all = "snake_case")]
pub enum Ending {
    /// The script ended well (exit 0, or `main` returned).
    Ok,
    /// `main` raised, or the result could not be used.
    Error,
    /// The process left with this status, not 0.
    Exit(i32),
    /// The process died of this signal.
    Signal(i32),
    /// The wall time was over.
    Timeout,
    /// Somebody cancelled it.
    Cancelled,
    /// A limit was hit.
    Limit(Limit),
    /// The server went away while it ran.
    Interrupted,
}

impl Ending {
    /// The word used in SQL and JSON: `ok`, `error`, `exit`, `signal`, `timeout`, `cancelled`, `limit`, `interrupted`.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Error => "error",
            Self::Exit(_) => "exit",
            Self::Signal(_) => "signal",
            Self::Timeout => "timeout",
            Self::Cancelled => "cancelled",
            Self::Limit(_) => "limit",
            Self::Interrupted => "interrupted",
        }
    }
}

/// How strongly a run was confined.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SandboxLevel {
    /// Namespaces, private root, Landlock, seccomp, limits.
    Full,
    /// Landlock, seccomp and limits in the host's namespaces.
    Landlock,
    /// Nothing but limits.
    None,
}

impl SandboxLevel {
    /// The name used in options, JSON and SQL.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::Landlock => "landlock",
            Self::None => "none",
        }
    }
}

/// What a run used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// From the spawn to the end.
    pub wall: Duration,
    /// CPU time of all its processes.
    pub cpu: Duration,
    /// The most memory seen at once, in bytes.
    pub peak_memory_bytes: u64,
}

/// Everything the runner knows of a run that has ended. A script that fails is an outcome, not an error.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// How it ended.
    pub ending: Ending,
    /// What `main` handed back; `None` in script style, or when it never came to that.
    pub returned: Option<ReturnValue>,
    /// Why the result could not be used ("the tool broke the result protocol"), where that is so.
    pub problem: Option<String>,
    /// Standard output.
    pub stdout: Capture,
    /// Standard error.
    pub stderr: Capture,
    /// What it used.
    pub usage: Usage,
    /// How it was confined.
    pub sandbox: SandboxLevel,
    /// What it did with the network, where it had one.
    pub network: Option<NetworkUse>,
}

/// The JSON-RPC error of a call that has no result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunError {
    /// The code.
    pub code: i32,
    /// The message.
    pub message: String,
}

/// A row of the run history.
#[derive(Clone, Debug, PartialEq)]
pub struct RunRow {
    /// Its id.
    pub id: RunId,
    /// The tool; `None` for a test run of unsaved code.
    pub tool: Option<ToolId>,
    /// The tool's name at that time, or `(unsaved)`.
    pub tool_name: String,
    /// The version that ran; `None` for unsaved code.
    pub version: Option<VersionNumber>,
    /// Whose run it is.
    pub principal: PrincipalId,
    /// The client's name and version, such as `claude-code 2.1`.
    pub client: Option<String>,
    /// Which door it came through: `mcp`, `test`, `rest`, `cli`.
    pub door: String,
    /// The process on the data directory that ran it.
    pub instance: String,
    /// The arguments, a JSON object.
    pub arguments: Json,
    /// What was coerced in the arguments, as JSON pointers.
    pub coerced: Vec<String>,
    /// When it was asked for.
    pub queued_at: Timestamp,
    /// When its process was started.
    pub started_at: Option<Timestamp>,
    /// When it had ended.
    pub ended_at: Option<Timestamp>,
    /// How it ended; `None` while it runs.
    pub ending: Option<Ending>,
    /// Whether the answer was an error.
    pub is_error: bool,
    /// The answer: content, structured value and error flag as MCP's `CallToolResult` JSON.
    pub result: Option<String>,
    /// The JSON-RPC error that the call ended in instead.
    pub error: Option<RunError>,
    /// The standard output, up to the inline limit.
    pub stdout: String,
    /// The standard error, up to the inline limit.
    pub stderr: String,
    /// What the script logged, as JSON lines of [`RunEvent`].
    pub log: String,
    /// CPU milliseconds.
    pub cpu_ms: i64,
    /// The most memory, in bytes.
    pub peak_memory_bytes: i64,
    /// How it was confined.
    pub sandbox: SandboxLevel,
    /// Hash of principal, tool, arguments and the caller's key, where the call had one: a repeated call finds it by this.
    pub idempotency: Option<String>,
    /// How often it was started.
    pub tries: i64,
    /// The run that called it, where one did.
    pub parent: Option<RunId>,
    /// What it did with the network, where it had one.
    pub network: Option<NetworkUse>,
    /// The toolset that it was asked for within.
    pub toolset: Option<ToolsetId>,
}
