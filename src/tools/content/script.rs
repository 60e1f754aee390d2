//! Runs the script of saved content: the same way as a tool's, and its result read for what it is.

use std::sync::Arc;

use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use super::catalog::Entry;
use super::domain::{Asked, ContentError, Step};
use crate::model::{CallReply, Caller, Json, RunId, Stream, Style, ToolDefinition, ToolId};
use crate::tools::arguments::{self, ArgumentsError};
use crate::tools::attend::{Attended, Lines};
use crate::tools::invoke::{ContentCall, Done, Invocation};
use crate::tools::reply::reply_text;
use crate::tools::{Tools, internal};

/// What a script makes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// The contents that are read under this URI.
    Resource(String),
    /// Messages.
    Prompt,
    /// Suggestions.
    Completion,
}

impl Purpose {
    fn facts(&self) -> Map<String, Value> {
        let facts = match self {
            Self::Resource(uri) => json!({"expects": "resource", "uri": uri}),
            Self::Prompt => json!({"expects": "prompt"}),
            Self::Completion => json!({"expects": "completion"}),
        };
        facts.as_object().cloned().unwrap_or_default()
    }
}

/// One run of one of an entry's scripts.
pub struct ScriptCall<'a> {
    /// Whose script it is.
    pub entry: &'a Entry,
    /// The script.
    pub script: &'a ToolDefinition,
    /// What it makes.
    pub purpose: Purpose,
    /// With which arguments.
    pub arguments: Map<String, Value>,
    /// The facts of the request.
    pub asked: Asked,
}

/// What a script made.
pub enum Made<T> {
    /// What `main` returned.
    Returned(T, RunId),
    /// What it printed, having returned nothing.
    Printed(String, RunId),
}

impl Tools {
    /// Runs a script until it has ended and reads what it made, or until it asks its client.
    ///
    /// # Errors
    /// [`ContentError`]; [`ContentError::InvalidParams`] when the arguments don't fit.
    ///
    /// # Cancellation
    /// Dropping the future kills the run.
    pub(super) async fn run_script<T: DeserializeOwned>(
        &self,
        caller: &Caller,
        mut call: ScriptCall<'_>,
        lines: Lines,
    ) -> Result<Step<Made<T>>, ContentError> {
        self.may_call(caller, &call.entry.item.name).map_err(ContentError::InvalidParams)?;
        let style = call.script.style;
        let resume = std::mem::take(&mut call.asked.resume);
        let invocation = self.invocation(caller, call).await?;
        let done = match self.attend(invocation, resume, lines).await? {
            Attended::Ended(done) => done,
            Attended::Asking(asking) => return Ok(Step::Asking(asking)),
            Attended::Detached(run, _) => {
                self.live.cancel(run, Some(&caller.principal));
                let text = "this script can't become a task: somebody waits for what it makes".to_owned();
                return Err(ContentError::Failed { text, run: Some(run) });
            }
            Attended::Lost => {
                let text = "the server was restarted while this waited for you; ask again without requestState";
                return Err(ContentError::InvalidParams(text.to_owned()));
            }
        };
        self.made(&done, style).map(Step::Done)
    }

    fn made<T: DeserializeOwned>(&self, done: &Done, style: Style) -> Result<Made<T>, ContentError> {
        let id = done.row.id;
        let reply = done.reply.clone()?;
        let failed = |text: String| ContentError::Failed { text, run: Some(id) };
        if reply.is_error {
            return Err(failed(failure_text(&reply, style, id)));
        }
        if let Some(value) = reply.structured {
            let made = serde_json::from_str(value.get());
            let made =
                made.map_err(|error| failed(format!("the script returned what can't be used: {error} (run {id})")));
            return made.map(|made| Made::Returned(made, id));
        }
        if self.runner.outputs().has(id, Stream::Stdout) {
            return Err(failed(format!("the script printed more than can be read; return it instead (run {id})")));
        }
        Ok(Made::Printed(done.row.stdout.clone(), id))
    }

    async fn invocation(&self, caller: &Caller, call: ScriptCall<'_>) -> Result<Invocation, ContentError> {
        let ScriptCall { entry, script, purpose, arguments, asked } = call;
        let (item, number) = (&entry.item, entry.version.number);
        let kind = item.kind.as_str();
        let (key, name) = match purpose {
            Purpose::Completion => ("completion", format!("completion of {kind} {}", item.name)),
            Purpose::Resource(_) | Purpose::Prompt => ("contents", format!("{kind} {}", item.name)),
        };
        let id = ToolId(format!("{}/{key}", item.id.0));
        let checks = self.catalog.checks(&id, number, script).await;
        let checks = checks.map_err(|error| internal("a saved schema can't be compiled", &error))?;
        let raw = Json::of(&arguments).map_err(|error| internal("arguments can't be written as JSON", &error))?;
        let checked = arguments::check(checks.clone(), Some(raw), false, &self.validations).await;
        let arguments = checked.map_err(|error: ArgumentsError| ContentError::InvalidParams(error.to_string()))?;
        Ok(Invocation {
            caller: caller.clone(),
            version: None,
            name,
            content: Some(ContentCall { version: entry.version.clone(), facts: purpose.facts() }),
            definition: Arc::new(script.clone()),
            checks,
            arguments,
            client: asked.client,
            door: asked.door,
            request_id: asked.request_id,
            meta: asked.meta,
            depth: 0,
            parent: None,
            idempotency: None,
            learn: None,
        })
    }
}

/// Why a script failed. What a program printed stays in the run's record: it was meant for nobody's answer.
fn failure_text(reply: &CallReply, style: Style, run: RunId) -> String {
    match style {
        Style::Function => reply_text(reply),
        Style::Script => format!("the script failed; omniforge_get_run shows the output of run {run}"),
    }
}
