//! Runs that come twice: a call repeated with the same idempotency key, and an asynchronous run that the server's end
//! interrupted.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Map, Value};

use super::domain::CallError;
use super::invoke::{Done, Invocation};
use super::{Live, RunEnd, Tools, arguments, internal};
use crate::model::{
    Block, CallReply, Caller, ClientFacts, Ending, Fault, Json, Mode, RunId, RunRow, Scope, Scopes, Timestamp,
};
use crate::store::{RunSummary, StoreError};

/// Where `_meta` holds the key.
const KEY: &str = "omniforge/idempotency-key";
const KEY_BYTES: usize = 256;
/// How often an interrupted run is started, the first time counted.
const TRIES: i64 = 3;

/// What a call with a key goes on with.
pub(super) enum Repeated {
    /// A run of this process, new or going on.
    Live(Live),
    /// A run that has ended.
    Ended(RunEnd),
    /// A run of another process.
    Elsewhere(RunId, Timestamp),
}

/// What makes a repeated call the same one: principal, tool, arguments, and the caller's own key.
///
/// # Errors
/// [`CallError::InvalidParams`] for a key that is no text or too long.
pub(super) fn key(invocation: &Invocation) -> Result<Option<String>, CallError> {
    let (Some(key), Some((tool, _))) = (invocation.meta.get(KEY), &invocation.version) else { return Ok(None) };
    if invocation.door == "test" {
        return Ok(None);
    }
    let Some(key) = key.as_str().filter(|key| !key.is_empty() && key.len() <= KEY_BYTES) else {
        let text = format!("`_meta[\"{KEY}\"]` (or the header Idempotency-Key) is a text of 1 to {KEY_BYTES} bytes");
        return Err(CallError::InvalidParams(text));
    };
    let mut hasher = blake3::Hasher::new();
    let arguments = invocation.arguments.json.canonical();
    // A call within a toolset sees the runs of that toolset alone.
    let toolset = invocation.caller.toolset.as_ref().map(|toolset| toolset.0.as_str());
    for part in [&invocation.caller.principal.0, &tool.0, &arguments, key].into_iter().chain(toolset) {
        hasher.update(&u64::try_from(part.len()).unwrap_or(u64::MAX).to_le_bytes()).update(part.as_bytes());
    }
    Ok(Some(hasher.finalize().to_hex().to_string()))
}

impl Tools {
    /// Starts a run, unless the same call with the same key has one that goes on or has a result.
    /// A new one is given the `recorded` answers when it asks.
    pub(super) async fn start_or_repeat(
        &self,
        invocation: &Arc<Invocation>,
        recorded: Map<String, Value>,
    ) -> Result<Repeated, CallError> {
        let Some(key) = &invocation.idempotency else { return self.start(invocation, recorded).map(Repeated::Live) };
        let _one_at_a_time = self.repeats.lock().await;
        let failed = |error: StoreError| internal("a repeated call can't look for its run", &error);
        let found = match self.store.run_by_idempotency(key).await.map_err(failed)? {
            Some(id) => self.store.get_run(id).await.map_err(failed)?,
            None => None,
        };
        let Some(row) = found else { return self.start(invocation, recorded).map(Repeated::Live) };
        if let Some(live) = self.live.get(row.id, Some(&invocation.caller.principal)) {
            return Ok(Repeated::Live(live));
        }
        let reply = reply_of(&row);
        match (&row.ending, reply) {
            (None, _) => Ok(Repeated::Elsewhere(row.id, row.queued_at)),
            (Some(Ending::Cancelled | Ending::Interrupted), _) | (_, None) => {
                self.start(invocation, recorded).map(Repeated::Live)
            }
            (Some(_), Some(reply)) => Ok(Repeated::Ended(Arc::new(Done { reply, row }))),
        }
    }

    /// A run that has ended by itself, with its answer, where that is still kept.
    pub(super) async fn ended_run(&self, run: RunId) -> Result<Option<RunEnd>, CallError> {
        let row = self.store.get_run(run).await.map_err(|error| internal("a run can't be read", &error))?;
        let row = row.filter(|row| !matches!(row.ending, None | Some(Ending::Cancelled | Ending::Interrupted)));
        Ok(row.and_then(|row| reply_of(&row).map(|reply| Arc::new(Done { reply, row }))))
    }

    /// Starts those of the interrupted runs again that ask for it, and were not started too often; says how many.
    pub async fn start_again(&self, interrupted: &[RunSummary]) -> usize {
        let mut started = 0;
        for run in interrupted {
            match self.start_one_again(run).await {
                Ok(true) => started += 1,
                Ok(false) => {}
                Err(error) => tracing::warn!(run.id = %run.id, %error, "An interrupted run could not be started again"),
            }
        }
        started
    }

    async fn start_one_again(&self, run: &RunSummary) -> Result<bool, Box<dyn std::error::Error + Send + Sync>> {
        let (Some(tool), Some(version)) = (&run.tool, run.version) else { return Ok(false) };
        let Some(version) = self.store.get_version(tool, version).await? else { return Ok(false) };
        let definition = Arc::new(version.definition);
        let Some(row) = self.store.get_run(run.id).await? else { return Ok(false) };
        if definition.mode != Mode::Async || !definition.retry || row.tries >= TRIES || row.parent.is_some() {
            return Ok(false);
        }
        let checks = self.catalog.checks(tool, version.number, &definition).await?;
        let strict = self.options.strict_arguments || definition.strict_arguments;
        let arguments =
            arguments::check(checks.clone(), Some(row.arguments.clone()), strict, &self.validations).await?;
        let caller = Caller {
            principal: row.principal.clone(),
            principal_name: self
                .store
                .find_principal(&row.principal)
                .await?
                .map(|found| found.name)
                .unwrap_or_default(),
            token_id: None,
            scopes: Scopes::of(&[Scope::Call]),
            source: None,
            toolset: row.toolset.clone(),
        };
        let invocation = Invocation {
            caller,
            version: Some((tool.clone(), version.number)),
            name: row.tool_name.clone(),
            content: None,
            definition,
            checks,
            arguments,
            client: ClientFacts::default(),
            door: "retry",
            request_id: row.id.to_string(),
            meta: Map::new(),
            depth: 0,
            parent: None,
            idempotency: row.idempotency.clone(),
            learn: None,
        };
        let again = RunRow {
            instance: self.instance.clone(),
            started_at: None,
            ended_at: None,
            ending: None,
            is_error: false,
            tries: row.tries + 1,
            ..row
        };
        let live = self.start_row(&Arc::new(invocation), again, Map::new())?;
        live.detach();
        Ok(true)
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Stored {
    content: Vec<Block>,
    #[serde(default)]
    structured_content: Option<Json>,
    #[serde(default)]
    is_error: bool,
    #[serde(rename = "_meta")]
    meta: Option<Map<String, Value>>,
}

/// The answer that a row keeps; `None` where it is not kept any more.
fn reply_of(row: &RunRow) -> Option<Result<CallReply, CallError>> {
    if let Some(error) = &row.error {
        return Some(Err(CallError::Protocol { code: error.code, text: error.message.clone() }));
    }
    let stored: Stored = serde_json::from_str(row.result.as_deref()?).ok()?;
    Some(Ok(CallReply {
        content: stored.content,
        structured: stored.structured_content,
        is_error: stored.is_error,
        meta: stored.meta,
        run: Some(row.id),
        fault: (row.ending == Some(Ending::Timeout)).then_some(Fault::Timeout),
    }))
}
