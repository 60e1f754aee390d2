//! The catalogue, the call pipeline and the built-in tools.

mod approvals;
mod arguments;
mod attend;
mod authoring;
mod builtin;
mod catalog;
mod content;
mod continuation;
mod conversation;
mod desk;
mod domain;
mod environment;
mod follow;
mod granted;
mod invoke;
mod nested;
mod overview;
mod questions;
mod repeat;
mod reply;
mod schema;
mod state;
mod tasks;
mod toolsets;
mod turns;
mod within;

use std::collections::HashMap;
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde_json::{Map, Value};
use tokio::sync::{Mutex, Semaphore, broadcast, mpsc};
use tokio_util::sync::CancellationToken;

use crate::clock::Clock;
use crate::jobs::{Gate, LiveRun, LiveRuns};
use crate::lifecycle::Lifecycle;
use crate::model::{CallReply, Caller, Ceilings, Limits, RunEvent, Scope};
use crate::runner::{Environments, Runner};
use crate::store::Store;
use crate::trust::{Approvals, Refusal, Refusals, Sealer, Secrets};

use arguments::Checks;
use attend::Lines;
use builtin::Builtin;
pub use builtin::{IF_MATCH, SAVED, state_tag};
use catalog::{Catalog, Entry};
use content::{ContentCatalog, Notices};
use invoke::Invocation;
use turns::Turns;

pub use authoring::Draft;
pub use content::{
    Asked, Completion, CompletionOf, CompletionRequest, ContentChange, ContentError, ContentList, Contents,
    ListedPrompt, ListedResource, ListedSkill, PromptReply, Step, Subject,
};
pub use desk::{Checked, DeskError, Follow, Glance, RunQuery, RunView, Saved, Spell, ToolQuery, ToolView, Tried, Try};
pub use domain::{
    Answer, Asking, CallError, CallRequest, Change, Domain, Handle, ListedTool, Resume, TaskState, TaskView, ToolList,
};
pub use follow::RunFeed;
pub use overview::ToolState;
pub use toolsets::portable as self_contained;
pub use toolsets::{NamedContent, ToolsetDraft, ToolsetError, ToolsetView, Toolsets};

/// What the tools are made of; `app` wires it.
#[derive(Clone)]
pub struct Parts {
    /// Everything that lasts.
    pub store: Store,
    /// Where scripts run.
    pub runner: Runner,
    /// Where dependencies are installed.
    pub environments: Environments,
    /// Who runs next.
    pub gate: Gate,
    /// What runs now.
    pub live: LiveRuns<RunEnd>,
    /// What waits for a person, and what one has approved.
    pub approvals: Approvals,
    /// What runs with the grant get.
    pub secrets: Secrets,
    /// Where refusals are noted.
    pub refusals: Refusals,
    /// Seals the states of calls that wait for their clients.
    pub states: Sealer,
    /// Time and ids.
    pub clock: Clock,
    /// The tasks that outlive a request.
    pub lifecycle: Lifecycle,
    /// This process's id on the data directory.
    pub instance: String,
    /// Settings.
    pub options: ToolsOptions,
}

/// The settings that calls and saves obey.
#[derive(Clone, Debug)]
pub struct ToolsOptions {
    /// Arguments are never coerced.
    pub strict_arguments: bool,
    /// The limits of a run that asks for nothing.
    pub limits: Limits,
    /// The most that a tool may ask for.
    pub ceilings: Ceilings,
    /// How long a call of an `auto` tool waits before it becomes a handle.
    pub inline_wait: Duration,
    /// Where a person approves, as a URL without the id at its end; `None` where no page is served.
    pub approvals_url: Option<String>,
}

/// What a run ends with.
pub type RunEnd = Arc<invoke::Done>;

/// A run that has not ended.
type Live = Arc<LiveRun<RunEnd>>;

/// The product behind every door. Clones share everything.
#[derive(Clone)]
pub struct Tools {
    inner: Arc<Inner>,
}

/// What a [`Tools`] shares.
pub struct Inner {
    parts: Parts,
    catalog: Catalog,
    contents: ContentCatalog,
    /// What scripts say has changed.
    notices: Notices,
    /// The built-ins' own schemas, compiled.
    builtins: HashMap<Builtin, Arc<Checks>>,
    /// Large validations at once: one a core.
    validations: Semaphore,
    /// Held while a call with an idempotency key looks for its run and starts it.
    repeats: Mutex<()>,
    /// Whose turn it is to change a tool.
    turns: Turns,
}

impl Deref for Tools {
    type Target = Inner;

    fn deref(&self) -> &Inner {
        &self.inner
    }
}

impl Deref for Inner {
    type Target = Parts;

    fn deref(&self) -> &Parts {
        &self.parts
    }
}

impl Tools {
    /// Opens the catalogue and starts watching for other processes' changes.
    ///
    /// # Errors
    /// [`crate::store::StoreError`] when the store can't be read.
    pub async fn open(parts: Parts) -> Result<Self, crate::store::StoreError> {
        let catalog = Catalog::open(parts.store.clone()).await?;
        parts.lifecycle.tasks.spawn(catalog.clone().watch(parts.lifecycle.closing.clone()));
        let contents = ContentCatalog::open(parts.store.clone()).await?;
        parts.lifecycle.tasks.spawn(contents.clone().watch(parts.lifecycle.closing.clone()));
        let mut builtins = HashMap::new();
        for builtin in Builtin::ALL {
            let checks = catalog::compile(builtin.listed().input_schema, None).await;
            builtins.insert(builtin, checks.expect("the built-ins' schemas are constants that a test compiles"));
        }
        let cores = std::thread::available_parallelism().map_or(2, usize::from);
        Ok(Self {
            inner: Arc::new(Inner {
                parts,
                catalog,
                contents,
                notices: Notices::default(),
                builtins,
                validations: Semaphore::new(cores),
                repeats: Mutex::default(),
                turns: Turns::default(),
            }),
        })
    }

    /// Calls a saved tool.
    async fn call_saved(&self, caller: &Caller, request: CallRequest, lines: Lines) -> Result<Answer, CallError> {
        if let Err(refused) = self.may_call(caller, &request.name) {
            return Ok(Answer::Reply(CallReply::error(refused)));
        }
        let entry = match self.find(caller, &request.name).await? {
            Ok(entry) => entry,
            Err(waits) => return Ok(Answer::Reply(CallReply::error(waits))),
        };
        let (tool, definition) = (entry.tool.id, entry.definition);
        if definition.task_required && !tasks::supported(&request.client) {
            return Err(tasks::required(&request.name));
        }
        let checks = self.catalog.checks(&tool, entry.number, &definition).await;
        let checks = checks.map_err(|error| internal("a saved schema can't be compiled", &error))?;
        let strict = self.options.strict_arguments || definition.strict_arguments;
        let arguments = arguments::check(checks.clone(), request.arguments, strict, &self.validations).await;
        let arguments = match arguments {
            Ok(arguments) => arguments,
            Err(error) => return error.answer().map(Answer::Reply),
        };
        let lists_output = definition.lists_output();
        let invocation = Invocation {
            caller: caller.clone(),
            version: Some((tool, entry.number)),
            name: request.name,
            content: None,
            definition,
            checks,
            arguments,
            client: request.client,
            door: request.door,
            request_id: request.request_id,
            depth: 0,
            parent: None,
            idempotency: None,
            learn: None,
            meta: request.meta,
        };
        let attended = self.attend(invocation, request.resume, lines).await?;
        self.answer(attended, lists_output)
    }

    /// Whether the caller may run what is saved.
    ///
    /// # Errors
    /// What is missing, in words; it is noted.
    fn may_call(&self, caller: &Caller, what: &str) -> Result<(), String> {
        if caller.scopes.has(Scope::Call) {
            return Ok(());
        }
        let reason = "this needs the scope `call`, which the credential does not carry".to_owned();
        self.refusals.note(Refusal::of(caller, "scope.refused", what, reason.clone()));
        Err(reason)
    }

    /// A tool that serves; or why it doesn't, where it waits for a person.
    async fn find(&self, caller: &Caller, name: &str) -> Result<Result<Entry, String>, CallError> {
        let seen = self.catalog.seen(caller).await.map_err(|error| internal("the catalogue can't be read", &error))?;
        if let Some(entry) = seen.entries.get(name) {
            return Ok(Ok(entry.clone()));
        }
        let waits = self.waits_unserved(caller, name).await?;
        waits.map(Err).ok_or_else(|| CallError::UnknownTool {
            name: name.to_owned(),
            nearest: nearest(name, seen.list.tools.iter().map(|tool| tool.name.as_str())),
        })
    }
}

#[async_trait]
impl Domain for Tools {
    async fn list(&self, caller: &Caller) -> Result<Arc<ToolList>, CallError> {
        let seen = self.catalog.seen(caller).await.map_err(|error| internal("the catalogue can't be read", &error))?;
        if !caller.scopes.has(Scope::Call) {
            return Ok(Arc::new(without_saved(&seen.list)));
        }
        Ok(seen.list.clone())
    }

    async fn call(
        &self,
        caller: &Caller,
        request: CallRequest,
        events: mpsc::Sender<RunEvent>,
        cancel: CancellationToken,
    ) -> Result<Answer, CallError> {
        if self.lifecycle.closing.is_cancelled() {
            return Ok(Answer::Reply(CallReply::error("the server is shutting down; call again in a moment")));
        }
        let lines = Lines { events, cancel };
        let work = async {
            match Builtin::named(&request.name) {
                Some(builtin) if caller.scopes.has(builtin.scope()) => {
                    self.call_builtin(builtin, caller, request, lines).await
                }
                Some(builtin) => {
                    let reason = format!("this needs the scope `{}`", builtin.scope().as_str());
                    self.refusals.note(Refusal::of(caller, "scope.refused", &request.name, reason));
                    self.call_saved(caller, request, lines).await
                }
                None => self.call_saved(caller, request, lines).await,
            }
        };
        tokio::select! {
            answer = work => answer,
            // Runs end before that; what remains is work without one, such as the building of an environment.
            () = self.lifecycle.overdue() => {
                Ok(Answer::Reply(CallReply::error("the server stopped before this was done\n[cancelled]")))
            }
        }
    }

    async fn task(&self, caller: &Caller, id: &str) -> Result<TaskView, CallError> {
        self.task_view(caller, id).await
    }

    async fn task_changed(&self, caller: &Caller, view: &TaskView) -> Result<TaskView, CallError> {
        self.task_view_after(caller, view).await
    }

    async fn answer_task(&self, caller: &Caller, id: &str, answers: Map<String, Value>) -> Result<(), CallError> {
        self.answer_questions(caller, id, &answers).await
    }

    async fn cancel_task(&self, caller: &Caller, id: &str) -> Result<(), CallError> {
        self.stop_task(caller, id).await
    }

    fn changes(&self) -> broadcast::Receiver<Change> {
        self.catalog.changes()
    }

    async fn instructions(&self, caller: &Caller) -> Result<String, CallError> {
        self.instructions_for(caller).await
    }

    async fn within(&self, caller: &Caller, toolset: &str) -> Result<Option<Caller>, CallError> {
        self.caller_within(caller, toolset).await
    }
}

/// The list of a caller who may not call.
fn without_saved(list: &ToolList) -> ToolList {
    let tools = list.tools.iter().filter(|tool| Builtin::named(&tool.name).is_some()).cloned().collect();
    ToolList { generation: list.generation, visible: format!("{}/no calls", list.visible), tools }
}

/// The names that are most like this one, the nearest first.
fn nearest<'a>(name: &str, names: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut scored: Vec<(f64, &str)> =
        names.map(|other| (strsim::jaro_winkler(&name.to_lowercase(), &other.to_lowercase()), other)).collect();
    scored.retain(|(score, _)| *score > 0.8);
    scored.sort_by(|a, b| b.0.total_cmp(&a.0));
    scored.into_iter().take(3).map(|(_, other)| other.to_owned()).collect()
}

/// Logs our own failure under a fresh id, and makes the error that names the id and nothing else.
fn internal(what: &str, error: &dyn std::fmt::Debug) -> CallError {
    let id = uuid::Uuid::new_v4().simple().to_string();
    tracing::error!(error.id = %id, ?error, "Internal error {id}: {what}");
    CallError::Internal { id }
}
