//! Interpreters that wait for a call: started and sandboxed before it comes, used for exactly one, then gone.
//!
//! What a member holds before its call is in its [`Key`]: the whole spec of its sandbox and the modules that it has imported.
//! Code, arguments and context come with the call. Where none waits, the call starts one of its own at once.

mod fill;
mod key;
mod member;
mod shelves;

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Semaphore;

use super::RunRequest;
use super::inspection::Import;
use super::sandbox::spec::Spec;
use crate::model::Language;
pub(super) use fill::keep;
pub(super) use key::Key;
pub(super) use member::Member;
use shelves::Shelves;

/// The most scripts whose imports are remembered.
const KNOWN: usize = 4096;

/// How often a waiting interpreter was there for a call that could have used one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WarmCounts {
    /// It was.
    pub hits: u64,
    /// It wasn't.
    pub misses: u64,
}

/// What is known of a script's imports.
#[derive(Clone)]
enum Imports {
    /// They are being looked for.
    Sought,
    /// These.
    Known(Arc<[Import]>),
}

/// All that wait.
pub(super) struct Pool {
    shelves: Mutex<Shelves>,
    imports: Mutex<HashMap<blake3::Hash, Imports>>,
    /// Members and inspections that may be started at once: they shall leave processors to calls.
    starting: Semaphore,
    hits: AtomicU64,
    misses: AtomicU64,
}

impl std::fmt::Debug for Pool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pool").field("counts", &self.counts()).finish_non_exhaustive()
    }
}

/// What a call finds.
pub(super) enum Found {
    /// One that waits for it.
    Member(Box<Member>),
    /// None, and none of this kind is being made: the script's imports are to be looked for.
    Unknown,
    /// None; members of this key are wanted.
    None(Key),
}

impl Pool {
    pub(super) fn new() -> Self {
        let cores = std::thread::available_parallelism().map_or(2, usize::from);
        Self {
            shelves: Mutex::default(),
            imports: Mutex::default(),
            starting: Semaphore::new((cores / 2).max(1)),
            hits: AtomicU64::new(0),
            misses: AtomicU64::new(0),
        }
    }

    /// How often one was there.
    pub(super) fn counts(&self) -> WarmCounts {
        WarmCounts { hits: self.hits.load(Ordering::Relaxed), misses: self.misses.load(Ordering::Relaxed) }
    }

    /// Looks for one that can serve this call; `spec` is that of waiting sandboxes for it. Notes the demand.
    pub(super) fn find(&self, request: &RunRequest, spec: Spec) -> (Found, Option<Key>) {
        let found = match self.imports_of(request) {
            None => Found::Unknown,
            Some(imports) => {
                let key = self.shelves().usable(Key::new(spec, request.style, imports));
                match self.shelves().take(&key) {
                    Some(member) => {
                        self.hits.fetch_add(1, Ordering::Relaxed);
                        return (Found::Member(Box::new(member)), Some(key));
                    }
                    None => Found::None(key),
                }
            }
        };
        self.misses.fetch_add(1, Ordering::Relaxed);
        (found, None)
    }

    fn imports_of(&self, request: &RunRequest) -> Option<Arc<[Import]>> {
        match self.imports().get(&digest(request.language, &request.code)) {
            Some(Imports::Known(imports)) => Some(imports.clone()),
            _ => None,
        }
    }

    fn shelves(&self) -> MutexGuard<'_, Shelves> {
        // Whole members are put in and taken out; nothing is left half done.
        self.shelves.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn imports(&self) -> MutexGuard<'_, HashMap<blake3::Hash, Imports>> {
        self.imports.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether a call can be served by one that waits, as far as the request goes. Secrets are in the environment of a process
/// from its start, and modules read it when they are imported; a network is opened with the sandbox.
pub(super) fn may_serve(request: &RunRequest) -> bool {
    let language = matches!(request.language, Language::Python | Language::JavaScript | Language::TypeScript);
    let held = request.environment.is_none() || request.held.is_some();
    let network = matches!(request.network, super::RunNetwork::None);
    request.may_wait && language && held && network && request.secrets.is_empty()
}

fn digest(language: Language, code: &str) -> blake3::Hash {
    let mut hasher = blake3::Hasher::new();
    hasher.update(language.as_str().as_bytes());
    hasher.update(b"\0");
    hasher.update(code.as_bytes());
    hasher.finalize()
}
