//! Removes environments that nobody uses, and what dead builders left.

use std::collections::HashSet;
use std::time::Duration;

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
    /// # Errors
    /// [`EnvironmentError::Files`] when the directory can't be read. What can't be removed is left for the next time.
    pub async fn collect_garbage(&self, needed: &[EnvironmentLock]) -> Result<Collected, EnvironmentError> {
        // By the names of today: with another interpreter than that of the save, another environment is in use.
        let in_use: HashSet<String> = needed.iter().map(|lock| self.inner.hash(lock)).collect();
        let limit = self.inner.options.max_bytes_all;
        let mut collected = self.blocking(&in_use, |inner, in_use| inner.collect_unwanted(in_use)).await?;
        if collected.bytes > limit && self.available() {
            collected.cache_emptied = self.inner.empty_cache().await;
            let rest = self.blocking(&in_use, |inner, in_use| inner.collect_wanted(in_use)).await?;
            collected.removed.extend(rest.removed);
            collected.bytes = rest.bytes;
        }
        Ok(collected)
    }

    async fn blocking(
        &self,
        in_use: &HashSet<String>,
        work: impl FnOnce(&Inner, &HashSet<String>) -> std::io::Result<Collected> + Send + 'static,
    ) -> Result<Collected, EnvironmentError> {
        let (inner, in_use) = (self.inner.clone(), in_use.clone());
        let collected = tokio::task::spawn_blocking(move || work(&inner, &in_use)).await;
        let doing = "remove unused environments";
        collected.unwrap_or_else(|error| Err(std::io::Error::other(error))).map_err(EnvironmentError::files(doing))
    }
}

impl Inner {
    fn collect_unwanted(&self, in_use: &HashSet<String>) -> std::io::Result<Collected> {
        let leftovers = self.remove_leftovers()?;
        self.directories.remove_unused_locks()?;
        let (found, bytes) = self.survey(in_use)?;
        let mut collected = Collected { leftovers, bytes, ..Collected::default() };
        for found in found.iter().filter(|found| !found.wanted) {
            if found.idle > self.options.keep || collected.bytes > self.options.max_bytes_all {
                self.remove_unused(found, &mut collected);
            }
        }
        Ok(collected)
    }

    fn collect_wanted(&self, in_use: &HashSet<String>) -> std::io::Result<Collected> {
        let (found, bytes) = self.survey(in_use)?;
        let mut collected = Collected { bytes, ..Collected::default() };
        for found in &found {
            if collected.bytes > self.options.max_bytes_all {
                self.remove_unused(found, &mut collected);
            }
        }
        Ok(collected)
    }

    /// All environments, longest idle first, and the bytes of everything. A file that the cache has, too, counts there.
    fn survey(&self, in_use: &HashSet<String>) -> std::io::Result<(Vec<Found>, u64)> {
        let mut counted = HashSet::new();
        let mut total = directory::tree_size(&self.directories.work(), &mut counted);
        let mut found = Vec::new();
        for hash in self.directories.environments()? {
            let bytes = directory::tree_size(&self.directories.environment(&hash), &mut counted);
            total += bytes;
            let idle = self.directories.idle(&hash).unwrap_or_default();
            found.push(Found { wanted: in_use.contains(&hash), hash, bytes, idle });
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
