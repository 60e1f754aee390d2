//! Records run rows off the call's path: rows wait in memory for at most 50 ms and are written together. Until they
//! are, reads find them here.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use sqlx::SqlitePool;
use tokio::sync::{Notify, mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep_until};
use tracing::error;

use super::StoreError;
use super::run_rows::upsert;
use crate::model::{RunId, RunRow};

const BATCH_EVERY: Duration = Duration::from_millis(50);
const RETRY_AFTER: Duration = Duration::from_secs(1);
const ROWS_A_TRANSACTION: usize = 256;
const ROWS_WAITING: usize = 4096;
const BYTES_WAITING: usize = 256 << 20;
const FLUSHES_WAITING: usize = 64;

type Flush = oneshot::Sender<Result<(), StoreError>>;

/// The rows that wait, and the task that writes them.
#[derive(Debug)]
pub(super) struct Recorder {
    shared: Arc<Shared>,
    flushes: Mutex<Option<mpsc::Sender<Flush>>>,
    task: Mutex<Option<JoinHandle<Result<(), StoreError>>>>,
}

#[derive(Debug)]
struct Shared {
    writer: SqlitePool,
    waiting: Mutex<Waiting>,
    arrived: Notify,
}

#[derive(Debug, Default)]
struct Waiting {
    rows: HashMap<RunId, (u64, Arc<RunRow>)>,
    bytes: usize,
    changes: u64,
}

impl Recorder {
    /// Starts the task; it ends with [`Recorder::stop`], or when the recorder is dropped.
    pub fn start(writer: SqlitePool) -> Self {
        let shared = Arc::new(Shared { writer, waiting: Mutex::default(), arrived: Notify::new() });
        let (sender, receiver) = mpsc::channel(FLUSHES_WAITING);
        let task = tokio::spawn(run(shared.clone(), receiver));
        Self { shared, flushes: Mutex::new(Some(sender)), task: Mutex::new(Some(task)) }
    }

    /// Takes a run that begins, unless too many rows wait.
    pub fn begin(&self, row: RunRow) -> Result<(), StoreError> {
        let mut waiting = lock(&self.shared.waiting);
        if waiting.rows.len() >= ROWS_WAITING || waiting.bytes >= BYTES_WAITING {
            return Err(StoreError::Busy);
        }
        waiting.put(row);
        drop(waiting);
        self.shared.arrived.notify_one();
        Ok(())
    }

    /// Takes a newer state of a run that was begun. Never refused: a run that ran must not be lost, and how many can
    /// end at once is bounded by how many may run.
    pub fn put(&self, row: RunRow) {
        lock(&self.shared.waiting).put(row);
        self.shared.arrived.notify_one();
    }

    /// The row of this run, if it waits.
    pub fn get(&self, id: RunId) -> Option<Arc<RunRow>> {
        lock(&self.shared.waiting).rows.get(&id).map(|(_, row)| row.clone())
    }

    /// Every row that waits.
    pub fn all(&self) -> Vec<Arc<RunRow>> {
        lock(&self.shared.waiting).rows.values().map(|(_, row)| row.clone()).collect()
    }

    /// Writes every row that waits, and returns when that is done.
    pub async fn flush(&self) -> Result<(), StoreError> {
        let sender = lock(&self.flushes).clone();
        let (reply, written) = oneshot::channel();
        match sender {
            Some(sender) if sender.send(reply).await.is_ok() => written.await.unwrap_or(Ok(())),
            _ => self.shared.write().await, // stopped: the rest, if any, is written from here
        }
    }

    /// Writes what waits and ends the task.
    pub async fn stop(&self) -> Result<(), StoreError> {
        lock(&self.flushes).take();
        let task = lock(&self.task).take();
        match task {
            Some(task) => task.await.expect("the task that records runs does not panic"),
            None => Ok(()),
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // What is behind these locks is whole between any two statements, so a panic elsewhere spoils nothing.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Waiting {
    fn put(&mut self, row: RunRow) {
        self.changes += 1;
        self.bytes += size(&row);
        if let Some((_, older)) = self.rows.insert(row.id, (self.changes, Arc::new(row))) {
            self.bytes -= size(&older);
        }
    }
}

fn size(row: &RunRow) -> usize {
    let result = row.result.as_ref().map_or(0, String::len);
    512 + row.arguments.get().len() + result + row.stdout.len() + row.stderr.len() + row.log.len()
}

/// The recording task.
async fn run(shared: Arc<Shared>, mut flushes: mpsc::Receiver<Flush>) -> Result<(), StoreError> {
    let mut due: Option<Instant> = None;
    loop {
        // Cancel-safe: `recv`, `notified` (its permit stays) and `sleep_until` lose nothing when another branch wins.
        tokio::select! {
            flush = flushes.recv() => {
                let written = shared.write().await;
                let Some(flush) = flush else { return written };
                due = written.is_err().then(|| Instant::now() + RETRY_AFTER);
                let _ = flush.send(written); // whoever asked may have gone
            }
            () = shared.arrived.notified(), if due.is_none() => due = Some(Instant::now() + BATCH_EVERY),
            () = sleep_until(due.unwrap_or_else(Instant::now)), if due.is_some() => {
                due = None;
                if let Err(failure) = shared.write().await {
                    error!(error = &failure as &dyn std::error::Error, "Cannot record runs; trying again");
                    due = Some(Instant::now() + RETRY_AFTER);
                }
            }
        }
    }
}

impl Shared {
    /// Writes the rows that wait now, some hundreds a transaction so that other writers get their turn.
    async fn write(&self) -> Result<(), StoreError> {
        let mut rows: Vec<(u64, Arc<RunRow>)> = lock(&self.waiting).rows.values().cloned().collect();
        rows.sort_unstable_by_key(|(_, row)| row.id);
        for batch in rows.chunks(ROWS_A_TRANSACTION) {
            let mut transaction = self.writer.begin_with("BEGIN IMMEDIATE").await?;
            for (_, row) in batch {
                if let Err(failure) = upsert(&mut transaction, row).await {
                    if !is_bad_row(&failure) {
                        return Err(failure);
                    }
                    // It would fail again and hold up all others.
                    error!(run.id = %row.id, error = &failure as &dyn std::error::Error, "Cannot record a run; it is lost");
                }
            }
            transaction.commit().await?;
            self.forget(batch);
        }
        Ok(())
    }

    /// Forgets the rows that were written, unless they have changed meanwhile.
    fn forget(&self, written: &[(u64, Arc<RunRow>)]) {
        let mut waiting = lock(&self.waiting);
        for (change, row) in written {
            if waiting.rows.get(&row.id).is_some_and(|(current, _)| current == change) {
                waiting.rows.remove(&row.id);
                waiting.bytes -= size(row);
            }
        }
    }
}

/// Whether this row, rather than the database, is to blame.
fn is_bad_row(failure: &StoreError) -> bool {
    let StoreError::Database { source } = failure else { return true };
    match source.downcast_ref::<sqlx::Error>() {
        Some(sqlx::Error::Database(error)) => {
            error.is_check_violation() || error.kind() == sqlx::error::ErrorKind::NotNullViolation
        }
        _ => false,
    }
}
