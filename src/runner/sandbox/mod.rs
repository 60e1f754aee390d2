//! The sandbox: spawner ↔ init (pid 1 of the sandbox) ↔ tool (pid 2).
//!
//! Runs in the spawner's process tree only, which is single-threaded. Builds what a [`Spec`] asks for or reports the step
//! that failed; it never weakens a level by itself.

mod bpf;
mod init;
mod landlock;
mod net;
mod net_filter;
mod root;
mod seccomp;
pub(super) mod spec;
pub(super) mod sys;
mod tool;
mod watch;

use std::os::fd::{AsFd, OwnedFd};

use rustix::pipe::PipeFlags;
use rustix::process::Signal;

use crate::model::SandboxLevel;
use spec::{AtStep, Descriptors, Failure, Purpose, Report, Spec};

/// The user and group inside the full sandbox.
const INNER_ID: u32 = 1000;
/// The host id that stands for [`INNER_ID`] in builders when the server is root: always the same, since it owns what they keep.
const BUILDER_HOST_ID: u32 = 200_000;
/// The first of those that stand for it in tools.
const FIRST_HOST_ID: u32 = BUILDER_HOST_ID + 1;
/// How many host ids are used in turn.
const HOST_IDS: u32 = 50_000;

/// Who the spawner is, and so which ids the sandbox can map.
#[derive(Clone, Copy, Debug)]
enum Identity {
    /// Real root, with every id mapped.
    Root,
    /// Anybody else: one id, its own.
    User { uid: u32, gid: u32 },
}

impl Identity {
    fn current() -> Self {
        let uid = rustix::process::geteuid().as_raw();
        let all_mapped = std::fs::read_to_string("/proc/self/uid_map")
            .is_ok_and(|map| map.split_whitespace().eq(["0", "0", "4294967295"]));
        if uid == 0 && all_mapped { Self::Root } else { Self::User { uid, gid: rustix::process::getegid().as_raw() } }
    }
}

/// Starts sandboxes. One per spawner process.
pub(super) struct Sandboxes {
    identity: Identity,
    started: u32,
    full_filter: Vec<libc::sock_filter>,
    landlock_filter: Vec<libc::sock_filter>,
}

impl Sandboxes {
    /// Prepares what all sandboxes share.
    pub(super) fn new() -> Self {
        Self {
            identity: Identity::current(),
            started: 0,
            full_filter: bpf::compile(&seccomp::rules(seccomp::Sockets::Namespaced)),
            landlock_filter: bpf::compile(&seccomp::rules(seccomp::Sockets::Refused)),
        }
    }

    /// Starts one and returns init's pidfd. What fails in the new process is reported on the status socket.
    pub(super) fn start(&mut self, spec: &Spec, descriptors: Descriptors) -> Result<OwnedFd, Failure> {
        let namespaces = match (spec.level, &spec.purpose) {
            (SandboxLevel::Full, Purpose::Tool) => sys::ALL_NAMESPACES,
            (SandboxLevel::Full, Purpose::Builder { .. }) => sys::ALL_NAMESPACES & !(libc::CLONE_NEWNET as u64),
            _ => 0,
        };
        let root_maps = spec.level == SandboxLevel::Full && matches!(self.identity, Identity::Root);
        let (mapped, mapper) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC).at("make a pipe")?;
        self.started = (self.started + 1) % HOST_IDS;
        match sys::clone_process(namespaces).at("create namespaces")? {
            sys::Cloned::Child => {
                drop(mapper);
                self.become_init(spec, descriptors, mapped)
            }
            sys::Cloned::Parent { process, pidfd } => {
                if root_maps {
                    let is_builder = matches!(spec.purpose, Purpose::Builder { .. });
                    let host_id = if is_builder { BUILDER_HOST_ID } else { FIRST_HOST_ID + self.started };
                    write_root_maps(process, host_id)?;
                    rustix::io::write(&mapper, b"m").at("announce the user map")?;
                }
                Ok(pidfd)
            }
        }
    }

    fn become_init(&self, spec: &Spec, descriptors: Descriptors, mapped: OwnedFd) -> ! {
        let status = descriptors.status.try_clone();
        let Err(failure) = self.prepare(spec, descriptors, mapped);
        if let Ok(status) = status {
            report(&status, &Report::Failed(failure));
        }
        sys::exit(125)
    }

    fn prepare(
        &self,
        spec: &Spec,
        descriptors: Descriptors,
        mapped: OwnedFd,
    ) -> Result<std::convert::Infallible, Failure> {
        sys::reset_signals();
        rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o022));
        let full = spec.level == SandboxLevel::Full;
        // Without a PID namespace init has to kill the tree itself, so it must survive to do so.
        let at_spawner_death = if full { Signal::KILL } else { Signal::TERM };
        rustix::process::set_parent_process_death_signal(Some(at_spawner_death)).at("set the parent death signal")?;
        rustix::thread::set_name(c"omniforge-init").at("name init")?;
        let (table, filter) = match spec.level {
            SandboxLevel::Full => {
                match self.identity {
                    Identity::Root => wait_for_maps(&mapped)?,
                    Identity::User { uid, gid } => write_own_maps(uid, gid)?,
                }
                (root::build(spec, &descriptors, self.owner())?, Some(self.full_filter.as_slice()))
            }
            SandboxLevel::Landlock => {
                // A builder has the host's network at every level.
                let is_builder = matches!(spec.purpose, Purpose::Builder { .. });
                let filter = if is_builder { &self.full_filter } else { &self.landlock_filter };
                (watch::ProcessTable::descendants(), Some(filter.as_slice()))
            }
            SandboxLevel::None => (watch::ProcessTable::descendants(), None),
        };
        if full {
            if matches!(spec.purpose, Purpose::Tool) {
                sys::raise_loopback().at("bring the loopback interface up")?;
            }
            rustix::system::sethostname(b"sandbox").at("set the host name")?;
        }
        if let Some(network) = spec.network.as_ref().filter(|_| full) {
            net::open(network, descriptors.status.as_fd())?;
        }
        let privileges = tool::Privileges { filter, inner_id: if full { self.owner() } else { None } };
        init::run(spec, descriptors, table, &privileges)
    }

    /// The id to change to inside the full sandbox; `None` where init already has it.
    fn owner(&self) -> Option<u32> {
        matches!(self.identity, Identity::Root).then_some(INNER_ID)
    }
}

/// Sends a report; a server that no longer listens is no error.
pub(super) fn report(status: impl AsFd, report: &Report) {
    let _gone = rustix::net::send(status, &report.to_bytes(), rustix::net::SendFlags::NOSIGNAL);
}

fn write_root_maps(process: i32, host_id: u32) -> Result<(), Failure> {
    // Root stays mapped so that init can read what only root may traverse; the tool gets an id that owns nothing.
    let map = format!("0 0 1\n{INNER_ID} {host_id} 1\n");
    std::fs::write(format!("/proc/{process}/uid_map"), &map).at("write the user map")?;
    std::fs::write(format!("/proc/{process}/gid_map"), &map).at("write the group map")
}

fn write_own_maps(uid: u32, gid: u32) -> Result<(), Failure> {
    std::fs::write("/proc/self/setgroups", "deny").at("deny setgroups")?;
    std::fs::write("/proc/self/uid_map", format!("{INNER_ID} {uid} 1\n")).at("write the user map")?;
    std::fs::write("/proc/self/gid_map", format!("{INNER_ID} {gid} 1\n")).at("write the group map")
}

fn wait_for_maps(mapped: &OwnedFd) -> Result<(), Failure> {
    match rustix::io::read(mapped, &mut [0u8; 1]).at("wait for the user map")? {
        1 => Ok(()),
        _ => Err(Failure { step: "wait for the user map".to_owned(), errno: libc::EPIPE }),
    }
}
