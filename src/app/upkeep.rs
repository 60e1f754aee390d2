//! What must be put right at a start, and kept in order after it.

use std::path::Path;
use std::time::Duration;

use anyhow::Context;
use tokio_util::sync::CancellationToken;

use crate::auth::Auth;
use crate::config::History;
use crate::lifecycle::InstanceLock;
use crate::runner::{Collected, Environments, Outputs};
use crate::store::{RunSummary, Store};
use crate::tools::Tools;

/// How long outputs are kept that did not fit inline, and how many bytes.
const OUTPUTS_KEPT: (Duration, u64) = (Duration::from_secs(7 * 24 * 3600), 5 << 30);
const UPKEEP_INTERVAL: Duration = Duration::from_secs(600);

/// Marks the runs of dead processes as interrupted and removes what they left. An instance is dead when nobody holds
/// its lock; ours is held by us. Returns those runs.
///
/// # Errors
/// When the store or the data directory can't be read or cleaned.
pub async fn sweep(store: &Store, data_dir: &Path, ours: &str) -> anyhow::Result<Vec<RunSummary>> {
    let mut dead = Vec::new();
    for instance in store.list_instances().await? {
        if instance.id != ours && InstanceLock::is_free(data_dir, &instance.id)? {
            dead.push(instance.id);
        }
    }
    let interrupted = store.interrupt_runs(&dead).await?;
    for instance in &dead {
        InstanceLock::remove(data_dir, instance)
            .with_context(|| format!("cannot remove what the dead process {instance} left"))?;
        store.remove_instance(instance).await?;
    }
    sweep_strays(store, data_dir, ours).await?;
    if !dead.is_empty() {
        let (processes, runs) = (dead.len(), interrupted.len());
        tracing::info!(processes, runs, "Swept {processes} dead process(es); {runs} run(s) were interrupted");
    }
    Ok(interrupted)
}

/// Directories of processes that died before they were registered.
async fn sweep_strays(store: &Store, data_dir: &Path, ours: &str) -> anyhow::Result<()> {
    let known: Vec<String> = store.list_instances().await?.into_iter().map(|instance| instance.id).collect();
    let Ok(entries) = std::fs::read_dir(data_dir.join("instances")) else { return Ok(()) };
    for entry in entries.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let id = name.strip_suffix(".lock").unwrap_or(&name);
        let stray = id != ours && !known.iter().any(|known| known == id);
        if stray && InstanceLock::is_free(data_dir, id)? {
            InstanceLock::remove(data_dir, id)?;
        }
    }
    Ok(())
}

/// How long runs are counted by five minutes.
const NARROW_COUNTS: Duration = Duration::from_secs(48 * 3600);

/// What is kept in order while the server runs.
pub struct Keeper {
    /// Where old rows are forgotten.
    pub store: Store,
    /// Where expired sign-ins are.
    pub auth: Auth,
    /// Where unused environments are removed.
    pub environments: Environments,
    /// Whose long outputs are kept for a while.
    pub outputs: Outputs,
    /// Whose versions may wait for their environments.
    pub tools: Tools,
    /// How much of the runs' history is kept.
    pub history: History,
    /// How long entries of the audit log are kept; for good when unset.
    pub audit_keep: Option<Duration>,
}

impl Keeper {
    /// Forgets old results, old rows and expired sign-ins, goes on with installing, and removes unused environments: at the start and every ten minutes, until
    /// the server closes.
    pub async fn keep(self, closing: CancellationToken) {
        let mut interval = tokio::time::interval(UPKEEP_INTERVAL);
        interval.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let work = async {
            loop {
                interval.tick().await;
                if let Err(error) = self.forget().await {
                    tracing::warn!(%error, "Forgetting old rows failed; trying again in 10 minutes");
                }
                if let Some(keep) = self.audit_keep
                    && let Err(error) = self.store.prune_audit(keep).await
                {
                    tracing::error!(%error, "The audit log could not be pruned: `omniforge audit verify` says more");
                }
                if let Err(error) = self.tools.resume_installing().await {
                    tracing::warn!(%error, "Looking for what is to be installed failed; trying again in 10 minutes");
                }
                if let Err(error) = self.outputs.sweep(OUTPUTS_KEPT.0, OUTPUTS_KEPT.1).await {
                    tracing::warn!(%error, "Removing old outputs failed; trying again in 10 minutes");
                }
                if let Err(error) = self.collect().await {
                    tracing::warn!(%error, "Removing unused environments failed; trying again in 10 minutes");
                }
            }
        };
        tokio::select! {
            () = closing.cancelled() => {}
            () = work => {}
        }
    }

    async fn forget(&self) -> anyhow::Result<()> {
        let History { results, rows, count } = self.history;
        self.store.forget_results_ended_before(self.store.clock().earlier(results)).await?;
        self.store.delete_runs_ended_before(self.store.clock().earlier(rows)).await?;
        self.store.delete_runs_beyond(count).await?;
        let clock = self.store.clock();
        self.store.forget_counts_before(clock.earlier(NARROW_COUNTS), clock.earlier(rows)).await?;
        self.auth.forget_expired().await?;
        Ok(())
    }

    async fn collect(&self) -> anyhow::Result<()> {
        let needed = self.store.needed_locks().await?;
        let collected = self.environments.collect_garbage(&needed).await?;
        if collected != (Collected { bytes: collected.bytes, ..Collected::default() }) {
            let (removed, leftovers, size_bytes) = (collected.removed.len(), collected.leftovers, collected.bytes);
            let emptied = if collected.cache_emptied { ", and emptied the cache" } else { "" };
            tracing::info!(
                removed,
                leftovers,
                size_bytes,
                "Removed {removed} unused environment(s) and {leftovers} leftover(s){emptied}"
            );
        }
        Ok(())
    }
}
