//! One process from its start to its end: pipes, frames, captured output, deadline, and the certainty that its whole tree is
//! dead afterwards.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::UnixStream;
use tokio::net::unix::pipe;
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::RunnerError;
use super::capture::{StreamCapture, StreamEnd};
use super::channels::Channels;
use super::conversation::Conversation;
use super::frames::{Frame, FrameError};
use super::host::{RunClock, Said};
use super::mask::Masker;
use super::network::Serving;
use super::sandbox::spec::{Report, Spec};
use super::spawner::SpawnerClient;
pub(super) use super::supervisor::Stop;
use super::supervisor::{News, Supervisor};
use super::timer::Timer;
use crate::model::{Capture, Limits, NetworkUse};

/// How long what a dead tree has written may take to be read. Only a process that escaped can make this matter.
const DRAIN: Duration = Duration::from_millis(250);

/// A process to run.
pub(super) struct Launch {
    /// What the spawner is asked for.
    pub(super) spec: Spec,
    /// The file that becomes stdin.
    pub(super) stdin: OwnedFd,
    /// What it is to do.
    pub(super) call: Call,
}

/// What a process is to do, once it is there.
pub(super) struct Call {
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

/// A process that was asked for; killed when dropped.
pub(super) struct Started {
    /// Who sees to its end.
    pub(super) supervisor: Supervisor,
    /// Standard output.
    pub(super) stdout: pipe::Receiver,
    /// Standard error.
    pub(super) stderr: pipe::Receiver,
    /// The talk with the harness, where there is one.
    pub(super) control: Option<UnixStream>,
}

/// Asks for a process.
///
/// # Errors
/// When there are no pipes for it or the spawner is gone. What else keeps it from starting is reported later.
pub(super) async fn start(
    spawner: &SpawnerClient,
    spec: &Spec,
    stdin: BorrowedFd<'_>,
    with_control: bool,
) -> Result<Started, RunnerError> {
    let (channels, theirs) = Channels::open(with_control).map_err(RunnerError::io("open a run's pipes"))?;
    let descriptors: Vec<BorrowedFd<'_>> =
        [theirs[0].as_fd(), stdin].into_iter().chain(theirs[1..].iter().map(AsFd::as_fd)).collect();
    spawner.ask(spec, &descriptors).await?;
    let Channels { status, stdout, stderr, control } = channels;
    Ok(Started { supervisor: Supervisor::new(status, spec.level), stdout, stderr, control })
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
    let begun = Instant::now();
    let Launch { spec, stdin, call } = launch;
    let started = start(spawner, &spec, stdin.as_fd(), call.frame.is_some()).await?;
    drop(stdin);
    attend(started, (call, begun), listener, cancel).await
}

/// Gives a process its call, which has begun at that moment, and stays until it has ended.
///
/// # Errors
/// As [`execute`].
///
/// # Cancellation
/// As [`execute`].
pub(super) async fn attend(
    started: Started,
    (call, begun): (Call, Instant),
    listener: &mpsc::Sender<Said>,
    cancel: &CancellationToken,
) -> Result<Finished, RunnerError> {
    let Started { mut supervisor, stdout: stdout_pipe, stderr: stderr_pipe, control } = started;
    let Call { frame, limits, spools, network, masker } = call;
    let over = CancellationToken::new();
    let (tell, news) = mpsc::channel(8);
    let [stdout_path, stderr_path] = spools;
    let limit = (limits.output_inline_bytes, limits.output_spool_bytes);
    let capture = |path| StreamCapture::new(limit, path, masker.clone());
    let (mut stdout, mut stderr) = (capture(stdout_path), capture(stderr_path));
    supervisor.network = network;
    let clock = RunClock::new();
    let timer = Timer::new(begun + limits.wall, &clock);
    let conversation = Conversation { listener, clock, result_limit: limits.result_bytes, masker: masker.clone() };
    let supervised = async {
        let result = supervisor.run(timer, cancel, news).await;
        over.cancel();
        result
    };
    let (supervised, (), (), last) = tokio::join!(
        supervised,
        read_stream(&mut stdout, stdout_pipe, &over, &tell),
        read_stream(&mut stderr, stderr_pipe, &over, &tell),
        converse(control.zip(frame), conversation, (&over, &tell)),
    );
    supervised?;
    let lost = RunnerError::io("keep a run's output");
    Ok(Finished {
        stop: supervisor.stop,
        report: supervisor.ended.take(),
        last,
        stdout: stdout.finish().await.map_err(&lost)?,
        stderr: stderr.finish().await.map_err(&lost)?,
        wall: begun.elapsed(),
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
