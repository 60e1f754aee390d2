//! `ctx.call`: a saved tool called by another one, under the same caller, in the same slot.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::arguments;
use super::conversation::Talk;
use super::domain::CallError;
use super::invoke::{Invocation, Within};
use super::reply::reply_text;
use super::{Tools, internal, tasks};
use crate::model::{Block, CallReply, ClientFacts, Json};
use crate::runner::HostRefusal;

/// How deep calls may be nested.
const DEPTH: u32 = 8;

#[derive(Deserialize)]
struct Wanted {
    tool: String,
    #[serde(default = "Json::empty_object")]
    arguments: Json,
}

/// What the calling script gets.
#[derive(Serialize)]
struct Answered<'a> {
    value: &'a Option<Json>,
    text: String,
    content: &'a [Block],
}

impl Tools {
    /// Calls a tool for a running one; the answer's value, or its text.
    pub(super) async fn call_nested(&self, talk: &Talk, params: &Json) -> Result<Json, HostRefusal> {
        let wanted: Wanted =
            serde_json::from_str(params.get()).map_err(|error| HostRefusal::error(format!("ctx.call: {error}")))?;
        // One at a time: they share their caller's slot.
        let _turn = talk.calls.lock().await;
        let reply = match self.nested(talk, wanted).await {
            Ok(reply) => reply,
            Err(error) => return Err(HostRefusal::error(error.to_string())),
        };
        if reply.is_error {
            return Err(HostRefusal::error(reply_text(&reply)));
        }
        let answer = Answered { value: &reply.structured, text: reply_text(&reply), content: &reply.content };
        Json::of(&answer).map_err(|error| HostRefusal::error(error.to_string()))
    }

    async fn nested(&self, talk: &Talk, wanted: Wanted) -> Result<CallReply, CallError> {
        let outer = &talk.invocation;
        let refused = |text: String| Ok(CallReply::error(text));
        if outer.depth >= DEPTH {
            return refused(format!("ctx.call can be nested {DEPTH} deep, no more"));
        }
        let entry = match self.find(&outer.caller, &wanted.tool).await? {
            Ok(entry) => entry,
            Err(waits) => return refused(waits),
        };
        let definition = entry.definition;
        if !self.approvals.policy().reach(&definition).is_empty()
            && !outer.definition.grants.calls.contains(&wanted.tool)
        {
            return refused(format!(
                "`{}` has reach, so `{}` needs it in its `calls` grant to call it",
                wanted.tool, outer.name
            ));
        }
        if definition.task_required && !tasks::supported(&outer.client) {
            return Err(tasks::required(&wanted.tool));
        }
        let checks = self.catalog.checks(&entry.tool.id, entry.number, &definition).await;
        let checks = checks.map_err(|error| internal("a saved schema can't be compiled", &error))?;
        let strict = self.options.strict_arguments || definition.strict_arguments;
        let arguments = arguments::check(checks.clone(), Some(wanted.arguments), strict, &self.validations).await;
        let arguments = match arguments {
            Ok(arguments) => arguments,
            Err(error) => return error.answer(),
        };
        let invocation = Invocation {
            caller: outer.caller.clone(),
            version: Some((entry.tool.id, entry.number)),
            name: wanted.tool,
            content: None,
            definition,
            checks,
            arguments,
            client: ClientFacts { ..outer.client.clone() },
            // What a test calls is part of the test.
            door: if outer.door == "test" { "test" } else { "call" },
            request_id: outer.request_id.clone(),
            meta: outer.meta.clone(),
            depth: outer.depth + 1,
            parent: Some(talk.run),
            idempotency: None,
            learn: outer.learn.clone(),
        };
        let row = self.first_row(self.clock.new_run_id(), &invocation);
        self.store.start_run(row.clone()).map_err(|error| internal("a run could not be recorded", &error))?;
        let within = Within { live: talk.live.clone(), cancel: talk.over.clone(), seat: Some(talk.seat.clone()) };
        self.clone().run_within(Arc::new(invocation), row, within).await.reply
    }
}
