//! What connects the server to a process: the server's ends and the process's.

use std::io;
use std::os::fd::OwnedFd;

use rustix::net::{AddressFamily, SocketFlags, SocketType};
use rustix::pipe::PipeFlags;
use tokio::io::unix::AsyncFd;
use tokio::net::UnixStream;
use tokio::net::unix::pipe;

use super::sandbox::sys;

/// The server's ends of what connects it to a process.
pub(super) struct Channels {
    /// Where reports come from.
    pub(super) status: AsyncFd<OwnedFd>,
    /// Standard output.
    pub(super) stdout: pipe::Receiver,
    /// Standard error.
    pub(super) stderr: pipe::Receiver,
    /// The talk with the harness, where there is one.
    pub(super) control: Option<UnixStream>,
}

impl Channels {
    /// Opens them. The other ends: status, stdout, stderr and, with a harness, control.
    pub(super) fn open(with_control: bool) -> io::Result<(Self, Vec<OwnedFd>)> {
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
