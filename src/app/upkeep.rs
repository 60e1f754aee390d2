//! What must be put right at a start, and kept in order after it.

use std::path::Path;
use std::time::Duration;

use anyhow::Context;
use tokio_util::sync::CancellationToken;

use crate::auth::Auth;
use crate::lifecycle::InstanceLock;
use crate::store::{RunSummary, Store};

/// How long run rows are kept, and how many.
const ROWS_KEPT: (Duration, u32) = (Duration::from_secs(30 * 24 * 3600), 1_000_000);
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

/// Forgets old rows and expired sign-ins until the server closes.
pub async fn keep(store: Store, auth: Auth, closing: CancellationToken) {
    let mut interval = tokio::time::interval(UPKEEP_INTERVAL);
    interval.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            () = closing.cancelled() => return,
            _ = interval.tick() => {}
        }
        let before = store.clock().earlier(ROWS_KEPT.0);
        let kept = async {
            store.delete_runs_ended_before(before).await?;
            store.delete_runs_beyond(ROWS_KEPT.1).await?;
            auth.forget_expired().await
        };
        if let Err(error) = kept.await {
            tracing::warn!(%error, "Forgetting old rows failed; trying again in 10 minutes");
        }
    }
}
