//! The spawner: a small single-threaded process from which every tool is started.
//!
//! Forking the server would cost 32 ms at 1 GB of memory and copy its secrets; the spawner is re-executed from this
//! program's own file before either exists. It takes a spec and descriptors over one socket and answers on the run's
//! status socket.

use std::io::{self, IoSlice, IoSliceMut, Read, Seek};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, SocketFlags, SocketType,
};
use tokio::io::unix::AsyncFd;

use super::RunnerError;
use super::sandbox::Sandboxes;
use super::sandbox::spec::{AtStep, Descriptors, Failure, Report, Spec};
use super::sandbox::sys;

/// The first argument of a program that is to be the spawner.
const MARK: &str = "__spawner";
/// The second one when the main thread started it: then the kernel may end it when that thread dies.
const FROM_MAIN_THREAD: &str = "main";
/// The most descriptors that come with a request.
const MOST_DESCRIPTORS: usize = 8;
/// A spec of so many bytes travels in the message itself; a longer one (with a script in it) in a memory file.
const MOST_INLINE: usize = 32 << 10;
/// What is sent in place of a spec that is in a memory file.
const IN_FILE: &[u8] = b"file";

/// The server's side of the spawner process.
#[derive(Debug)]
pub struct Spawner {
    socket: OwnedFd,
    process: Child,
}

impl Spawner {
    /// Starts the spawner from this program's own file. Call it before any thread or secret exists.
    ///
    /// # Errors
    /// [`RunnerError::Spawner`] when the process can't be started.
    pub fn start() -> Result<Self, RunnerError> {
        Self::start_from(Path::new("/proc/self/exe"))
    }

    /// Starts it from another program that calls [`run_spawner_if_asked`] first.
    ///
    /// # Errors
    /// [`RunnerError::Spawner`] when the process can't be started.
    pub fn start_from(program: &Path) -> Result<Self, RunnerError> {
        let failed = |source: io::Error| RunnerError::Spawner { source };
        let flags = SocketFlags::CLOEXEC;
        let (socket, theirs) = rustix::net::socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)
            .map_err(|errno| failed(errno.into()))?;
        let is_main_thread = rustix::thread::gettid() == rustix::process::getpid();
        let mut command = Command::new(program);
        command.arg0("omniforge-spawner").arg(MARK).env_clear().stdin(Stdio::from(theirs)).stdout(Stdio::null());
        if is_main_thread {
            command.arg(FROM_MAIN_THREAD);
        }
        let process = command.spawn().map_err(failed)?;
        Ok(Self { socket, process })
    }
}

/// Ends the spawner, and with it every sandbox that it started.
impl Drop for Spawner {
    fn drop(&mut self) {
        // It may have ended already; either way it is then reaped.
        let _ended = self.process.kill();
        let _reaped = self.process.wait();
    }
}

/// The spawner as the runner uses it.
#[derive(Debug)]
pub(super) struct SpawnerClient {
    socket: AsyncFd<OwnedFd>,
    _process: Spawner,
}

impl SpawnerClient {
    /// Registers the socket with the runtime that this is called in.
    pub(super) fn new(spawner: Spawner) -> io::Result<Self> {
        let socket = spawner.socket.try_clone()?;
        rustix::io::ioctl_fionbio(&socket, true)?;
        Ok(Self { socket: sys::watch(socket)?, _process: spawner })
    }

    /// Asks for a process. `descriptors`: status, stdin, stdout, stderr and maybe control, as in [`Descriptors`]. What
    /// becomes of it is reported on the status socket.
    pub(super) async fn ask(&self, spec: &Spec, descriptors: &[BorrowedFd<'_>]) -> Result<(), RunnerError> {
        let gone = |source: io::Error| RunnerError::SpawnerGone { source };
        let spec = serde_json::to_vec(spec).expect("a spec has string keys only");
        let file = (spec.len() > MOST_INLINE).then(|| memory_file(&spec)).transpose().map_err(gone)?;
        let message = if file.is_some() { IN_FILE } else { &spec };
        let all: Vec<BorrowedFd<'_>> = file.iter().map(AsFd::as_fd).chain(descriptors.iter().copied()).collect();
        let send = |socket: &OwnedFd| send_with_descriptors(socket, message, &all);
        self.socket.async_io(tokio::io::Interest::WRITABLE, send).await.map_err(gone)
    }
}

/// A sealed file in memory that holds `bytes`, at its beginning.
pub(super) fn memory_file(bytes: &[u8]) -> io::Result<OwnedFd> {
    use rustix::fs::{MemfdFlags, SealFlags};
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let mut file = std::fs::File::from(rustix::fs::memfd_create("omniforge", flags)?);
    io::Write::write_all(&mut file, bytes)?;
    file.rewind()?;
    rustix::fs::fcntl_add_seals(&file, SealFlags::WRITE | SealFlags::GROW | SealFlags::SHRINK | SealFlags::SEAL)?;
    Ok(file.into())
}

/// Sends one message and descriptors with it.
pub(super) fn send_with_descriptors(socket: impl AsFd, bytes: &[u8], descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_DESCRIPTORS))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    if !descriptors.is_empty() && !ancillary.push(SendAncillaryMessage::ScmRights(descriptors)) {
        return Err(io::Error::other("too many descriptors for one message"));
    }
    let flags = SendFlags::NOSIGNAL;
    rustix::net::sendmsg(socket, &[IoSlice::new(bytes)], &mut ancillary, flags)?;
    Ok(())
}

/// Receives one message and the descriptors that came with it; no bytes when the other end is closed.
pub(super) fn receive_with_descriptors(socket: impl AsFd, buffer: &mut [u8]) -> io::Result<(usize, Vec<OwnedFd>)> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_DESCRIPTORS))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let slices = &mut [IoSliceMut::new(buffer)];
    let received = rustix::net::recvmsg(socket, slices, &mut ancillary, RecvFlags::CMSG_CLOEXEC)?;
    let mut descriptors = Vec::new();
    for message in ancillary.drain() {
        if let RecvAncillaryMessage::ScmRights(rights) = message {
            descriptors.extend(rights);
        }
    }
    Ok((received.bytes, descriptors))
}

/// Serves as the spawner and never returns, when this program was started as one; else does nothing. First thing in `main`.
///
/// Reads the arguments itself: this runs before the configuration, and in a process that has none.
pub fn run_spawner_if_asked() {
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next().is_none_or(|argument| argument != MARK) {
        return;
    }
    let socket = rustix::stdio::stdin();
    if !sys::is_socket(socket) {
        eprintln!("`{MARK}` is how this program starts its own helper process; it is not a command");
        sys::exit(2);
    }
    if arguments.next().is_some_and(|argument| argument == FROM_MAIN_THREAD) {
        // Not vital: the end of the socket ends it, too.
        let _unset = rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL));
    }
    let _unnamed = rustix::thread::set_name(c"omni-spawner");
    // No terminal: an interrupt from the keyboard is for the server, which drains first.
    let _leader_already = rustix::process::setsid();
    sys::ignore_children();
    serve(socket)
}

fn serve(socket: BorrowedFd<'_>) -> ! {
    let mut sandboxes = Sandboxes::new();
    let mut buffer = vec![0u8; MOST_INLINE];
    loop {
        match receive_with_descriptors(socket, &mut buffer) {
            Ok((0, _)) => sys::exit(0),
            Ok((length, descriptors)) => start_one(&mut sandboxes, &buffer[..length], descriptors),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => sys::exit(1),
        }
    }
}

fn start_one(sandboxes: &mut Sandboxes, message: &[u8], descriptors: Vec<OwnedFd>) {
    let mut descriptors = descriptors.into_iter();
    let spec = if message == IN_FILE { read_file(descriptors.next()) } else { Ok(message.to_vec()) };
    let Some(descriptors) = Descriptors::from_list(descriptors.collect()) else { return };
    let Ok(status) = descriptors.status.try_clone() else { return };
    let started = spec.and_then(|spec| parse(&spec)).and_then(|spec| sandboxes.start(&spec, descriptors));
    // A server that no longer listens has dropped the run: init sees the same and ends it.
    let _gone = match started {
        Ok(pidfd) => send_with_descriptors(&status, &Report::Started.to_bytes(), &[pidfd.as_fd()]),
        Err(failure) => send_with_descriptors(&status, &Report::Failed(failure).to_bytes(), &[]),
    };
}

fn read_file(file: Option<OwnedFd>) -> Result<Vec<u8>, Failure> {
    let file = file.ok_or(Failure { step: "find the request's file".to_owned(), errno: 0 })?;
    let mut bytes = Vec::new();
    std::fs::File::from(file).read_to_end(&mut bytes).at("read the request")?;
    Ok(bytes)
}

fn parse(spec: &[u8]) -> Result<Spec, Failure> {
    serde_json::from_slice(spec)
        .map_err(|error| Failure { step: format!("understand the request ({error})"), errno: 0 })
}
