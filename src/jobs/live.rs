//! The runs of this process that have not ended: whose they are, and how to stop them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio_util::sync::CancellationToken;

use crate::model::{PrincipalId, RunId};

/// The live runs. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct LiveRuns {
    runs: Arc<Mutex<HashMap<RunId, LiveRun>>>,
}

#[derive(Debug)]
struct LiveRun {
    principal: PrincipalId,
    cancel: CancellationToken,
}

/// Takes the run off the list when it ends, however it ends.
#[derive(Debug)]
pub struct LiveEntry {
    runs: LiveRuns,
    id: RunId,
}

impl LiveRuns {
    /// Lists a run.
    pub fn enter(&self, id: RunId, principal: PrincipalId, cancel: CancellationToken) -> LiveEntry {
        self.lock().insert(id, LiveRun { principal, cancel });
        LiveEntry { runs: self.clone(), id }
    }

    /// Asks a run to stop; `owner` restricts it to that principal's. False when no such run is alive here.
    pub fn cancel(&self, id: RunId, owner: Option<&PrincipalId>) -> bool {
        let runs = self.lock();
        let found = runs.get(&id).filter(|run| owner.is_none_or(|owner| *owner == run.principal));
        found.map(|run| run.cancel.cancel()).is_some()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<RunId, LiveRun>> {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for LiveEntry {
    fn drop(&mut self) {
        self.runs.lock().remove(&self.id);
    }
}
