//! One interpreter that waits for a call.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::fs::{MemfdFlags, SealFlags};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::super::RunnerError;
use super::super::environment::EnvironmentUse;
use super::super::frames;
use super::super::process::{self, Started};
use super::super::sandbox::spec::Word;
use super::super::spawner::SpawnerClient;
use super::Key;

/// How long an interpreter may take to start and import.
const START: Duration = Duration::from_secs(30);
/// What the harness says when all is imported; anything else says that something is wrong.
const READY: &[u8] = br#"{"type":"ready"}"#;

/// Why there is no member.
#[derive(Debug, thiserror::Error)]
pub(super) enum NotReady {
    /// The sandbox could not be made.
    #[error(transparent)]
    Runner(#[from] RunnerError),
    /// The modules can't be imported without a call, print when they are, or take too long.
    #[error("its modules can't be imported before a call: {0}")]
    Unfit(&'static str),
}

/// A sandbox with an interpreter that has imported what its key says, and has seen no call. Killed when dropped.
pub(in super::super) struct Member {
    process: Started,
    /// What its stdin is, to be filled.
    stdin: File,
    /// `/tool/arguments.json`, to be filled.
    arguments: File,
    /// Keeps what it has mounted.
    held: Option<Arc<EnvironmentUse>>,
    /// The memory that it takes.
    pub(super) bytes: u64,
}

impl Member {
    /// Starts one, and waits until it is ready.
    pub(super) async fn start(
        spawner: &SpawnerClient,
        key: &Key,
        held: Option<Arc<EnvironmentUse>>,
    ) -> Result<Self, NotReady> {
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let stdin = rustix::fs::memfd_create("omniforge", flags).map_err(|errno| failed(errno.into()))?;
        let mut process = process::start(spawner, key.spec(), stdin.as_fd(), true).await?;
        let ready = tokio::time::timeout(START, prepare(&mut process, key)).await;
        let bytes = ready.unwrap_or(Err(NotReady::Unfit("they took more than 30 s")))?;
        let arguments = process.supervisor.arguments.take();
        let arguments = arguments.ok_or_else(|| failed(io::ErrorKind::InvalidData.into()))?;
        let member = Self { process, stdin: File::from(stdin), arguments, held, bytes };
        if member.is_fit() { Ok(member) } else { Err(NotReady::Unfit("they wrote something, or ended the process")) }
    }

    /// Whether it still waits, and has said nothing.
    pub(super) fn is_fit(&self) -> bool {
        let Started { supervisor, stdout, stderr, control } = &self.process;
        let quiet = |descriptor: &dyn AsFd| {
            let mut polled = [PollFd::from_borrowed_fd(descriptor.as_fd(), PollFlags::IN)];
            matches!(rustix::event::poll(&mut polled, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })), Ok(0))
        };
        let control = control.as_ref().is_some_and(|control| quiet(control));
        supervisor.is_alive() && control && quiet(stdout) && quiet(stderr)
    }

    /// Gives it what its sandbox holds of a call. The process and the frames that go before the call's own.
    ///
    /// # Errors
    /// When the arguments can't be written, or it has ended. It is of no use then.
    pub(in super::super) fn take_call(
        self,
        environment: &[String],
        arguments: &str,
    ) -> io::Result<(Started, Vec<u8>, Option<Arc<EnvironmentUse>>)> {
        let Self { process, stdin, arguments: file, held, .. } = self;
        // At fixed places: the tool shares the offset, and shall find it at the beginning.
        stdin.write_all_at(arguments.as_bytes(), 0)?;
        let seals = SealFlags::WRITE | SealFlags::GROW | SealFlags::SHRINK | SealFlags::SEAL;
        rustix::fs::fcntl_add_seals(&stdin, seals)?;
        file.write_all_at(arguments.as_bytes(), 0)?;
        process.supervisor.tell(Word::Call)?;
        let frame = frames::to_frame(&environment).ok_or(io::ErrorKind::InvalidInput)?;
        Ok((process, frame, held))
    }
}

/// Until the harness has said that it is ready and init how much memory it takes.
async fn prepare(process: &mut Started, key: &Key) -> Result<u64, NotReady> {
    let Started { supervisor, control, .. } = process;
    supervisor.until(|supervisor| supervisor.is_started() && supervisor.arguments.is_some()).await?;
    let control = control.as_mut().ok_or_else(|| failed(io::ErrorKind::NotConnected.into()))?;
    control.write_all(&key.frame()).await.map_err(failed)?;
    let mut answer = [0u8; 4 + READY.len()];
    if control.read_exact(&mut answer).await.is_err() || answer[4..] != *READY {
        return Err(NotReady::Unfit("an import failed"));
    }
    supervisor.tell(Word::Ready).map_err(failed)?;
    supervisor.until(|supervisor| supervisor.waiting_bytes.is_some()).await?;
    Ok(supervisor.waiting_bytes.unwrap_or_default())
}

fn failed(source: io::Error) -> RunnerError {
    RunnerError::io("start an interpreter that waits")(source)
}
