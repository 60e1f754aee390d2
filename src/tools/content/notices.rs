//! What scripts say has changed (`ctx.notify`, `ctx.resource_updated`): told at once, and then at most twice a second for
//! each list and resource.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::Value;

use super::domain::Subject;
use crate::model::{Json, PrincipalId};
use crate::runner::HostRefusal;
use crate::tools::Tools;

/// The pause after one notice before the next of the same.
const PAUSE: Duration = Duration::from_millis(500);
/// How many different notices may be in their pause.
const WAITING: usize = 10_000;
/// The longest URI.
const URI_BYTES: usize = 2_048;

/// Of what.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Notice {
    List(Subject),
    Updated(String),
}

/// The notices in their pause, and whether they came again meanwhile.
#[derive(Debug, Default)]
pub struct Notices(Mutex<HashMap<(PrincipalId, Notice), bool>>);

impl Notices {
    fn lock(&self) -> MutexGuard<'_, HashMap<(PrincipalId, Notice), bool>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Tools {
    /// Serves `notify` and `resource_updated` for a running script of this principal.
    pub(in crate::tools) fn notice(
        &self,
        principal: &PrincipalId,
        method: &str,
        params: &Json,
    ) -> Result<Json, HostRefusal> {
        let params = params.to_value().unwrap_or_default();
        let text = |key: &str| params.get(key).and_then(Value::as_str).unwrap_or_default();
        let notice = if method == "notify" {
            let kind = text("kind");
            let subject = Subject::parse(kind).ok_or_else(|| {
                HostRefusal::error(format!("ctx.notify takes \"tools\", \"prompts\" or \"resources\", not \"{kind}\""))
            })?;
            Notice::List(subject)
        } else {
            let uri = text("uri");
            if uri.is_empty() || uri.len() > URI_BYTES {
                return Err(HostRefusal::error(format!("ctx.resource_updated takes a URI of 1 to {URI_BYTES} bytes")));
            }
            Notice::Updated(uri.to_owned())
        };
        let key = (principal.clone(), notice);
        let mut waiting = self.notices.lock();
        let room = waiting.len() < WAITING;
        match waiting.entry(key.clone()) {
            Entry::Occupied(mut again) => *again.get_mut() = true,
            Entry::Vacant(_) if !room => {
                return Err(HostRefusal::error("too many different resources change at once; try again in a moment"));
            }
            Entry::Vacant(vacant) => {
                vacant.insert(false);
                let (tools, closing) = (self.clone(), self.lifecycle.closing.clone());
                self.lifecycle.tasks.spawn(async move {
                    closing.run_until_cancelled(tools.tell(key)).await;
                });
            }
        }
        Ok(Json::empty_object())
    }

    /// Tells it, and again after each pause in which it came again.
    async fn tell(&self, key: (PrincipalId, Notice)) {
        loop {
            let (subject, uri) = match &key.1 {
                Notice::List(subject) => (Some(*subject), None),
                Notice::Updated(uri) => (None, Some(uri.as_str())),
            };
            let told = async {
                self.store.leave_news(&key.0, subject, uri).await?;
                self.contents.refresh().await
            };
            if let Err(error) = told.await {
                tracing::error!(%error, "What a script says has changed could not be told");
            }
            tokio::time::sleep(PAUSE).await;
            let mut waiting = self.notices.lock();
            match waiting.get_mut(&key) {
                Some(again @ true) => *again = false,
                _ => {
                    waiting.remove(&key);
                    return;
                }
            }
        }
    }
}
