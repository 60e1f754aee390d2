//! From a lock to a directory of installed packages: once per hash, whole or not at all.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::directory::{self, EnvironmentUse, LockKind};
use super::error::EnvironmentError;
use super::uv::{self, Task};
use super::{Environments, Inner, lock};
use crate::model::EnvironmentLock;

/// How often a build of another process is looked at.
const PERIOD: Duration = Duration::from_millis(100);
/// How often the size of ours is.
const SIZED: Duration = Duration::from_secs(1);

/// How far a build is.
#[derive(Clone, Debug)]
enum Progress {
    /// In words.
    Doing(String),
    /// It has ended.
    Done(Result<(), EnvironmentError>),
}

/// The builds of this process, by hash.
#[derive(Clone, Debug, Default)]
pub(super) struct Builds {
    running: Arc<Mutex<HashMap<String, watch::Receiver<Progress>>>>,
}

impl Builds {
    fn map(&self) -> MutexGuard<'_, HashMap<String, watch::Receiver<Progress>>> {
        // Only whole entries are ever written.
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn is_running(&self, hash: &str) -> bool {
        self.map().contains_key(hash)
    }
}

/// Takes a build off the list when it ends, also when it panics.
struct Listed {
    builds: Builds,
    hash: String,
}

impl Drop for Listed {
    fn drop(&mut self) {
        self.builds.map().remove(&self.hash);
    }
}

impl Environments {
    /// The directory of an environment, built first where that is needed. Whoever asks while it is being built waits for
    /// that build; after a failure, the next call tries again.
    ///
    /// # Errors
    /// [`EnvironmentError`]; where the installer failed, its text is uv's own cause and hint.
    ///
    /// # Cancellation
    /// Dropping the future ends the waiting, not the build.
    pub async fn ready(&self, lock: &EnvironmentLock) -> Result<PathBuf, EnvironmentError> {
        self.ready_with_progress(lock, |_| {}).await
    }

    /// As [`Self::ready`]; says in words how far the build is.
    ///
    /// # Errors
    /// As [`Self::ready`].
    pub async fn ready_with_progress(
        &self,
        lock: &EnvironmentLock,
        progress: impl FnMut(&str),
    ) -> Result<PathBuf, EnvironmentError> {
        self.hold(lock, progress).await.map(|(path, _)| path)
    }

    /// As [`Self::ready_with_progress`], and keeps the environment from being removed as long as the second value lives.
    ///
    /// # Errors
    /// As [`Self::ready`].
    pub async fn hold(
        &self,
        lock: &EnvironmentLock,
        mut progress: impl FnMut(&str),
    ) -> Result<(PathBuf, EnvironmentUse), EnvironmentError> {
        let hash = self.inner.hash(lock);
        let path = self.inner.directories.environment(&hash);
        loop {
            if path.is_dir() {
                let held = self.inner.directories.try_lock(&hash, LockKind::Shared);
                let held = held.map_err(EnvironmentError::files("lock an environment"))?;
                // Not held: someone removes it just now. Gone: someone has.
                if let Some(held) = held
                    && self.inner.directories.note_use(&hash).is_ok()
                {
                    return Ok((path, held));
                }
                tokio::time::sleep(PERIOD).await;
            } else {
                self.build_or_wait(&hash, lock, &mut progress).await?;
            }
        }
    }

    async fn build_or_wait(
        &self,
        hash: &str,
        lock: &EnvironmentLock,
        progress: &mut impl FnMut(&str),
    ) -> Result<(), EnvironmentError> {
        let mut watched = self.watch_build(hash, lock);
        loop {
            let now = watched.borrow_and_update().clone();
            match now {
                Progress::Done(result) => return result,
                Progress::Doing(words) => progress(&words),
            }
            if watched.changed().await.is_err() {
                let (doing, problem) = ("building the environment".to_owned(), "the server is stopping".to_owned());
                return Err(EnvironmentError::Stopped { doing, problem });
            }
        }
    }

    /// Joins the build of this hash, or starts it.
    fn watch_build(&self, hash: &str, lock: &EnvironmentLock) -> watch::Receiver<Progress> {
        let mut running = self.inner.builds.map();
        if let Some(watched) = running.get(hash) {
            return watched.clone();
        }
        let (tell, watched) = watch::channel(Progress::Doing("waiting to install the dependencies".to_owned()));
        running.insert(hash.to_owned(), watched.clone());
        let listed = Listed { builds: self.inner.builds.clone(), hash: hash.to_owned() };
        let (inner, lock) = (self.inner.clone(), lock.clone());
        // A task of its own: a caller that gives up must not end what others wait for, and what a later call needs. It ends
        // with the runtime, and the installer with it.
        tokio::spawn(async move {
            let result = inner.build(&listed.hash, &lock, &tell).await;
            inner.remember(&listed.hash, result.as_ref().err());
            // Off the list first, so that a call after this failure starts anew.
            drop(listed);
            // Nobody may be waiting.
            tell.send_replace(Progress::Done(result));
        });
        watched
    }
}

impl Inner {
    async fn build(
        &self,
        hash: &str,
        lock: &EnvironmentLock,
        tell: &watch::Sender<Progress>,
    ) -> Result<(), EnvironmentError> {
        let pins = lock::parse(&lock.lock)?;
        self.check_allowed(pins.iter().map(|pin| pin.name.as_str()))?;
        let held = self.lock_exclusively(hash).await?;
        if self.directories.environment(hash).is_dir() {
            return Ok(());
        }
        let _permit = self.building.acquire().await.expect("the semaphore is never closed");
        tell.send_replace(Progress::Doing(format!("installing {}", counted(pins.len()))));
        let name = format!("{hash}-{}", uuid::Uuid::now_v7());
        let build = Unfinished { path: self.directories.builds().join(&name) };
        let target = format!("builds/{name}");
        let text = lock::render(&pins);
        let task = Task::Install { target: &target };
        let output = tokio::select! {
            output = self.run_uv(&task, &text) => output?,
            bytes = outgrown(build.path.clone(), self.options.max_bytes_each) => {
                return Err(EnvironmentError::TooLarge { bytes, limit: self.options.max_bytes_each });
            }
        };
        uv::outcome(output, "installing the dependencies", self.seconds())?;
        self.finish(hash, build, held).await
    }

    /// Waits until no other process builds or removes this environment.
    async fn lock_exclusively(&self, hash: &str) -> Result<EnvironmentUse, EnvironmentError> {
        loop {
            let held = self.directories.try_lock(hash, LockKind::Exclusive);
            if let Some(held) = held.map_err(EnvironmentError::files("lock an environment"))? {
                return Ok(held);
            }
            tokio::time::sleep(PERIOD).await;
        }
    }

    /// Checks what was installed and moves it into place.
    async fn finish(&self, hash: &str, mut build: Unfinished, held: EnvironmentUse) -> Result<(), EnvironmentError> {
        let (directories, limit, hash) = (self.directories.clone(), self.options.max_bytes_each, hash.to_owned());
        let finished = tokio::task::spawn_blocking(move || {
            // Held until it is in place, whatever becomes of the task that waits for this.
            let _held = held;
            // Out of the reach of other installers before anything is changed by its path.
            let partial = directories.partial(&hash);
            match std::fs::rename(&build.path, &partial) {
                // uv makes no directory when there is nothing to install for this platform.
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => std::fs::create_dir(&partial),
                renamed => renamed,
            }
            .map_err(EnvironmentError::files("take an environment over from its builder"))?;
            build.path = partial;
            let bytes = directory::tree_size(&build.path, &mut HashSet::new(), &CancellationToken::new());
            if bytes > limit {
                return Err(EnvironmentError::TooLarge { bytes, limit });
            }
            directory::settle_modes(&build.path).map_err(EnvironmentError::files("settle an environment's modes"))?;
            directories.install(&build.path, &hash).map_err(EnvironmentError::files("move an environment into place"))
        });
        finished.await.unwrap_or_else(|error| {
            let doing = "installing the dependencies".to_owned();
            Err(EnvironmentError::Stopped { doing, problem: error.to_string() })
        })
    }
}

/// A build's directory; removed when dropped, unless it has been moved into place.
struct Unfinished {
    path: PathBuf,
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        let path = std::mem::take(&mut self.path);
        match tokio::runtime::Handle::try_current() {
            Ok(runtime) => drop(runtime.spawn_blocking(move || remove(&path))),
            Err(_) => remove(&path),
        }
    }
}

/// Removes it. Where the build was dropped, the installer is only just being killed, and may still write.
fn remove(path: &Path) {
    for attempt in 0..20 {
        if directory::remove_tree(path).is_ok() {
            return;
        }
        std::thread::sleep(Duration::from_millis(10 * attempt));
    }
    tracing::warn!(path = %path.display(), "Could not remove the unfinished environment `{}`", path.display());
}

/// Comes back with the size once a directory has grown beyond the limit.
async fn outgrown(path: PathBuf, limit: u64) -> u64 {
    loop {
        tokio::time::sleep(SIZED).await;
        let (path, stop) = (path.clone(), CancellationToken::new());
        let _stopped = stop.clone().drop_guard();
        let size = tokio::task::spawn_blocking(move || directory::tree_size(&path, &mut HashSet::new(), &stop));
        match size.await {
            Ok(bytes) if bytes > limit => return bytes,
            _ => {}
        }
    }
}

fn counted(packages: usize) -> String {
    if packages == 1 { "1 package".to_owned() } else { format!("{packages} packages") }
}
