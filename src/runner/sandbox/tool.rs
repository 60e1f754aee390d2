//! The last steps before the tool's program: the tool's process gives up everything and execs.

use std::ffi::CString;
use std::os::fd::AsFd;
use std::time::Duration;

use rustix::process::{Pid, Resource, Rlimit, Signal};
use rustix::thread::{CapabilitySet, CapabilitySets};

use super::spec::{AtStep, Descriptors, Failure, Report, Spec};
use super::{landlock, report, sys};
use crate::model::SandboxLevel;

/// What a process of the sandbox has to give up.
pub(super) struct Privileges<'a> {
    /// The system calls it may make; `None` without a sandbox.
    pub(super) filter: Option<&'a [libc::sock_filter]>,
    /// The id to change to, where the process still is root inside.
    pub(super) inner_id: Option<u32>,
}

/// Runs the tool's program; what fails is reported. Never returns. The memory is init's, which waits.
pub(super) fn execute(spec: &Spec, descriptors: &Descriptors, privileges: &Privileges<'_>) -> ! {
    let failure = match place_descriptors(descriptors) {
        Ok(status) => {
            let Err(failure) = start(spec, privileges);
            report(sys::borrow(status), &Report::Failed(failure));
            sys::exit(125)
        }
        Err(failure) => failure,
    };
    report(&descriptors.status, &Report::Failed(failure));
    sys::exit(125)
}

fn place_descriptors(descriptors: &Descriptors) -> Result<i32, Failure> {
    let mut inherited = vec![descriptors.stdin.as_fd(), descriptors.stdout.as_fd(), descriptors.stderr.as_fd()];
    inherited.extend(descriptors.control.as_ref().map(AsFd::as_fd));
    sys::arrange_descriptors(&inherited, descriptors.status.as_fd()).at("arrange descriptors")
}

fn start(spec: &Spec, privileges: &Privileges<'_>) -> Result<std::convert::Infallible, Failure> {
    let strings = |list: &[String]| -> Result<Vec<CString>, Failure> {
        list.iter().map(|text| CString::new(text.as_str()).at("pass text that holds a NUL byte")).collect()
    };
    let (command, environment) = (strings(&spec.command)?, strings(&spec.environment)?);
    rustix::process::setsid().at("start a session")?;
    rustix::process::chdir(spec.directory.as_str()).at_path("enter the working directory", &spec.directory)?;
    rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o022));
    sys::reset_signals();
    set_limits(spec)?;
    if spec.level == SandboxLevel::Landlock {
        // In the full sandbox, init did it before it started this process.
        give_up(privileges.inner_id)?;
    }
    // No process inherits it.
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL)).at("set the parent death signal")?;
    match spec.level {
        SandboxLevel::Full => landlock::restrict_private_root(spec)?,
        SandboxLevel::Landlock => landlock::restrict_host(spec)?,
        SandboxLevel::None => {}
    }
    if let Some(filter) = privileges.filter {
        sys::install_filter(filter).at("install the seccomp filter")?;
    }
    let program = command.first().ok_or(Failure { step: "find a program in an empty command".to_owned(), errno: 0 })?;
    Err(sys::execute(program, &command, &environment)).at_path("execute", &spec.command[0])
}

/// Drops ids, capabilities and the way back to them. For init and the tool alike.
pub(super) fn give_up(inner_id: Option<u32>) -> Result<(), Failure> {
    sys::drop_bounding_set();
    if let Some(id) = inner_id {
        let (uid, gid) = (rustix::fs::Uid::from_raw(id), rustix::fs::Gid::from_raw(id));
        rustix::thread::set_thread_groups(&[]).at("drop supplementary groups")?;
        rustix::thread::set_thread_res_gid(gid, gid, gid).at("change the group")?;
        rustix::thread::set_thread_res_uid(uid, uid, uid).at("change the user")?;
    }
    rustix::thread::clear_ambient_capability_set().at("clear ambient capabilities")?;
    let none = CapabilitySet::empty();
    rustix::thread::set_capabilities(None, CapabilitySets { effective: none, permitted: none, inheritable: none })
        .at("drop capabilities")?;
    rustix::thread::set_no_new_privs(true).at("refuse new privileges")
}

/// The CPU time that a process which waits for its call may use before.
pub(super) const BEFORE_CALL: Duration = Duration::from_secs(30);
/// Less than this is not worth another limit of whole seconds.
const NEGLIGIBLE: Duration = Duration::from_millis(50);

/// Sets the CPU limit of a process that has used `before` without a call, as if it had used nothing.
pub(super) fn limit_cpu_from_now(spec: &Spec, tool: Pid, before: Duration) -> Result<(), Failure> {
    let extra = if before < NEGLIGIBLE { 0 } else { before.as_secs() + 1 };
    let seconds = spec.limits.cpu_milliseconds.div_ceil(1000).max(1) + extra;
    let ceiling = rustix::process::getrlimit(Resource::Cpu).maximum.unwrap_or(u64::MAX);
    let limit = Rlimit { current: Some(seconds.min(ceiling)), maximum: Some((seconds + 1).min(ceiling)) };
    rustix::process::prlimit(Some(tool), Resource::Cpu, limit).map(drop).at("limit CPU time from now on")
}

fn set_limits(spec: &Spec) -> Result<(), Failure> {
    let limits = &spec.limits;
    // What it uses before its call is there comes on top; init takes the rest of it back then.
    let before = if spec.waits { BEFORE_CALL.as_secs() } else { 0 };
    let cpu_seconds = limits.cpu_milliseconds.div_ceil(1000).max(1) + before;
    // One more second to the hard limit, so that the signal is SIGXCPU, which names the cause.
    set_limit(Resource::Cpu, cpu_seconds, cpu_seconds + 1)?;
    set_limit(Resource::Core, 0, 0)?;
    set_limit(Resource::Fsize, limits.file_bytes, limits.file_bytes)?;
    set_limit(Resource::Nofile, limits.open_files, limits.open_files)?;
    set_limit(Resource::Memlock, 64 << 10, 64 << 10)?;
    if let Some(bytes) = limits.address_space_bytes {
        set_limit(Resource::As, bytes, bytes)?;
    }
    if spec.level == SandboxLevel::Full {
        // Counted in the sandbox's own user namespace; init is one of them. Elsewhere it would count the whole user's
        // processes, so init counts there.
        set_limit(Resource::Nproc, limits.processes + 1, limits.processes + 1)?;
    }
    Ok(())
}

/// Sets a limit, or keeps a lower hard limit that the server itself is under.
fn set_limit(resource: Resource, soft: u64, hard: u64) -> Result<(), Failure> {
    let ceiling = rustix::process::getrlimit(resource).maximum.unwrap_or(u64::MAX);
    let limit = Rlimit { current: Some(soft.min(ceiling)), maximum: Some(hard.min(ceiling)) };
    rustix::process::setrlimit(resource, limit).at_path("set the limit", &format!("{resource:?}"))
}
