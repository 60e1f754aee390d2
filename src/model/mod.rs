//! The words of the domain: pure types, no I/O. Every other module may use them; they use none.

mod approval;
mod content;
mod identity;
mod json;
mod language;
mod limits;
mod name;
mod network;
mod network_use;
mod run;
mod saved;
mod secret_name;
mod text;
mod tool;
mod toolset;

pub use approval::{Approval, ApprovalState};
pub use content::{Annotations, Audience, Block, CallReply, Content, Fault, Resource};
pub use identity::{Caller, ClientFacts, PrincipalId, Scope, Scopes};
pub use json::Json;
pub use language::{Language, Style};
pub use limits::{Ceilings, Limit, Limits};
pub use name::{NameError, ToolName};
pub use network::{HostPattern, Network, NetworkEntry, NetworkError};
pub use network_use::{NetworkUse, Unreached};
pub use run::{
    Capture, Ending, LogLevel, Outcome, ReturnValue, RunError, RunEvent, RunId, RunRow, SandboxLevel, Stream,
    ToolException, Usage,
};
pub use saved::{
    About, Completions, ContentDefinition, ContentFile, ContentId, ContentItem, ContentKind, ContentVersion,
    PromptArgument, PromptDefinition, PromptMessage, ResourceDefinition, Role, SkillDefinition, skill_uri,
};
pub use secret_name::{SecretNameError, check_secret_name};
pub use text::{is_hidden, visible};
pub use tool::{
    EnvironmentLock, Grants, Inferred, Mode, Tool, ToolDefinition, ToolId, ToolVersion, VersionNumber, canonical_json,
};
pub use toolset::{Holder, Toolset, ToolsetId, ToolsetSettings, check_toolset_name};

/// A moment in UTC, to the millisecond, as milliseconds since the Unix epoch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
#[serde(transparent)]
pub struct Timestamp(pub i64);
