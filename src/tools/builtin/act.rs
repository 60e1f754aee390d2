//! Built-ins that switch, delete, try and call tools.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Value, json};

use super::written::deed;
use super::{Builtin, BuiltinCall, Failed, Handled, Named, missing, parse};
use crate::model::{
    Block, CallReply, Caller, Json, NetworkEntry, NetworkUse, SandboxLevel, Tool, ToolDefinition, ToolId, VersionNumber,
};
use crate::store::{AuditEntry, Store};
use crate::tools::arguments::{self, ArgumentsError};
use crate::tools::attend::Attended;
use crate::tools::authoring::Draft;
use crate::tools::domain::{Answer, CallError, CallRequest};
use crate::tools::invoke::{Done, Invocation, Learning};
use crate::tools::reply::reply_text;
use crate::tools::{Tools, catalog};

#[derive(Deserialize)]
struct Switch {
    name: String,
    enabled: bool,
}

#[derive(Deserialize)]
struct Call {
    name: String,
    arguments: Option<Json>,
}

#[derive(Deserialize)]
struct Test {
    name: Option<String>,
    version: Option<VersionNumber>,
    arguments: Option<Json>,
    #[serde(default)]
    learn: bool,
    #[serde(flatten)]
    draft: Draft,
}

/// The saved version that is tested.
type Tested = (ToolId, VersionNumber, String);

impl Tools {
    pub(super) async fn builtin_delete(&self, call: BuiltinCall) -> Handled {
        let Named { name } = parse(&call.arguments)?;
        let tool = self.owned(&call.caller, &name).await?;
        let id = tool.id.clone();
        let _turn = self.turns.take(&id).await;
        let tool = self.owned(&call.caller, &name).await?;
        call.expects(Some((tool.latest_version, tool.enabled)))?;
        let latest = self.store.get_version(&id, tool.latest_version).await?;
        let entry = deed(&call.caller, "tool.delete", &name, json!({"latest_version": tool.latest_version}));
        let entry = AuditEntry { before: latest.map(|version| version.fingerprint), ..entry };
        let write = move |store: Store| async move { store.delete_tool(&id).await };
        let deleted = self.write(entry, write, |entry, deleted| deleted.then_some(entry)).await?;
        if !deleted {
            return Err(missing(format!("there is no tool `{name}` any more")));
        }
        Ok(CallReply::text(format!("Deleted `{name}` with its {} version(s). Its runs stay.", tool.latest_version)))
    }

    pub(super) async fn builtin_set_enabled(&self, call: BuiltinCall) -> Handled {
        let Switch { name, enabled } = parse(&call.arguments)?;
        let tool = self.owned(&call.caller, &name).await?;
        call.expects(Some((tool.latest_version, tool.enabled)))?;
        let tool = self.switch(&call.caller, tool, enabled).await?;
        let state = match (enabled, tool.serving_version) {
            (false, _) => "off: neither listed nor callable; nothing is lost",
            (true, Some(_)) => "on: listed and callable",
            (true, None) => "on, but no version may serve yet: it needs approval",
        };
        Ok(CallReply::text(format!("`{name}` is {state}.")))
    }

    /// Switches a tool on or off.
    pub(in crate::tools) async fn switch(&self, caller: &Caller, tool: Tool, enabled: bool) -> Result<Tool, Failed> {
        let entry = deed(caller, "tool.set_enabled", tool.name.as_str(), json!({"enabled": enabled}));
        let write = move |store: Store| async move { store.set_enabled(&tool.id, enabled).await };
        self.write(entry, write, |entry, _| Some(entry)).await
    }

    pub(super) async fn builtin_call(&self, call: BuiltinCall) -> Result<Answer, Failed> {
        let Call { name, arguments } = parse(&call.arguments)?;
        let request = CallRequest {
            name,
            arguments,
            request_id: call.request_id,
            meta: call.meta,
            client: call.client,
            door: call.door,
            resume: call.resume,
        };
        if let Some(builtin) = self.hidden(&call.caller, &request.name).await? {
            let called = self.call_builtin(builtin, &call.caller, request, call.lines);
            return Ok(Box::pin(called).await?);
        }
        match self.call_saved(&call.caller, request, call.lines).await {
            Err(error @ CallError::UnknownTool { .. }) => Err(Failed::Refused(error.to_string())),
            other => Ok(other?),
        }
    }

    /// A built-in that this caller may call and is not shown: some clients call nothing that is not listed.
    async fn hidden(&self, caller: &Caller, name: &str) -> Result<Option<Builtin>, Failed> {
        let builtin = Builtin::named(name).filter(|builtin| caller.scopes.has(builtin.scope()));
        let builtin = builtin.filter(|builtin| !matches!(builtin, Builtin::CallTool | Builtin::ListTools));
        Ok(match builtin {
            Some(builtin) if self.searches(caller).await? => Some(builtin),
            _ => None,
        })
    }

    pub(super) async fn builtin_test(&self, call: BuiltinCall) -> Result<Answer, Failed> {
        let Test { name, version, arguments, learn, draft } = parse(&call.arguments)?;
        let (tested, mut definition, warnings) = match (name, draft.code.is_some()) {
            (None, true) => {
                let understood = self.understand("(unsaved)", draft, (None, None)).await?;
                (None, understood.definition, understood.warnings)
            }
            (Some(name), false) => {
                let tool = self.owned(&call.caller, &name).await?;
                let version = self.version(&tool.id, version.unwrap_or(tool.latest_version)).await?;
                (Some((tool.id, version.number, name)), version.definition, Vec::new())
            }
            (Some(_), true) => return Err(Failed::Refused("give either `name` or `code`, not both".into())),
            (None, false) => return Err(Failed::Refused("give `code` to try, or the `name` of a saved tool".into())),
        };
        if learn && self.runner.sandbox() != SandboxLevel::Full {
            let level = self.runner.sandbox().as_str();
            return Err(Failed::Refused(format!("`learn` needs the full sandbox; this server runs with `{level}`")));
        }
        let learning = learn.then(|| Learning { secrets: definition.grants.secrets.clone() });
        let without = if learn {
            definition = self.approvals.policy().without_reach(definition);
            Vec::new()
        } else {
            let tool = tested.as_ref().map(|(tool, _, _)| tool);
            let (allowed, without) = self.testable(tool, definition).await?;
            definition = allowed;
            without
        };
        match self.test_run(call, (tested, learning), definition, arguments).await? {
            Attended::Ended(done) => test_reply(&done, &warnings, (learn, without)).map(Answer::Reply),
            waits => Ok(self.answer(waits, false)?),
        }
    }

    async fn test_run(
        &self,
        call: BuiltinCall,
        (tested, learn): (Option<Tested>, Option<Learning>),
        definition: ToolDefinition,
        arguments: Option<Json>,
    ) -> Result<Attended, Failed> {
        let checks = catalog::compile(definition.input_schema.clone(), definition.output_schema.clone()).await;
        let checks = checks.map_err(|error| Failed::Refused(error.to_string()))?;
        let strict = self.options.strict_arguments || definition.strict_arguments;
        let arguments = arguments::check(checks.clone(), arguments, strict, &self.validations).await;
        let arguments = arguments.map_err(|error: ArgumentsError| Failed::Refused(error.to_string()))?;
        let (version, name) = match tested {
            Some((tool, number, name)) => (Some((tool, number)), name),
            None => (None, "(unsaved)".to_owned()),
        };
        let invocation = Invocation {
            caller: call.caller,
            version,
            name,
            content: None,
            definition: Arc::new(definition),
            checks,
            arguments,
            client: call.client,
            door: "test",
            request_id: call.request_id,
            meta: call.meta,
            depth: 0,
            parent: None,
            idempotency: None,
            learn,
        };
        Ok(self.attend(invocation, call.resume, call.lines).await?)
    }
}

/// The answer, then what a test shows besides: run id, ending, times, log, both streams.
fn test_reply(done: &Done, warnings: &[String], (learns, without): (bool, Vec<String>)) -> Handled {
    let row = &done.row;
    let (reply, failed) = match done.reply.clone() {
        Ok(reply) => (reply, false),
        Err(CallError::Protocol { code, text }) => (CallReply::error(format!("{text} (code {code})")), true),
        Err(other) => return Err(other.into()),
    };
    let ran = row.started_at.zip(row.ended_at).map(|(start, end)| end.0 - start.0);
    let mut report = json!({
        "run_id": row.id.to_string(),
        "ending": row.ending,
        "run_ms": ran,
        "cpu_ms": row.cpu_ms,
        "peak_memory_bytes": row.peak_memory_bytes,
        "coerced": row.coerced,
        "stdout": row.stdout,
        "stderr": row.stderr,
        "log": row.log.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok()).collect::<Vec<_>>(),
        "warnings": warnings,
        "network": row.network,
    });
    if !without.is_empty() {
        report["ran_without"] = json!(without);
    }
    if learns {
        report["proposed_network"] = json!(proposed(row.network.as_ref()));
    }
    let mut content = reply.content.clone();
    let report = serde_json::to_string_pretty(&report).unwrap_or_default();
    if failed {
        content = vec![Block::text(reply_text(&reply))];
    }
    content.push(Block::text(format!("[test run]\n{report}")));
    Ok(CallReply { content, ..reply })
}

/// The entries of `network` that would grant what was tried. A name that reads otherwise than it is written is shown both
/// ways: look-alikes are to be seen.
fn proposed(network: Option<&NetworkUse>) -> Vec<Value> {
    let tried = network.map_or(&[][..], |network| &network.unreached);
    let mut proposals: Vec<Value> = Vec::new();
    for target in tried.iter().filter(|target| !target.udp) {
        let Ok(entry) = NetworkEntry::parse(&target.target()) else { continue };
        let entry = entry.to_string();
        let (read, _) = idna::domain_to_unicode(&target.host);
        let proposal =
            if read == target.host { json!({"entry": entry}) } else { json!({"entry": entry, "reads": read}) };
        if !proposals.contains(&proposal) {
            proposals.push(proposal);
        }
    }
    proposals
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Unreached;

    #[test]
    fn proposals_are_entries_and_show_how_punycode_reads() {
        let tried =
            |host: &str, port, udp| Unreached { host: host.into(), port, udp, refused: true, reason: "x".into() };
        let unreached = vec![
            tried("api.example", Some(443), false),
            tried("xn--bcher-kva.example", Some(443), false),
            tried("2001:db8::1", Some(25), false),
            tried("looked-up.example", None, false),
            tried("192.0.2.1", Some(53), true),
            tried("not_a_host", Some(1), false),
        ];
        let network = NetworkUse { unreached, ..NetworkUse::default() };
        assert_eq!(
            proposed(Some(&network)),
            [
                json!({"entry": "api.example:443"}),
                json!({"entry": "xn--bcher-kva.example:443", "reads": "bücher.example"}),
                json!({"entry": "[2001:db8::1]:25"}),
                json!({"entry": "looked-up.example"}),
            ]
        );
    }
}
