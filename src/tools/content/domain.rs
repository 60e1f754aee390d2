//! Saved content as every door sees it: lists, reads, suggestions, and news of change.

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::{Map, Value};
use tokio::sync::{broadcast, mpsc};
use tokio_util::sync::CancellationToken;

use super::skills::encoded;
use crate::model::{
    Caller, ClientFacts, ContentFile, PrincipalId, PromptArgument, PromptMessage, Resource, RunEvent, RunId, skill_uri,
};
use crate::tools::domain::{Asking, CallError, Resume};

pub use crate::store::Subject;

/// A resource or URI template as its list shows it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ListedResource {
    /// Its URI, or URI template.
    pub uri: String,
    /// Its name for programs.
    pub name: String,
    /// A name for people.
    pub title: Option<String>,
    /// What it is.
    pub description: Option<String>,
    /// Such as `text/plain`.
    pub mime_type: Option<String>,
    /// How many bytes, where that is known before it is read.
    pub size: Option<u64>,
    /// `audience`, `priority`, `lastModified`.
    pub annotations: Map<String, Value>,
    /// Icons.
    pub icons: Vec<Value>,
    /// `_meta`.
    pub meta: Option<Map<String, Value>>,
}

/// A prompt as `prompts/list` shows it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ListedPrompt {
    /// The name to get it by.
    pub name: String,
    /// A name for people.
    pub title: Option<String>,
    /// What it is; never empty.
    pub description: String,
    /// Its arguments, in order.
    pub arguments: Vec<PromptArgument>,
    /// Icons.
    pub icons: Vec<Value>,
    /// `_meta`.
    pub meta: Option<Map<String, Value>>,
}

/// A skill as `skills/list` shows it.
#[derive(Clone, Debug, PartialEq)]
pub struct ListedSkill {
    /// Its name.
    pub name: String,
    /// The front matter of its `SKILL.md`, as JSON.
    pub frontmatter: Map<String, Value>,
    /// All its files, by path.
    pub files: Vec<ContentFile>,
}

impl ListedSkill {
    /// The URI of a file of it.
    pub fn uri(&self, path: &str) -> String {
        skill_uri(&self.name, &encoded(path))
    }
}

/// What one caller sees. Each list is ordered by URI or name, so that a place in it survives writes.
#[derive(Debug, Default)]
pub struct ContentList {
    /// What `resources/list` shows.
    pub resources: Vec<ListedResource>,
    /// What `resources/templates/list` shows.
    pub templates: Vec<ListedResource>,
    /// What `prompts/list` shows.
    pub prompts: Vec<ListedPrompt>,
    /// What `skills/list` shows.
    pub skills: Vec<ListedSkill>,
}

/// The facts about a request that a script may see.
#[derive(Clone, Debug, Default)]
pub struct Asked {
    /// The JSON-RPC id or the door's own, as text.
    pub request_id: String,
    /// The request's `_meta`.
    pub meta: Map<String, Value>,
    /// What the client says of itself.
    pub client: ClientFacts,
    /// Which door: `mcp`, `rest`, `cli`.
    pub door: &'static str,
    /// What a request that was answered with [`Step::Asking`] brings back.
    pub resume: Resume,
}

/// How far a request has come.
#[derive(Clone, Debug, PartialEq)]
pub enum Step<T> {
    /// It is over.
    Done(T),
    /// The script waits for its client.
    Asking(Asking),
}

/// The messages of a prompt.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PromptReply {
    /// What it is.
    pub description: Option<String>,
    /// At least one.
    pub messages: Vec<PromptMessage>,
}

/// What a completion is wanted for.
#[derive(Clone, Debug)]
pub enum CompletionOf {
    /// An argument of this prompt.
    Prompt(String),
    /// A variable of this URI template.
    Resource(String),
}

/// A completion that is wanted.
#[derive(Clone, Debug)]
pub struct CompletionRequest {
    /// Of what.
    pub of: CompletionOf,
    /// The argument or variable.
    pub argument: String,
    /// What was typed so far.
    pub value: String,
    /// The other arguments that are known.
    pub arguments: Map<String, Value>,
}

/// Suggestions, the best first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Completion {
    /// At most 100.
    pub values: Vec<String>,
    /// How many there are in all.
    pub total: usize,
}

/// Why there is no content.
#[derive(Debug, thiserror::Error)]
pub enum ContentError {
    /// No resource of this URI is visible and enabled.
    #[error("Resource not found: `{uri}`")]
    NoResource {
        /// The URI asked for.
        uri: String,
    },
    /// No prompt of this name is visible and enabled.
    #[error("Unknown prompt: `{name}`{}", nearest_hint(nearest))]
    NoPrompt {
        /// The name asked for.
        name: String,
        /// The nearest names that exist.
        nearest: Vec<String>,
    },
    /// The request can't be right.
    #[error("{0}")]
    InvalidParams(String),
    /// The script failed.
    #[error("{text}")]
    Failed {
        /// In the script's own words.
        text: String,
        /// The run that failed.
        run: Option<RunId>,
    },
    /// As with a tool's call.
    #[error(transparent)]
    Call(#[from] CallError),
}

fn nearest_hint(nearest: &[String]) -> String {
    match nearest {
        [] => String::new(),
        names => format!("; did you mean `{}`?", names.join("`, `")),
    }
}

/// Something about content changed that clients are told of. Sent after this process's caches were dropped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ContentChange {
    /// This list is not what it was.
    List {
        /// Whose list; `None`: everybody's.
        owner: Option<PrincipalId>,
        /// Which.
        subject: Subject,
    },
    /// What is read under this URI is not what it was.
    Updated {
        /// Whose resource it is.
        owner: PrincipalId,
        /// Its URI.
        uri: String,
    },
}

/// What the doors need of saved content. The defaults are those of a product without any.
#[async_trait]
pub trait Contents: Send + Sync + 'static {
    /// What this caller may see.
    ///
    /// # Errors
    /// [`CallError::Internal`] when the store fails.
    async fn contents(&self, _caller: &Caller) -> Result<Arc<ContentList>, CallError> {
        Ok(Arc::default())
    }

    /// Reads a resource: its parts, at least one. Events arrive as with a tool's call.
    ///
    /// # Errors
    /// [`ContentError`].
    ///
    /// # Cancellation
    /// `cancel`, or dropping the future, kills the script's run.
    async fn read_resource(
        &self,
        _caller: &Caller,
        (uri, _asked): (String, Asked),
        _events: mpsc::Sender<RunEvent>,
        _cancel: CancellationToken,
    ) -> Result<Step<Vec<Resource>>, ContentError> {
        Err(ContentError::NoResource { uri })
    }

    /// Gets a prompt's messages with these arguments.
    ///
    /// # Errors
    /// [`ContentError`].
    ///
    /// # Cancellation
    /// `cancel`, or dropping the future, kills the script's run.
    async fn get_prompt(
        &self,
        _caller: &Caller,
        (name, _arguments, _asked): (String, Map<String, Value>, Asked),
        _events: mpsc::Sender<RunEvent>,
        _cancel: CancellationToken,
    ) -> Result<Step<PromptReply>, ContentError> {
        Err(ContentError::NoPrompt { name, nearest: Vec::new() })
    }

    /// Suggests values.
    ///
    /// # Errors
    /// [`ContentError`].
    ///
    /// # Cancellation
    /// `cancel`, or dropping the future, kills the script's run.
    async fn complete(
        &self,
        _caller: &Caller,
        (request, _asked): (CompletionRequest, Asked),
        _cancel: CancellationToken,
    ) -> Result<Completion, ContentError> {
        match request.of {
            CompletionOf::Prompt(name) => Err(ContentError::NoPrompt { name, nearest: Vec::new() }),
            CompletionOf::Resource(uri) => Err(ContentError::NoResource { uri }),
        }
    }

    /// News of change, from this process and others on the same data directory.
    fn content_changes(&self) -> broadcast::Receiver<ContentChange> {
        broadcast::channel(1).1
    }
}
