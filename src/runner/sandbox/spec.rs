//! What the server asks of the spawner, and what comes back: both as JSON, over descriptors.

use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;

use serde::{Deserialize, Serialize};

use crate::model::SandboxLevel;

/// A directory or file of the host that the tool may read.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Mount {
    /// Where it is on the host.
    pub source: String,
    /// Where the tool finds it. The same as `source` without a mount namespace.
    pub target: String,
}

/// What a process is for: that decides which network it has and what outlives it.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Purpose {
    /// An author's code: no network of the host's, and nothing that it writes is kept.
    Tool,
    /// The installer of packages, a program of the server's owner: the host's network and the files that say how to use it,
    /// one directory that it may write to, and a user id that no tool ever has.
    Builder {
        /// What it may write to, and keeps.
        writable: Mount,
    },
}

/// The limits that the kernel or init enforces.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct ProcessLimits {
    /// CPU milliseconds of all processes together, and of each.
    pub cpu_milliseconds: u64,
    /// Resident bytes of all processes together.
    pub memory_bytes: u64,
    /// Address space of each process; unset where the runtime reserves more than it uses.
    pub address_space_bytes: Option<u64>,
    /// Processes and threads at once.
    pub processes: u64,
    /// Bytes in `/tmp`.
    pub tmp_bytes: u64,
    /// Bytes in one file.
    pub file_bytes: u64,
    /// Open descriptors of each process.
    pub open_files: u64,
}

/// One process to start, confined.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Spec {
    /// How strongly.
    pub level: SandboxLevel,
    /// What for.
    pub purpose: Purpose,
    /// The program's absolute path and its arguments.
    pub command: Vec<String>,
    /// `NAME=value`.
    pub environment: Vec<String>,
    /// The working directory.
    pub directory: String,
    /// What it may read beside the system's own directories.
    pub mounts: Vec<Mount>,
    /// The text of `/tool/main.sh` (full sandbox only; else the server writes the file).
    pub script: Option<String>,
    /// The directory that it may write to (without a mount namespace only).
    pub writable: Option<String>,
    /// Its limits.
    pub limits: ProcessLimits,
    /// The network in its namespace (full sandbox only); without one, it has an empty loopback interface.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network: Option<SandboxNetwork>,
    /// It starts before there is a call for it (full sandbox only): [`Word`]s say when one is there.
    #[serde(default, skip_serializing_if = "is_false")]
    pub waits: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
fn is_false(flag: &bool) -> bool {
    !flag
}

/// What the server tells the init of a sandbox that waits for its call, on the status socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Word {
    /// The interpreter is ready. What it has used until now is not the call's; it is answered with [`Report::Waiting`].
    Ready,
    /// The call begins.
    Call,
}

impl Word {
    /// As it is sent.
    pub(crate) fn byte(self) -> u8 {
        match self {
            Self::Ready => b'r',
            Self::Call => b'c',
        }
    }

    /// The word of that byte.
    pub(crate) fn of(byte: u8) -> Option<Self> {
        [Self::Ready, Self::Call].into_iter().find(|word| word.byte() == byte)
    }
}

/// The network in a namespace. Its sockets are handed to the server in this order: the stub resolver's, the one that sees
/// attempts, the listeners.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct SandboxNetwork {
    /// Where to listen.
    pub listeners: Vec<SocketAddr>,
    /// Further lines of `/etc/hosts`.
    pub hosts: String,
}

impl Spec {
    /// The directory that the process may write to and that outlives it.
    pub(crate) fn kept(&self) -> Option<&Mount> {
        match &self.purpose {
            Purpose::Tool => None,
            Purpose::Builder { writable } => Some(writable),
        }
    }
}

/// The descriptors that travel with a [`Spec`], in this order.
pub(crate) struct Descriptors {
    /// Where [`Report`]s go; when the other end is closed, the run is killed.
    pub status: OwnedFd,
    /// The arguments: a sealed memory file.
    pub stdin: OwnedFd,
    /// The writing end of a pipe.
    pub stdout: OwnedFd,
    /// The writing end of a pipe.
    pub stderr: OwnedFd,
    /// The harness's end of the frame socket, where the language has a harness.
    pub control: Option<OwnedFd>,
}

impl Descriptors {
    /// Takes them in order.
    pub(crate) fn from_list(list: Vec<OwnedFd>) -> Option<Self> {
        let mut list = list.into_iter();
        Some(Self {
            status: list.next()?,
            stdin: list.next()?,
            stdout: list.next()?,
            stderr: list.next()?,
            control: list.next(),
        })
    }
}

/// Why init ended a run by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Cause {
    /// The processes held more memory than allowed.
    Memory,
    /// The processes used more CPU time than allowed.
    Cpu,
    /// More processes than allowed (only where the kernel can't count them for this run alone).
    Processes,
    /// The server closed its end or asked init to end.
    Asked,
}

/// A message on the status socket.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "report", rename_all = "snake_case")]
pub(crate) enum Report {
    /// Init exists; its pidfd comes along.
    Started,
    /// Sockets of the namespace come along.
    Network {
        /// How many.
        sockets: usize,
    },
    /// The file of arguments comes along, to be written when there are some.
    Arguments,
    /// The interpreter waits, and holds so much memory of its own.
    Waiting {
        /// Bytes.
        memory_bytes: u64,
    },
    /// The sandbox could not be built.
    Failed(Failure),
    /// The tool's own process has ended.
    Ended {
        /// Its exit status, when it left by itself.
        exit: Option<i32>,
        /// The signal that killed it, when one did.
        signal: Option<i32>,
        /// Why init ended it, when it did.
        cause: Option<Cause>,
        /// CPU time of all processes that were waited for.
        cpu_microseconds: u64,
        /// The most memory seen.
        peak_bytes: u64,
    },
}

impl Report {
    /// The bytes to send.
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("a report has string keys only")
    }
}

/// The step of the sandbox that failed, and the kernel's answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Failure {
    /// What was being done.
    pub step: String,
    /// The error number; 0 when it wasn't the kernel that refused.
    pub errno: i32,
}

/// Names the step in which an error happened.
pub(crate) trait AtStep<T> {
    /// The step in words.
    fn at(self, step: &str) -> Result<T, Failure>;

    /// The step in words, and the path that it was about.
    fn at_path(self, step: &str, path: &str) -> Result<T, Failure>;
}

impl<T, E: Into<io::Error>> AtStep<T> for Result<T, E> {
    fn at(self, step: &str) -> Result<T, Failure> {
        self.map_err(|error| Failure { step: step.to_owned(), errno: error.into().raw_os_error().unwrap_or(0) })
    }

    fn at_path(self, step: &str, path: &str) -> Result<T, Failure> {
        self.map_err(|error| Failure {
            step: format!("{step} {path}"),
            errno: error.into().raw_os_error().unwrap_or(0),
        })
    }
}
