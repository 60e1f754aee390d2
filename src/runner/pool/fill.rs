//! Fills the pool in the background, and empties it of what waits in vain.

use std::sync::{Arc, Weak};
use std::time::Duration;

use super::super::environment::EnvironmentUse;
use super::super::{Inner, RunRequest, Runner};
use super::member::NotReady;
use super::{Found, Imports, KNOWN, Key, Member, digest};

/// How often is looked for what waits in vain.
const PERIOD: Duration = Duration::from_secs(5);
/// The most scripts whose imports are being looked for.
const SOUGHT: usize = 64;

/// Looks after a runner's pool for as long as there is the runner.
pub(in super::super) async fn keep(runner: Weak<Inner>) {
    loop {
        tokio::time::sleep(PERIOD).await;
        let Some(inner) = runner.upgrade() else { return };
        if let Some(pool) = &inner.pool {
            let gone = pool.shelves().expire();
            drop(gone);
        }
    }
}

impl Runner {
    /// A member for this call, where one waits, and sees to it that one does for the next call.
    pub(in super::super) fn waiting_member(&self, request: &RunRequest, spec: &super::Spec) -> Option<Member> {
        let pool = self.inner.pool.as_ref().filter(|_| super::may_serve(request))?;
        let spec = super::super::launch::waiting(spec)?;
        match pool.find(request, spec) {
            (Found::Member(member), key) => {
                if let Some(key) = key {
                    self.fill(key, request.held.clone());
                }
                Some(*member)
            }
            (Found::None(key), _) => {
                self.fill(key, request.held.clone());
                None
            }
            (Found::Unknown, _) => {
                self.seek_imports(request);
                None
            }
        }
    }

    /// Starts as many members of a kind as are wanted.
    fn fill(&self, key: Key, held: Option<Arc<EnvironmentUse>>) {
        let weak = Arc::downgrade(&self.inner);
        tokio::spawn(async move {
            loop {
                let Some(inner) = weak.upgrade() else { return };
                let Some(pool) = &inner.pool else { return };
                let Ok(_permit) = pool.starting.acquire().await else { return };
                if !pool.shelves().begin(&key) {
                    return;
                }
                match Member::start(&inner.spawner, &key, held.clone()).await {
                    Ok(member) => {
                        let gone = pool.shelves().put(&key, member);
                        drop(gone);
                    }
                    Err(error) => {
                        tracing::debug!(%error, "No interpreter could be started ahead of a call: {error}");
                        pool.shelves().fail(&key, matches!(error, NotReady::Unfit(_)));
                    }
                }
            }
        });
    }

    /// Has the inspector read which modules a script imports.
    fn seek_imports(&self, request: &RunRequest) {
        let Some(pool) = &self.inner.pool else { return };
        let (language, code) = (request.language, request.code.clone());
        let digest = digest(language, &code);
        {
            let mut imports = pool.imports();
            let sought = imports.values().filter(|known| matches!(known, Imports::Sought)).count();
            if sought >= SOUGHT || imports.contains_key(&digest) {
                return;
            }
            if imports.len() >= KNOWN {
                imports.retain(|_, known| matches!(known, Imports::Sought));
            }
            imports.insert(digest, Imports::Sought);
        }
        let weak = Arc::downgrade(&self.inner);
        tokio::spawn(async move {
            let Some(inner) = weak.upgrade() else { return };
            let Some(pool) = &inner.pool else { return };
            let Ok(_permit) = pool.starting.acquire().await else { return };
            let runner = Self { inner: inner.clone() };
            let preload = match runner.inspect(language, &code).await {
                Ok(Ok(inspection)) => inspection.preload,
                // It was saved, so it could be parsed then: it is served without imports.
                Ok(Err(_)) => Vec::new(),
                Err(error) => {
                    tracing::debug!(%error, "Imports could not be read: {error}");
                    pool.imports().remove(&digest);
                    return;
                }
            };
            pool.imports().insert(digest, Imports::Known(preload.into()));
        });
    }
}
