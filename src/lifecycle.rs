//! Starting and stopping: the steps of the end and their times, the tasks that are waited for, and the lock that says a
//! process lives.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{FlockOperation, flock};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// How long the answers of killed calls may take to be made, and then to be read.
const ANSWERS: Duration = Duration::from_secs(1);

/// What every long-lived task watches. The end has three steps, in this order, and [`Lifecycle::drain`] alone knows how
/// long each of them lasts.
#[derive(Clone, Debug)]
pub struct Lifecycle {
    /// Cancelled when streams end and new calls are refused.
    pub closing: CancellationToken,
    /// Cancelled when running calls are killed; they are still answered.
    pub killing: CancellationToken,
    /// Cancelled when connections are cut.
    pub ended: CancellationToken,
    /// The tasks that are waited for at the end.
    pub tasks: TaskTracker,
    drain: Duration,
}

impl Lifecycle {
    /// A life that has not begun to end; then calls under way may go on for `drain`.
    pub fn new(drain: Duration) -> Self {
        Self {
            closing: CancellationToken::new(),
            killing: CancellationToken::new(),
            ended: CancellationToken::new(),
            tasks: TaskTracker::new(),
            drain,
        }
    }

    /// How long calls under way may go on.
    pub fn drain_time(&self) -> Duration {
        self.drain
    }

    /// Lets work end by itself for the drain time (or until `killing` is cancelled), then kills calls, leaves time for
    /// their answers, and ends.
    pub async fn drain(&self, work: impl Future<Output = ()>) {
        let mut work = std::pin::pin!(work);
        let done = tokio::select! {
            () = &mut work => true,
            () = tokio::time::sleep(self.drain) => false,
            () = self.killing.cancelled() => false,
        };
        self.killing.cancel();
        if !done && tokio::time::timeout(2 * ANSWERS, work).await.is_err() {
            tracing::warn!("Some calls did not end after they were cancelled; their connections are cut");
        }
        self.ended.cancel();
    }

    /// Waits until calls were killed and have had the time to be answered.
    pub async fn overdue(&self) {
        self.killing.cancelled().await;
        tokio::time::sleep(ANSWERS).await;
    }
}

/// The lock of a living process on a data directory: held until the process ends, however it ends.
#[derive(Debug)]
pub struct InstanceLock {
    /// Where the instance keeps what dies with it: run directories, harness files.
    pub dir: PathBuf,
    _file: File,
}

fn lock_path(data_dir: &Path, instance: &str) -> PathBuf {
    data_dir.join("instances").join(format!("{instance}.lock"))
}

/// Makes a directory (and its parents) that only this user can enter.
///
/// # Errors
/// As the file system says.
pub fn private_dir(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

impl InstanceLock {
    /// Makes the instance's directory and takes its lock.
    ///
    /// # Errors
    /// As the file system says.
    pub fn acquire(data_dir: &Path, instance: &str) -> io::Result<Self> {
        let dir = data_dir.join("instances").join(instance);
        private_dir(&dir)?;
        let path = lock_path(data_dir, instance);
        let file = OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).open(path)?;
        flock(&file, FlockOperation::NonBlockingLockExclusive)?;
        Ok(Self { dir, _file: file })
    }

    /// Whether no living process holds that instance's lock.
    ///
    /// # Errors
    /// As the file system says; a missing lock file means that nobody holds it.
    pub fn is_free(data_dir: &Path, instance: &str) -> io::Result<bool> {
        let file = match File::open(lock_path(data_dir, instance)) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(true),
            Err(error) => return Err(error),
        };
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(true),
            Err(rustix::io::Errno::WOULDBLOCK) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Removes what a dead instance left.
    ///
    /// # Errors
    /// As the file system says; what is already gone is no error.
    pub fn remove(data_dir: &Path, instance: &str) -> io::Result<()> {
        let gone = |result: io::Result<()>| match result {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            other => other,
        };
        gone(std::fs::remove_dir_all(data_dir.join("instances").join(instance)))?;
        gone(std::fs::remove_file(lock_path(data_dir, instance)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_is_held_until_its_owner_goes() {
        let dir = tempfile::tempdir().unwrap();
        assert!(InstanceLock::is_free(dir.path(), "a").unwrap());
        let lock = InstanceLock::acquire(dir.path(), "a").unwrap();
        assert!(!InstanceLock::is_free(dir.path(), "a").unwrap());
        drop(lock);
        assert!(InstanceLock::is_free(dir.path(), "a").unwrap());
        InstanceLock::remove(dir.path(), "a").unwrap();
        InstanceLock::remove(dir.path(), "a").unwrap();
        assert!(!dir.path().join("instances/a").exists());
    }
}
