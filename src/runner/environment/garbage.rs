//! Removes environments that nobody uses, and what dead builders left.

use std::collections::HashSet;
use std::path::Path;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::directory::{self, LockKind};
use super::error::EnvironmentError;
use super::uv::{self, Task};
use super::{Environments, Inner};
use crate::model::EnvironmentLock;

/// One that was used this recently is never removed: its version may be saved only now, after the needed ones were listed.
const RECENT: Duration = Duration::from_secs(15 * 60);

/// What a collection did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Collected {
    /// The environments that were removed.
    pub removed: Vec<String>,
    /// How many leftovers of dead builders were removed.
    pub leftovers: usize,
    /// Bytes that environments and cache take now.
    pub bytes: u64,
    /// Whether the installer's cache was emptied, too.
    pub cache_emptied: bool,
}

/// What a collection goes by.
#[derive(Clone)]
struct Sweep {
    /// The environments that versions need.
    needed: HashSet<String>,
    /// Nobody waits for it any more. To look at all files may take long, and a process that ends waits for it.
    stop: CancellationToken,
}

struct Found {
    hash: String,
    bytes: u64,
    idle: Duration,
    wanted: bool,
}

impl Environments {
    /// Removes what dead builders left, and environments of no version that were long not used. While all together, with the
    /// installer's cache, are over their limit: the other environments of no version, then the cache, then versions' own,
    /// those used least recently first. Never one in use.
    ///
    /// `needed` holds the locks that versions have.
    ///
    /// # Cancellation
    /// Dropping the future ends the work soon; what was being removed is.
    ///
    /// # Errors
    /// [`EnvironmentError::Files`] when the directory can't be read. What can't be removed is left for the next time.
    pub async fn collect_garbage(&self, needed: &[EnvironmentLock]) -> Result<Collected, EnvironmentError> {
        // By the names of today: with another interpreter than that of the save, another environment is in use.
        let needed = needed.iter().map(|lock| self.inner.hash(lock)).collect();
        let sweep = Sweep { needed, stop: CancellationToken::new() };
        let _stopped = sweep.stop.clone().drop_guard();
        let limit = self.inner.options.max_bytes_all;
        let mut collected = self.blocking(&sweep, Inner::collect_unwanted).await?;
        if collected.bytes > limit && self.available() {
            collected.cache_emptied = self.inner.empty_cache().await;
            let rest = self.blocking(&sweep, Inner::collect_wanted).await?;
            collected.removed.extend(rest.removed);
            collected.bytes = rest.bytes;
        }
        Ok(collected)
    }

    async fn blocking(
        &self,
        sweep: &Sweep,
        work: fn(&Inner, &Sweep) -> std::io::Result<Collected>,
    ) -> Result<Collected, EnvironmentError> {
        let (inner, sweep) = (self.inner.clone(), sweep.clone());
        let collected = tokio::task::spawn_blocking(move || work(&inner, &sweep)).await;
        let doing = "remove unused environments";
        collected.unwrap_or_else(|error| Err(std::io::Error::other(error))).map_err(EnvironmentError::files(doing))
    }
}

impl Inner {
    fn collect_unwanted(&self, sweep: &Sweep) -> std::io::Result<Collected> {
        let leftovers = self.remove_leftovers()?;
        self.directories.remove_unused_locks()?;
        let (found, bytes) = self.survey(sweep)?;
        let mut collected = Collected { leftovers, bytes, ..Collected::default() };
        for found in found.iter().filter(|found| !found.wanted) {
            if sweep.stop.is_cancelled() {
                break;
            }
            if found.idle > self.options.keep || collected.bytes > self.options.max_bytes_all {
                self.remove_unused(found, &mut collected);
            }
        }
        Ok(collected)
    }

    fn collect_wanted(&self, sweep: &Sweep) -> std::io::Result<Collected> {
        let (found, bytes) = self.survey(sweep)?;
        let mut collected = Collected { bytes, ..Collected::default() };
        for found in &found {
            if sweep.stop.is_cancelled() {
                break;
            }
            if collected.bytes > self.options.max_bytes_all {
                self.remove_unused(found, &mut collected);
            }
        }
        Ok(collected)
    }

    /// All environments, longest idle first, and the bytes of everything. A file that the cache has, too, counts there.
    fn survey(&self, sweep: &Sweep) -> std::io::Result<(Vec<Found>, u64)> {
        let mut counted = HashSet::new();
        let mut size = |path: &Path| match directory::tree_size(path, &mut counted, &sweep.stop) {
            _ if sweep.stop.is_cancelled() => Err(std::io::Error::from(std::io::ErrorKind::Interrupted)),
            size => Ok(size),
        };
        let mut total = size(&self.directories.work())?;
        let mut found = Vec::new();
        for hash in self.directories.environments()? {
            let bytes = size(&self.directories.environment(&hash))?;
            total += bytes;
            let idle = self.directories.idle(&hash).unwrap_or_default();
            found.push(Found { wanted: sweep.needed.contains(&hash), hash, bytes, idle });
        }
        found.sort_by_key(|found| std::cmp::Reverse(found.idle));
        Ok((found, total))
    }

    /// Removes an environment, unless it is or may be in use.
    fn remove_unused(&self, found: &Found, collected: &mut Collected) {
        if found.idle < RECENT {
            return;
        }
        let hash = &found.hash;
        let removed = match self.directories.try_lock(hash, LockKind::Exclusive) {
            Ok(Some(held)) => self.directories.remove_environment(hash, &held),
            Ok(None) => return,
            Err(error) => Err(error),
        };
        match removed {
            Ok(()) => {
                collected.bytes = collected.bytes.saturating_sub(found.bytes);
                collected.removed.push(hash.clone());
            }
            Err(error) => {
                tracing::warn!(environment = %hash, %error, "Could not remove the environment {hash}: {error}");
            }
        }
    }

    fn remove_leftovers(&self) -> std::io::Result<usize> {
        let mut removed = 0;
        for path in self.directories.leftovers()? {
            let hash = directory::hash_of_leftover(&path);
            // A living builder or remover holds the lock; one that is dead doesn't.
            let held = hash.map(|hash| self.directories.try_lock(hash, LockKind::Exclusive)).transpose()?;
            if !matches!(held, Some(None)) {
                match directory::remove_tree(&path) {
                    Ok(()) => removed += 1,
                    Err(error) => {
                        tracing::warn!(path = %path.display(), %error, "Could not remove {}: {error}", path.display())
                    }
                }
            }
        }
        Ok(removed)
    }

    async fn empty_cache(&self) -> bool {
        let output = self.run_uv(&Task::CleanCache, "").await;
        match output.and_then(|output| uv::outcome(output, "emptying the cache", self.seconds())) {
            Ok(_) => true,
            Err(error) => {
                tracing::warn!(%error, "Could not empty the cache of packages: {error}");
                false
            }
        }
    }
}
