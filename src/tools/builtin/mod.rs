//! The built-in tools: authoring, calling and looking at runs.

mod act;
mod content;
mod descriptors;
mod instructions;
mod look;
mod runs;
pub(super) mod save;
pub(super) mod written;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::arguments;
use super::attend::Lines;
use super::authoring::FieldError;
use super::domain::{Answer, CallError, CallRequest, Resume};
use super::{Tools, internal};
use crate::model::{CallReply, Caller, ClientFacts, Fault, Json, Tool, VersionNumber};
use crate::runner::CodeError;
use crate::store::StoreError;
use crate::trust::ApprovalError;

pub use descriptors::Builtin;
pub use save::SAVED;

/// A built-in call whose arguments were accepted.
struct BuiltinCall {
    caller: Caller,
    arguments: Json,
    client: ClientFacts,
    door: &'static str,
    request_id: String,
    meta: Map<String, Value>,
    resume: Resume,
    lines: Lines,
}

/// In a request's `_meta`, from the REST door alone: which state of a thing its write is about; null where it was not said.
pub const IF_MATCH: &str = "omniforge/if-match";

/// How a state of a tool or of saved content is named.
pub fn state_tag(latest: VersionNumber, enabled: bool) -> String {
    format!("{latest}.{}", u8::from(enabled))
}

impl BuiltinCall {
    /// Refuses a write that is about another state than this one; `None`: about something that is not there yet.
    fn expects(&self, state: Option<(VersionNumber, bool)>) -> Result<(), Failed> {
        let Some(expected) = self.meta.get(IF_MATCH).filter(|_| self.door == "rest") else { return Ok(()) };
        let state = state.map(|(latest, enabled)| state_tag(latest, enabled));
        match (expected.as_str(), state) {
            (None, None) | (Some("*"), Some(_)) => Ok(()),
            (None, Some(_)) => Err(Failed::Faulty(
                Fault::Unconditional,
                "the header If-Match is missing: give the ETag of what you have read, or `*` to write whatever is there"
                    .to_owned(),
            )),
            (Some(expected), Some(state)) if expected.trim_matches('"') == state => Ok(()),
            (Some(expected), _) => Err(Failed::Faulty(
                Fault::Stale,
                format!("it is not what {expected} was any more; read it again"),
            )),
        }
    }
}

/// Why a built-in did not do what was asked.
pub(in crate::tools) enum Failed {
    /// The caller can mend it: what was wrong and what would be right.
    Refused(String),
    /// The code has a fault.
    Fault(CodeError),
    /// The same, of a kind that some doors have words of their own for.
    Faulty(Fault, String),
    /// Another change came first; looking again may help.
    Overtaken(StoreError),
    /// It is no matter of this call's text.
    Broken(CallError),
}

impl From<FieldError> for Failed {
    fn from(error: FieldError) -> Self {
        Self::Refused(error.to_string())
    }
}

impl From<CallError> for Failed {
    fn from(error: CallError) -> Self {
        Self::Broken(error)
    }
}

impl From<StoreError> for Failed {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::VersionConflict { .. } | StoreError::NoSuchTool | StoreError::NameTaken { .. } => {
                Self::Overtaken(error)
            }
            StoreError::NoSuchVersion { .. } | StoreError::NoSuchContent | StoreError::NoSuchToolset => {
                Self::Refused(error.to_string())
            }
            other => Self::Broken(internal("the store failed", &other)),
        }
    }
}

impl From<ApprovalError> for Failed {
    fn from(error: ApprovalError) -> Self {
        match error {
            ApprovalError::Store(error) => error.into(),
            other => Self::Broken(internal("an approval can't be looked up", &other)),
        }
    }
}

type Handled = Result<CallReply, Failed>;

#[derive(Deserialize)]
struct Named {
    name: String,
}

impl Tools {
    /// Calls a built-in that this caller may call.
    pub(super) async fn call_builtin(
        &self,
        builtin: Builtin,
        caller: &Caller,
        request: CallRequest,
        lines: Lines,
    ) -> Result<Answer, CallError> {
        let checks = self.builtins[&builtin].clone();
        let strict = self.options.strict_arguments;
        let arguments = match arguments::check(checks, request.arguments, strict, &self.validations).await {
            Ok(checked) => checked.json,
            Err(error) => return error.answer().map(Answer::Reply),
        };
        let call = BuiltinCall {
            caller: caller.clone(),
            arguments,
            client: request.client,
            door: request.door,
            request_id: request.request_id,
            meta: request.meta,
            resume: request.resume,
            lines,
        };
        let answer = match builtin {
            Builtin::CallTool => self.builtin_call(call).await,
            Builtin::TestTool => self.builtin_test(call).await,
            other => self.handle(other, call).await.map(Answer::Reply),
        };
        match answer {
            Ok(answer) => Ok(answer),
            Err(Failed::Refused(text)) => Ok(Answer::Reply(CallReply::error(text))),
            Err(Failed::Fault(fault)) => Ok(Answer::Reply(CallReply::error(format!("`code`: {fault}")))),
            Err(Failed::Faulty(fault, text)) => Ok(Answer::Reply(CallReply::fault(fault, text))),
            Err(Failed::Overtaken(error)) => Ok(Answer::Reply(CallReply::fault(Fault::Taken, error.to_string()))),
            Err(Failed::Broken(error)) => Err(error),
        }
    }

    async fn handle(&self, builtin: Builtin, call: BuiltinCall) -> Handled {
        match builtin {
            Builtin::Instructions => Ok(CallReply::text(self.guide())),
            Builtin::CreateTool => self.builtin_create(call).await,
            Builtin::UpdateTool => self.builtin_update(call).await,
            Builtin::GetTool => self.builtin_get(call).await,
            Builtin::ListTools => self.builtin_list(call).await,
            Builtin::DeleteTool => self.builtin_delete(call).await,
            Builtin::SetEnabled => self.builtin_set_enabled(call).await,
            Builtin::ToolHistory => self.builtin_history(call).await,
            Builtin::RollbackTool => self.builtin_rollback(call).await,
            Builtin::GetRun => self.builtin_get_run(call).await,
            Builtin::ListRuns => self.builtin_list_runs(call).await,
            Builtin::JobResult => self.builtin_job_result(call).await,
            Builtin::CancelRun => self.builtin_cancel_run(&call).await,
            Builtin::TestTool | Builtin::CallTool => unreachable!("these two can answer later, and are called apart"),
            Builtin::SaveResource => self.builtin_save_resource(call).await,
            Builtin::SavePrompt => self.builtin_save_prompt(call).await,
            Builtin::SaveSkill => self.builtin_save_skill(call).await,
            Builtin::ListContent => self.builtin_list_content(call).await,
            Builtin::DeleteContent => self.builtin_delete_content(call).await,
        }
    }

    fn guide(&self) -> String {
        let runtimes: Vec<String> = self.runner.runtimes().iter().map(ToString::to_string).collect();
        instructions::guide(&instructions::Facts {
            runtimes: &runtimes,
            limits: &self.options.limits,
            sandbox: self.runner.sandbox(),
            installs: self.environments.available(),
        })
    }

    /// The caller's own tool of that name; anybody's for an administrator.
    pub(in crate::tools) async fn owned(&self, caller: &Caller, name: &str) -> Result<Tool, Failed> {
        self.tool_of(caller, name)
            .await?
            .ok_or_else(|| missing(format!("there is no tool `{name}`; omniforge_list_tools shows those there are")))
    }
}

/// What was named does not exist.
fn missing(text: String) -> Failed {
    Failed::Faulty(Fault::Missing, text)
}

/// Reads arguments that the schema has already accepted.
fn parse<T: DeserializeOwned>(arguments: &Json) -> Result<T, Failed> {
    serde_json::from_str(arguments.get())
        .map_err(|error| Failed::Faulty(Fault::Arguments, format!("Arguments do not match inputSchema:\n- {error}")))
}

/// A reply with a value: structured, and its JSON as text.
fn reply(value: &impl Serialize) -> Handled {
    let json = Json::of(value).map_err(|error| Failed::Broken(internal("a reply can't be written as JSON", &error)))?;
    Ok(CallReply::json(json))
}
