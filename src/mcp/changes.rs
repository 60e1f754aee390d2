//! News of the catalogue, brought to every stream that wants it.
//!
//! One task follows [`Domain::changes`] and counts them in a watch channel: a stream that lags sees the newest count,
//! never a queue, so bursts are told once and a client that doesn't read costs nothing.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::{broadcast, watch};
use tokio_util::sync::CancellationToken;

use crate::tools::Domain;

/// The pause after one notification before the next on the same stream.
const COALESCE: Duration = Duration::from_millis(300);

/// Where changes can be waited for.
#[derive(Clone, Debug)]
pub struct Changes {
    count: watch::Receiver<u64>,
    shutdown: CancellationToken,
}

impl Changes {
    /// Starts following the domain until `shutdown`.
    pub fn follow(domain: &Arc<dyn Domain>, shutdown: CancellationToken) -> Self {
        let mut news = domain.changes();
        let (sender, count) = watch::channel(0);
        let stop = shutdown.clone();
        tokio::spawn(async move {
            loop {
                let change = tokio::select! {
                    change = news.recv() => change,
                    () = stop.cancelled() => return,
                };
                match change {
                    Ok(_) | Err(broadcast::error::RecvError::Lagged(_)) => sender.send_modify(|count| *count += 1),
                    Err(broadcast::error::RecvError::Closed) => return stop.cancelled().await,
                }
            }
        });
        Self { count, shutdown }
    }

    /// How many changes were heard of.
    pub fn count(&self) -> u64 {
        *self.count.borrow()
    }

    /// Ends when streams are to be closed.
    pub async fn closed(&self) {
        self.shutdown.cancelled().await;
    }

    /// Follows the changes for one stream, beginning with those after the first `told`.
    pub fn listener(&self, told: Arc<AtomicU64>) -> Listener {
        Listener { count: self.count.clone(), shutdown: self.shutdown.clone(), told, pause: false }
    }
}

/// One stream's view of the changes.
#[derive(Debug)]
pub struct Listener {
    count: watch::Receiver<u64>,
    shutdown: CancellationToken,
    told: Arc<AtomicU64>,
    pause: bool,
}

impl Listener {
    /// Waits for a change that was not told yet; `false` when the server shuts down.
    ///
    /// # Cancellation
    /// Safe: a change is marked as told only when this returns.
    pub async fn next(&mut self) -> bool {
        if self.pause {
            tokio::select! {
                () = tokio::time::sleep(COALESCE) => self.pause = false,
                () = self.shutdown.cancelled() => return false,
            }
        }
        loop {
            let count = *self.count.borrow_and_update();
            if self.told.fetch_max(count, Ordering::SeqCst) < count {
                self.pause = true;
                return true;
            }
            tokio::select! {
                changed = self.count.changed() => {
                    if changed.is_err() {
                        return false;
                    }
                }
                () = self.shutdown.cancelled() => return false,
            }
        }
    }
}
