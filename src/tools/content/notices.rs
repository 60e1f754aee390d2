//! What scripts say has changed (`ctx.notify`, `ctx.resource_updated`): told at once, and then at most twice a second for
//! each kind, with everything that came meanwhile.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::Value;

use super::domain::Subject;
use crate::model::{Json, PrincipalId};
use crate::runner::HostRefusal;
use crate::tools::Tools;

/// The pause after one round of notices before the next of the same kind.
const PAUSE: Duration = Duration::from_millis(500);
/// How many different resources may wait for the next round.
const WAITING: usize = 10_000;
/// The longest URI.
const URI_BYTES: usize = 2_048;

/// Of what.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Kind {
    List(Subject),
    Updated,
}

/// Whose notices of which kind are in their pause.
type Key = (PrincipalId, Kind);

/// What came during the pause: URIs, or nothing but that the list has changed again (`None`).
type Waiting = HashMap<Key, HashSet<Option<String>>>;

/// The notices in their pause.
#[derive(Debug, Default)]
pub struct Notices(Mutex<Waiting>);

impl Notices {
    fn lock(&self) -> MutexGuard<'_, Waiting> {
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
        let (kind, what) = if method == "notify" {
            let kind = text("kind");
            let subject = Subject::parse(kind).ok_or_else(|| {
                HostRefusal::error(format!("ctx.notify takes \"tools\", \"prompts\" or \"resources\", not \"{kind}\""))
            })?;
            (Kind::List(subject), None)
        } else {
            let uri = text("uri");
            if uri.is_empty() || uri.len() > URI_BYTES {
                return Err(HostRefusal::error(format!("ctx.resource_updated takes a URI of 1 to {URI_BYTES} bytes")));
            }
            (Kind::Updated, Some(uri.to_owned()))
        };
        let key = (principal.clone(), kind);
        match self.notices.lock().entry(key.clone()) {
            Entry::Occupied(waiting) if waiting.get().len() >= WAITING => {
                return Err(HostRefusal::error("too many different resources change at once; try again in a moment"));
            }
            Entry::Occupied(mut waiting) => {
                waiting.get_mut().insert(what);
            }
            Entry::Vacant(vacant) => {
                vacant.insert(HashSet::new());
                let (tools, closing) = (self.clone(), self.lifecycle.closing.clone());
                self.lifecycle.tasks.spawn(async move {
                    closing.run_until_cancelled(tools.tell(key, HashSet::from([what]))).await;
                });
            }
        }
        Ok(Json::empty_object())
    }

    /// Tells of these, and after each pause of what came meanwhile.
    async fn tell(&self, key: Key, mut what: HashSet<Option<String>>) {
        let subject = match key.1 {
            Kind::List(subject) => Some(subject),
            Kind::Updated => None,
        };
        while !what.is_empty() {
            let told = async {
                self.store.leave_news(&key.0, subject, what.iter().map(Option::as_deref)).await?;
                self.contents.refresh().await
            };
            if let Err(error) = told.await {
                tracing::error!(%error, "What a script says has changed could not be told");
            }
            tokio::time::sleep(PAUSE).await;
            let mut waiting = self.notices.lock();
            what = waiting.get_mut(&key).map(std::mem::take).unwrap_or_default();
            if what.is_empty() {
                waiting.remove(&key);
            }
        }
    }
}
