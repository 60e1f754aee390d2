//! Init: starts the tool, reaps everything, watches memory and CPU time, and reports how the tool ended.

use std::convert::Infallible;
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::process::{DumpableBehavior, Pid, Signal, WaitOptions, WaitStatus};

use super::spec::{AtStep, Cause, Descriptors, Failure, Report, Spec, Word};
use super::tool::{self, Privileges};
use super::watch::{ProcessTable, Usage};
use super::{report, sys};
use crate::model::SandboxLevel;

/// How often memory, CPU time and the number of processes are looked at.
const PERIOD: Duration = Duration::from_millis(25);
/// The same for one that waits for its call: it does nothing.
const IDLE_PERIOD: Duration = Duration::from_secs(1);

/// How far a tool's process is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// It gets ready for a call.
    Starting,
    /// It waits for one.
    Waiting,
    /// It serves one.
    Calling,
}

struct Init<'a> {
    spec: &'a Spec,
    status: OwnedFd,
    signals: OwnedFd,
    table: ProcessTable,
    tool: Pid,
    ended: Option<WaitStatus>,
    cause: Option<Cause>,
    peak_bytes: u64,
    phase: Phase,
    /// The CPU time that was used before the call.
    before: Duration,
}

/// Starts the tool and stays until it has ended; then this process is gone. Returns only what failed.
pub(super) fn run(
    spec: &Spec,
    descriptors: Descriptors,
    table: ProcessTable,
    privileges: &Privileges<'_>,
) -> Result<Infallible, Failure> {
    let full = spec.level == SandboxLevel::Full;
    if !full {
        rustix::process::set_child_subreaper(Some(rustix::process::getpid())).at("adopt orphans")?;
    }
    if full {
        // Once for both: the tool's process inherits it.
        tool::give_up(privileges.inner_id)?;
        // Changing ids clears it.
        rustix::process::set_parent_process_death_signal(Some(Signal::KILL)).at("set the parent death signal")?;
    }
    if spec.level != SandboxLevel::None {
        // The tool must not look into init, which may still hold what the tool shall not see. Changing ids clears this, too.
        rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable).at("hide init's memory")?;
    }
    let signals = sys::signal_descriptor().at("watch for signals")?;
    let tool = sys::start_process(|| tool::execute(spec, &descriptors, privileges)).at("start the tool's process")?;
    let tool = Pid::from_raw(tool).ok_or(Failure { step: "start the tool's process".to_owned(), errno: 0 })?;
    // Only the tool's side may hold these open; the spawner's own socket is at 0.
    let Descriptors { status, .. } = descriptors;
    rustix::stdio::dup2_stdin(&status).at("let go of the spawner's socket")?;
    let (ended, cause, peak_bytes, before) = (None, None, 0, Duration::ZERO);
    let phase = if spec.waits { Phase::Starting } else { Phase::Calling };
    Init { spec, status, signals, table, tool, ended, cause, peak_bytes, phase, before }.serve()
}

impl Init<'_> {
    fn serve(mut self) -> ! {
        let mut looked = Instant::now();
        while self.ended.is_none() {
            self.wait();
            self.reap();
            if self.ended.is_none() && looked.elapsed() >= self.period() {
                self.look();
                looked = Instant::now();
            }
        }
        if self.spec.level == SandboxLevel::Full {
            self.kill_namespace();
        } else {
            self.kill_descendants();
        }
        // The server takes this for the end: nothing of the run may be alive any more.
        self.report_end();
        sys::exit(0)
    }

    fn period(&self) -> Duration {
        if self.phase == Phase::Waiting { IDLE_PERIOD } else { PERIOD }
    }

    /// Waits for a signal, the server's end of the status socket, or the next look.
    fn wait(&mut self) {
        let period = self.period();
        let timeout = Timespec { tv_sec: period.as_secs().cast_signed(), tv_nsec: period.subsec_nanos().into() };
        // Without words to come, only the hang-up is of interest.
        let words = if self.phase == Phase::Calling { PollFlags::empty() } else { PollFlags::IN };
        let mut polled = [PollFd::new(&self.signals, PollFlags::IN), PollFd::new(&self.status, words)];
        // An interrupted wait is a short one.
        let _interrupted = rustix::event::poll(&mut polled, Some(&timeout));
        let hung_up = polled[1].revents().intersects(PollFlags::HUP | PollFlags::ERR);
        if !hung_up && polled[1].revents().contains(PollFlags::IN) {
            self.listen();
        }
        if hung_up || sys::terminate_was_asked(self.signals.as_fd()) {
            self.kill(Cause::Asked);
        }
    }

    fn listen(&mut self) {
        let mut byte = [0u8; 1];
        let flags = rustix::net::RecvFlags::DONTWAIT;
        let Ok((1, _)) = rustix::net::recv(&self.status, &mut byte, flags) else { return };
        match Word::of(byte[0]) {
            Some(Word::Ready) => {
                let (usage, processes) = self.table.usage();
                // The table counts in ticks, and the children that were waited for.
                let exact = sys::cpu_of(self.tool.as_raw_nonzero().get()).unwrap_or_default();
                self.before = usage.cpu.max(exact) + sys::children_usage().0;
                // Init itself sees to the limit too, so it does no harm where this one stays higher.
                let _higher = tool::limit_cpu_from_now(self.spec, self.tool, self.before);
                self.phase = Phase::Waiting;
                report(&self.status, &Report::Waiting { memory_bytes: self.table.exact_memory(&processes) });
            }
            Some(Word::Call) => self.phase = Phase::Calling,
            None => {}
        }
    }

    fn reap(&mut self) {
        while let Ok(Some((process, status))) = rustix::process::wait(WaitOptions::NOHANG) {
            if process == self.tool {
                self.ended = Some(status);
            }
        }
    }

    fn look(&mut self) {
        let limits = &self.spec.limits;
        let (mut usage, processes) = self.table.usage();
        if usage.memory_bytes > limits.memory_bytes {
            usage.memory_bytes = self.table.exact_memory(&processes);
        }
        self.peak_bytes = self.peak_bytes.max(usage.memory_bytes);
        let Usage { memory_bytes, cpu } = usage;
        let cpu_limit = match self.phase {
            Phase::Starting => tool::BEFORE_CALL,
            Phase::Waiting | Phase::Calling => self.before + Duration::from_millis(limits.cpu_milliseconds),
        };
        if memory_bytes > limits.memory_bytes {
            self.kill(Cause::Memory);
        } else if cpu + sys::children_usage().0 > cpu_limit {
            self.kill(Cause::Cpu);
        } else if self.spec.level != SandboxLevel::Full && self.table.threads(&processes) > limits.processes {
            self.kill(Cause::Processes);
        }
    }

    fn kill(&mut self, cause: Cause) {
        self.cause.get_or_insert(cause);
        if self.spec.level == SandboxLevel::Full {
            sys::kill_everything();
        } else {
            self.kill_descendants();
        }
    }

    /// Kills and reaps all others of the PID namespace, whose orphans all become init's children.
    fn kill_namespace(&mut self) {
        loop {
            sys::kill_everything();
            match rustix::process::wait(WaitOptions::empty()) {
                Err(rustix::io::Errno::CHILD) => return,
                _ => self.reap(),
            }
        }
    }

    /// Kills and reaps until no child is left. Orphans of killed processes become init's children, since it is their
    /// sub-reaper.
    fn kill_descendants(&mut self) {
        loop {
            for process in self.table.processes() {
                if let Some(process) = Pid::from_raw(process) {
                    // It may be gone already.
                    let _gone = rustix::process::kill_process(process, Signal::KILL);
                }
            }
            match rustix::process::wait(WaitOptions::empty()) {
                Ok(Some((process, status))) if process == self.tool => self.ended = Some(status),
                Err(rustix::io::Errno::CHILD) => return,
                _ => {}
            }
            self.reap();
        }
    }

    fn report_end(&self) {
        let (cpu, largest) = sys::children_usage();
        let (cpu, ended) = (cpu.saturating_sub(self.before), self.ended);
        report(
            &self.status,
            &Report::Ended {
                exit: ended.and_then(WaitStatus::exit_status),
                signal: ended.and_then(WaitStatus::terminating_signal),
                cause: self.cause,
                cpu_microseconds: u64::try_from(cpu.as_micros()).unwrap_or(u64::MAX),
                peak_bytes: self.peak_bytes.max(largest),
            },
        );
    }
}
