//! `ctx.state`: what a tool keeps for its caller from one call to the next.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};
use serde_json::json;

use super::invoke::Invocation;
use super::{Tools, internal};
use crate::model::{Json, PrincipalId, canonical_json};
use crate::runner::HostRefusal;
use crate::store::StateOwner;

/// The most bytes of a value's JSON, and of a key.
const VALUE_BYTES: usize = 64 << 10;
const KEY_BYTES: usize = 256;

/// Stands for every caller where a principal's id would; no principal has it.
const EVERYBODY: &str = "";

/// What a test run keeps: it reads nothing of real calls, and leaves nothing behind.
pub(super) type Scratch = std::sync::Mutex<HashMap<String, String>>;

#[derive(Deserialize)]
struct Wanted {
    key: String,
    value: Option<Json>,
    #[serde(default)]
    scope: Option<String>,
}

impl Tools {
    /// Serves `state.get`, `state.set` and `state.delete`.
    pub(super) async fn state(
        &self,
        invocation: &Invocation,
        scratch: &Scratch,
        action: &str,
        params: &Json,
    ) -> Result<Json, HostRefusal> {
        let wanted: Wanted =
            serde_json::from_str(params.get()).map_err(|error| HostRefusal::error(format!("ctx.state: {error}")))?;
        let shared = shared(&wanted, invocation)?;
        let value = wanted.value.as_ref().map_or("null", Json::get).to_owned();
        if action == "state.set" && value.len() > VALUE_BYTES {
            let text =
                format!("a value of ctx.state may have {VALUE_BYTES} bytes of JSON; this one has {}", value.len());
            return Err(HostRefusal::error(text));
        }
        match owner(invocation, shared) {
            Some(owner) => self.stored(&owner, action, &wanted.key, &value).await,
            None => Ok(scratched(scratch, action, wanted.key, value)),
        }
    }

    async fn stored(&self, owner: &StateOwner, action: &str, key: &str, value: &str) -> Result<Json, HostRefusal> {
        let failed = |error| HostRefusal::error(internal("a tool's state can't be used", &error).to_string());
        match action {
            "state.get" => {
                let found = self.store.get_state(owner, key).await.map_err(failed)?;
                Ok(shown(found.as_deref()))
            }
            "state.set" => match self.store.set_state(owner, key, value).await.map_err(failed)? {
                true => Ok(Json::empty_object()),
                false => Err(HostRefusal::error("ctx.state is full: it keeps 1 MiB for each tool and caller")),
            },
            _ => Ok(found(self.store.delete_state(owner, key).await.map_err(failed)?)),
        }
    }
}

/// Checks the request; whether it is for the state that all callers share.
fn shared(wanted: &Wanted, invocation: &Invocation) -> Result<bool, HostRefusal> {
    let wrong = |text: String| Err(HostRefusal::error(text));
    if wanted.key.is_empty() || wanted.key.len() > KEY_BYTES {
        return wrong(format!("a key of ctx.state has 1 to {KEY_BYTES} bytes; this one has {}", wanted.key.len()));
    }
    match wanted.scope.as_deref() {
        None | Some("caller") => Ok(false),
        // A test has its own, whatever it asks for.
        Some("tool") if invocation.definition.grants.shared_state || invocation.door == "test" => Ok(true),
        Some("tool") => {
            wrong("state that all callers share is reach: save the tool with `shared_state: true`".to_owned())
        }
        Some(other) => wrong(format!("`{other}` is no scope of ctx.state; use `caller` or `tool`")),
    }
}

/// Whose state a run uses; `None` for test runs. What a version with reach wrote, only versions with the same grants read.
fn owner(invocation: &Invocation, shared: bool) -> Option<StateOwner> {
    let (tool, _) = invocation.version.as_ref().filter(|_| invocation.door != "test")?;
    let grants = &invocation.definition.grants;
    let class = if *grants == Default::default() {
        String::new()
    } else {
        blake3::hash(canonical_json(&json!(grants)).as_bytes()).to_hex().to_string()
    };
    let principal = if shared { PrincipalId(EVERYBODY.to_owned()) } else { invocation.caller.principal.clone() };
    Some(StateOwner { tool: tool.clone(), principal, class })
}

fn scratched(scratch: &Scratch, action: &str, key: String, value: String) -> Json {
    let mut values = scratch.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    match action {
        "state.get" => shown(values.get(&key).map(String::as_str)),
        "state.set" => {
            values.insert(key, value);
            Json::empty_object()
        }
        _ => found(values.remove(&key).is_some()),
    }
}

/// The answer to `state.get`: the value digit by digit.
fn shown(found: Option<&str>) -> Json {
    #[derive(Serialize)]
    struct Shown {
        found: bool,
        value: Option<Json>,
    }
    let value = found.and_then(|text| Json::parse(text.to_owned()).ok());
    Json::of(&Shown { found: value.is_some(), value }).expect("a flag and JSON can be written")
}

fn found(found: bool) -> Json {
    Json::from(&json!({"found": found}))
}
