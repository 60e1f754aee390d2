//! One process from its start to its end: pipes, frames, captured output, deadline, and the certainty that its whole tree is
//! dead afterwards.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use rustix::net::{AddressFamily, SocketFlags, SocketType};
use rustix::pipe::PipeFlags;
use rustix::process::Signal;
use tokio::io::unix::AsyncFd;
use tokio::net::UnixStream;
use tokio::net::unix::pipe;
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::RunnerError;
use super::capture::{StreamCapture, StreamEnd};
use super::conversation::Conversation;
use super::frames::{Frame, FrameError};
use super::host::{RunClock, Said};
use super::mask::Masker;
use super::network::Serving;
use super::sandbox::spec::{Report, Spec};
use super::sandbox::sys;
use super::spawner::{SpawnerClient, receive_with_descriptors};
use super::timer::Timer;
use crate::model::{Capture, Limits, NetworkUse, SandboxLevel};

/// How long a tool that has handed its result back may take to leave.
const GRACE: Duration = Duration::from_millis(100);
/// How long what a dead tree has written may take to be read. Only a process that escaped can make this matter.
const DRAIN: Duration = Duration::from_millis(250);
/// How long the spawner may take to start a process.
const START: Duration = Duration::from_secs(30);

/// A process to run.
pub(super) struct Launch {
    /// What the spawner is asked for.
    pub(super) spec: Spec,
    /// The file that becomes stdin.
    pub(super) stdin: OwnedFd,
    /// What the harness is sent; without it, there is no frame socket.
    pub(super) frame: Option<Vec<u8>>,
    /// The limits that are enforced from outside.
    pub(super) limits: Limits,
    /// Where stdout and stderr go when they are long.
    pub(super) spools: [PathBuf; 2],
    /// What serves its network, where it has one.
    pub(super) network: Option<Serving>,
    /// What takes its secrets out of all it says, where it has some.
    pub(super) masker: Option<Arc<Masker>>,
}

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

/// What is known of a process that has ended.
#[derive(Debug)]
pub(super) struct Finished {
    /// Why it was ended, when it was.
    pub(super) stop: Option<Stop>,
    /// Init's report, unless init was killed first.
    pub(super) report: Option<Report>,
    /// The harness's last frame, or why there is none.
    pub(super) last: Result<Option<Frame>, FrameError>,
    /// Standard output.
    pub(super) stdout: Capture,
    /// Standard error.
    pub(super) stderr: Capture,
    /// From the request to the end.
    pub(super) wall: Duration,
    /// What it did with the network, where it had one.
    pub(super) network: Option<NetworkUse>,
}

/// What the readers tell the supervisor.
enum News {
    /// A stream holds more than may be kept.
    Flooded,
    /// The last frame is there, or none will come.
    Settled,
    /// Output could not be kept.
    Lost(io::Error),
}

/// Runs a process to its end.
///
/// # Errors
/// When it can't be started or its output not kept. A process that fails is no error.
///
/// # Cancellation
/// Dropping the future kills the whole tree, as `cancel` does.
pub(super) async fn execute(
    spawner: &SpawnerClient,
    launch: Launch,
    listener: &mpsc::Sender<Said>,
    cancel: &CancellationToken,
) -> Result<Finished, RunnerError> {
    let started = Instant::now();
    let Launch { spec, stdin, frame, limits, spools, network, masker } = launch;
    let (channels, theirs) = Channels::open(frame.is_some()).map_err(RunnerError::io("open a run's pipes"))?;
    let descriptors: Vec<BorrowedFd<'_>> =
        [&theirs[0], &stdin].into_iter().chain(&theirs[1..]).map(AsFd::as_fd).collect();
    spawner.ask(&spec, &descriptors).await?;
    drop(descriptors);
    drop((theirs, stdin));

    let over = CancellationToken::new();
    let (tell, news) = mpsc::channel(8);
    let [stdout_path, stderr_path] = spools;
    let limit = (limits.output_inline_bytes, limits.output_spool_bytes);
    let capture = |path| StreamCapture::new(limit, path, masker.clone());
    let (mut stdout, mut stderr) = (capture(stdout_path), capture(stderr_path));
    let mut supervisor = Supervisor { network, ..Supervisor::new(channels.status, spec.level) };
    let clock = RunClock::new();
    let timer = Timer::new(started + limits.wall, &clock);
    let conversation = Conversation { listener, clock, result_limit: limits.result_bytes, masker: masker.clone() };
    let supervised = async {
        let result = supervisor.run(timer, cancel, news).await;
        over.cancel();
        result
    };
    let (supervised, (), (), last) = tokio::join!(
        supervised,
        read_stream(&mut stdout, channels.stdout, &over, &tell),
        read_stream(&mut stderr, channels.stderr, &over, &tell),
        converse(channels.control.zip(frame), conversation, (&over, &tell)),
    );
    supervised?;
    let lost = RunnerError::io("keep a run's output");
    Ok(Finished {
        stop: supervisor.stop,
        report: supervisor.ended.take(),
        last,
        stdout: stdout.finish().await.map_err(&lost)?,
        stderr: stderr.finish().await.map_err(&lost)?,
        wall: started.elapsed(),
        network: supervisor.network.take().map(Serving::end).map(|used| unsaid(used, masker.as_deref())),
    })
}

/// A host's name can be made of a secret.
fn unsaid(mut used: NetworkUse, masker: Option<&Masker>) -> NetworkUse {
    for target in used.unreached.iter_mut().filter(|_| masker.is_some()) {
        for text in [&mut target.host, &mut target.reason] {
            *text = masker.map_or(String::new(), |masker| masker.text(text).into_owned());
        }
    }
    used
}

/// The server's ends of what connects it to a process.
struct Channels {
    status: AsyncFd<OwnedFd>,
    stdout: pipe::Receiver,
    stderr: pipe::Receiver,
    control: Option<UnixStream>,
}

impl Channels {
    /// Opens them. The other ends: status, stdout, stderr and, with a harness, control.
    fn open(with_control: bool) -> io::Result<(Self, Vec<OwnedFd>)> {
        let pair = |kind| rustix::net::socketpair(AddressFamily::UNIX, kind, SocketFlags::CLOEXEC, None);
        let (status, their_status) = pair(SocketType::SEQPACKET)?;
        rustix::io::ioctl_fionbio(&status, true)?;
        let (stdout, their_stdout) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC)?;
        let (stderr, their_stderr) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC)?;
        let mut theirs = vec![their_status, their_stdout, their_stderr];
        let mut control = None;
        if with_control {
            let (ours, their_control) = pair(SocketType::STREAM)?;
            let ours = std::os::unix::net::UnixStream::from(ours);
            ours.set_nonblocking(true)?;
            control = Some(UnixStream::from_std(ours)?);
            theirs.push(their_control);
        }
        let (stdout, stderr) = (pipe::Receiver::from_owned_fd(stdout)?, pipe::Receiver::from_owned_fd(stderr)?);
        Ok((Self { status: sys::watch(status)?, stdout, stderr, control }, theirs))
    }
}

async fn read_stream(
    capture: &mut StreamCapture,
    mut stream: pipe::Receiver,
    over: &CancellationToken,
    tell: &mpsc::Sender<News>,
) {
    let end = tokio::select! {
        end = capture.read_all(&mut stream) => end,
        () = drained(over) => Ok(StreamEnd::Closed),
    };
    // The supervisor is gone only when the run is over anyway.
    let _over = match end {
        Ok(StreamEnd::Closed) => Ok(()),
        Ok(StreamEnd::Flooded) => tell.send(News::Flooded).await,
        Err(error) => tell.send(News::Lost(error)).await,
    };
}

/// Some time after the end of the run.
async fn drained(over: &CancellationToken) {
    over.cancelled().await;
    tokio::time::sleep(DRAIN).await;
}

/// Talks with the harness until its last frame, and tells the supervisor that it came.
async fn converse(
    control: Option<(UnixStream, Vec<u8>)>,
    conversation: Conversation<'_>,
    (over, tell): (&CancellationToken, &mpsc::Sender<News>),
) -> Result<Option<Frame>, FrameError> {
    let Some((mut control, frame)) = control else { return Ok(None) };
    let last = tokio::select! {
        last = conversation.hold(&mut control, frame) => last,
        () = drained(over) => Ok(None),
    };
    if !matches!(last, Ok(None)) {
        let _over = tell.send(News::Settled).await;
    }
    // Open until the end, so that a thread of the tool that still logs isn't killed by it.
    over.cancelled().await;
    last
}

/// Init's process; killed when dropped.
struct Process {
    pidfd: AsyncFd<OwnedFd>,
    level: SandboxLevel,
}

impl Process {
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
struct Supervisor {
    status: AsyncFd<OwnedFd>,
    level: SandboxLevel,
    process: Option<Process>,
    ended: Option<Report>,
    stop: Option<Stop>,
    killed: bool,
    hung_up: bool,
    network: Option<Serving>,
}

impl Supervisor {
    fn new(status: AsyncFd<OwnedFd>, level: SandboxLevel) -> Self {
        Self { status, level, process: None, ended: None, stop: None, killed: false, hung_up: false, network: None }
    }

    async fn run(
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
