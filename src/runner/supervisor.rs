//! Decides when a process has to end, and sees to it.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::process::Signal;
use tokio::io::unix::AsyncFd;
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::RunnerError;
use super::network::Serving;
use super::sandbox::spec::{Report, Word};
use super::sandbox::sys;
use super::spawner::receive_with_descriptors;
use super::timer::Timer;
use crate::model::SandboxLevel;

/// How long a tool that has handed its result back may take to leave.
const GRACE: Duration = Duration::from_millis(100);
/// How long the spawner may take to start a process.
const START: Duration = Duration::from_secs(30);

/// Why the runner ended a process that hadn't ended by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stop {
    /// It was cancelled.
    Cancelled,
    /// Its time was over.
    Timeout,
    /// It wrote too much.
    Flooded,
}

/// What the readers tell the supervisor.
pub(super) enum News {
    /// A stream holds more than may be kept.
    Flooded,
    /// The last frame is there, or none will come.
    Settled,
    /// Output could not be kept.
    Lost(io::Error),
}

/// Init's process; killed when dropped.
pub(super) struct Process {
    pidfd: AsyncFd<OwnedFd>,
    level: SandboxLevel,
}

impl Process {
    /// Whether it has not ended yet.
    fn is_alive(&self) -> bool {
        let mut polled = [rustix::event::PollFd::new(&self.pidfd, rustix::event::PollFlags::IN)];
        let now = rustix::event::Timespec { tv_sec: 0, tv_nsec: 0 };
        matches!(rustix::event::poll(&mut polled, Some(&now)), Ok(0))
    }

    fn kill(&self) {
        // In a PID namespace, init's death is everyone's. Elsewhere init has to kill the tree itself.
        let signal = if self.level == SandboxLevel::Full { Signal::KILL } else { Signal::TERM };
        let _dead_already = rustix::process::pidfd_send_signal(&self.pidfd, signal);
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Decides when a process has to end, and sees to it.
pub(super) struct Supervisor {
    status: AsyncFd<OwnedFd>,
    level: SandboxLevel,
    process: Option<Process>,
    /// Init's report, once there is one.
    pub(super) ended: Option<Report>,
    /// Why it was ended, when it was.
    pub(super) stop: Option<Stop>,
    killed: bool,
    hung_up: bool,
    /// What serves its network, where it has one.
    pub(super) network: Option<Serving>,
    /// The file of arguments of a process that waits for its call.
    pub(super) arguments: Option<File>,
    /// The memory of a process that waits, once init has looked.
    pub(super) waiting_bytes: Option<u64>,
}

impl Supervisor {
    /// One for the process that reports here.
    pub(super) fn new(status: AsyncFd<OwnedFd>, level: SandboxLevel) -> Self {
        Self {
            status,
            level,
            process: None,
            ended: None,
            stop: None,
            killed: false,
            hung_up: false,
            network: None,
            arguments: None,
            waiting_bytes: None,
        }
    }

    /// Takes reports until enough is known.
    ///
    /// # Errors
    /// When the process could not be started, or ended.
    ///
    /// # Cancellation
    /// Safe: a report is taken whole or not at all.
    pub(super) async fn until(&mut self, enough: impl Fn(&Self) -> bool) -> Result<(), RunnerError> {
        while !enough(self) {
            if self.hung_up || self.ended.is_some() {
                return Err(RunnerError::SpawnerGone { source: io::ErrorKind::UnexpectedEof.into() });
            }
            let received = receive(&self.status).await;
            self.take(received)?;
        }
        Ok(())
    }

    /// Whether the process exists.
    pub(super) fn is_started(&self) -> bool {
        self.process.is_some()
    }

    /// Whether the process exists and has not ended.
    pub(super) fn is_alive(&self) -> bool {
        !self.hung_up && self.ended.is_none() && self.process.as_ref().is_some_and(Process::is_alive)
    }

    /// Tells init something.
    ///
    /// # Errors
    /// When init is gone.
    pub(super) fn tell(&self, word: Word) -> io::Result<()> {
        rustix::net::send(&self.status, &[word.byte()], rustix::net::SendFlags::NOSIGNAL)?;
        Ok(())
    }

    /// Supervises the process to its end.
    ///
    /// # Errors
    /// When it could not be started or its output not kept.
    pub(super) async fn run(
        &mut self,
        mut timer: Timer,
        cancel: &CancellationToken,
        mut news: mpsc::Receiver<News>,
    ) -> Result<(), RunnerError> {
        let mut kill_at: Option<Instant> = None;
        let started_by = Instant::now() + START;
        loop {
            tokio::select! {
                () = cancel.cancelled(), if self.stop.is_none() => self.end(Stop::Cancelled),
                () = timer.over(), if self.stop.is_none() => self.end(Stop::Timeout),
                Some(news) = news.recv() => match news {
                    News::Flooded => self.end(Stop::Flooded),
                    News::Settled => kill_at = Some(Instant::now() + GRACE),
                    News::Lost(error) => {
                        self.kill();
                        return Err(RunnerError::io("keep a run's output")(error));
                    }
                },
                () = sleep_until(kill_at), if !self.killed => self.kill(),
                () = sleep_until(Some(started_by)), if self.process.is_none() => {
                    return Err(RunnerError::SpawnerGone { source: io::ErrorKind::TimedOut.into() });
                }
                received = receive(&self.status), if !self.hung_up => {
                    self.take(received)?;
                    // Init says so when all others are dead, and may take a while to be gone itself.
                    if self.ended.is_some() && self.process.is_some() {
                        return Ok(());
                    }
                }
                () = exited(self.process.as_ref()) => break,
            }
        }
        self.take_rest()
    }

    fn end(&mut self, stop: Stop) {
        self.stop.get_or_insert(stop);
        self.kill();
    }

    fn kill(&mut self) {
        self.killed = true;
        if let Some(process) = &self.process {
            process.kill();
        }
    }

    /// Takes a message. Init's may come before the spawner's own.
    fn take(&mut self, received: io::Result<(Option<Report>, Vec<OwnedFd>)>) -> Result<(), RunnerError> {
        match received.map_err(|source| RunnerError::SpawnerGone { source })? {
            (Some(Report::Started), mut pidfd) => {
                let pidfd =
                    pidfd.pop().ok_or(RunnerError::SpawnerGone { source: io::ErrorKind::InvalidData.into() })?;
                let pidfd = sys::watch(pidfd).map_err(RunnerError::io("watch a run's process"))?;
                self.process = Some(Process { pidfd, level: self.level });
                if self.killed {
                    self.kill();
                }
            }
            (Some(Report::Network { sockets: sent }), sockets) => {
                let serving = self.network.as_mut().map_or(Ok(()), |network| network.adopt(sockets, sent));
                serving.map_err(RunnerError::io("serve a run's network"))?;
            }
            (Some(Report::Arguments), mut file) => self.arguments = file.pop().map(File::from),
            (Some(Report::Waiting { memory_bytes }), _) => self.waiting_bytes = Some(memory_bytes),
            (Some(Report::Failed(failure)), _) => return Err(RunnerError::sandbox(failure)),
            (Some(report), _) => self.ended = Some(report),
            (None, _) if self.process.is_none() => {
                return Err(RunnerError::SpawnerGone { source: io::ErrorKind::UnexpectedEof.into() });
            }
            (None, _) => self.hung_up = true,
        }
        Ok(())
    }

    /// Takes what is left on the status socket of a process that is dead.
    fn take_rest(&mut self) -> Result<(), RunnerError> {
        while !self.hung_up {
            match read_report(self.status.get_ref()) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                received => self.take(received)?,
            }
        }
        Ok(())
    }
}

async fn sleep_until(moment: Option<Instant>) {
    match moment {
        Some(moment) => tokio::time::sleep_until(moment).await,
        None => std::future::pending().await,
    }
}

/// The death of init, which in a PID namespace comes after everyone else's.
async fn exited(process: Option<&Process>) {
    match process {
        Some(process) => {
            // An error means that the descriptor can't be watched; then the status socket's end has to do.
            let _ready = process.pidfd.readable().await;
        }
        None => std::future::pending().await,
    }
}

async fn receive(status: &AsyncFd<OwnedFd>) -> io::Result<(Option<Report>, Vec<OwnedFd>)> {
    status.async_io(tokio::io::Interest::READABLE, read_report).await
}

/// One message; no report at the end.
fn read_report(status: &OwnedFd) -> io::Result<(Option<Report>, Vec<OwnedFd>)> {
    let mut buffer = [0u8; 4096];
    let (length, descriptors) = match receive_with_descriptors(status, &mut buffer) {
        // Init died without reading; there is nothing more to come.
        Err(error) if error.kind() == io::ErrorKind::ConnectionReset => (0, Vec::new()),
        received => received?,
    };
    if length == 0 {
        return Ok((None, Vec::new()));
    }
    let report = serde_json::from_slice(&buffer[..length]).map_err(io::Error::other)?;
    Ok((Some(report), descriptors))
}
