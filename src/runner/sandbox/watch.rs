//! Sums over the processes of a run: memory, CPU time, threads. Read from a `/proc` that only init has.

use std::ffi::CStr;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use rustix::fs::{CWD, Mode, OFlags};

use super::sys;

/// What living processes use together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Usage {
    /// Resident memory. Pages that several share count for each.
    pub(super) memory_bytes: u64,
    /// CPU time, with that of children they waited for.
    pub(super) cpu: Duration,
}

/// The processes of a run.
pub(super) enum ProcessTable {
    /// Everything in this PID namespace but init, from a `/proc` that hides nothing. A tool can hide from others in its own
    /// `/proc` (by being undumpable), not in this one.
    Namespace(OwnedFd),
    /// Whatever descends from this process, from the host's `/proc`.
    Descendants,
}

impl ProcessTable {
    /// All of the namespace that this `/proc` belongs to.
    pub(super) fn namespace(proc: OwnedFd) -> Self {
        Self::Namespace(proc)
    }

    /// All descendants.
    pub(super) fn descendants() -> Self {
        Self::Descendants
    }

    /// The process ids, init's not among them.
    pub(super) fn processes(&self) -> Vec<i32> {
        match self {
            Self::Namespace(proc) => all_processes(proc),
            Self::Descendants => {
                let mut found = Vec::new();
                collect_descendants(rustix::process::getpid().as_raw_nonzero().get(), &mut found);
                found
            }
        }
    }

    /// The sums, and whose they are.
    pub(super) fn usage(&self) -> (Usage, Vec<i32>) {
        let processes = self.processes();
        let mut sum = Usage::default();
        for process in &processes {
            if let Some(usage) = self.read(*process, "stat").as_deref().and_then(parse_stat) {
                sum.memory_bytes += usage.memory_bytes;
                sum.cpu += usage.cpu;
            }
        }
        (sum, processes)
    }

    /// The memory with shared pages counted once, as far as the processes let that be read.
    pub(super) fn exact_memory(&self, processes: &[i32]) -> u64 {
        let bytes = |process: &i32| {
            let rollup = self.read(*process, "smaps_rollup");
            rollup.as_deref().and_then(parse_rollup).or_else(|| {
                let stat = self.read(*process, "stat")?;
                parse_stat(&stat).map(|usage| usage.memory_bytes)
            })
        };
        processes.iter().filter_map(bytes).sum()
    }

    /// How many threads they are together.
    pub(super) fn threads(&self, processes: &[i32]) -> u64 {
        let count = |process: &i32| parse_field(self.read(*process, "stat")?.as_str(), 17);
        processes.iter().filter_map(count).sum()
    }

    fn read(&self, process: i32, file: &str) -> Option<String> {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        let opened = match self {
            Self::Namespace(proc) => {
                rustix::fs::openat(proc.as_fd(), format!("{process}/{file}"), flags, Mode::empty())
            }
            Self::Descendants => rustix::fs::openat(CWD, format!("/proc/{process}/{file}"), flags, Mode::empty()),
        };
        // A process that is gone uses nothing. Names may hold any bytes.
        let mut bytes = [0u8; 4096];
        let read = rustix::io::read(opened.ok()?, &mut bytes).ok()?;
        Some(String::from_utf8_lossy(&bytes[..read]).into_owned())
    }
}

fn all_processes(proc: &OwnedFd) -> Vec<i32> {
    // A mount that is attached nowhere is only a path: its directory has to be opened to be read.
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let opened = rustix::fs::openat(proc.as_fd(), ".", flags, Mode::empty());
    let Ok(directory) = opened.and_then(rustix::fs::Dir::new) else { return Vec::new() };
    let number = |name: &CStr| name.to_str().ok()?.parse::<i32>().ok();
    directory.filter_map(|entry| number(entry.ok()?.file_name())).filter(|process| *process != 1).collect()
}

fn collect_descendants(process: i32, found: &mut Vec<i32>) {
    let Ok(threads) = std::fs::read_dir(format!("/proc/{process}/task")) else { return };
    for thread in threads.flatten() {
        let children = std::fs::read_to_string(thread.path().join("children")).unwrap_or_default();
        for child in children.split_whitespace().filter_map(|word| word.parse().ok()) {
            found.push(child);
            collect_descendants(child, found);
        }
    }
}

/// A field of `/proc/PID/stat` by its offset behind the name, which may itself hold spaces and brackets.
fn parse_field(stat: &str, offset: usize) -> Option<u64> {
    stat.rsplit_once(") ")?.1.split(' ').nth(offset)?.parse().ok()
}

fn parse_stat(stat: &str) -> Option<Usage> {
    let ticks: u64 = (11..15).map(|offset| parse_field(stat, offset)).sum::<Option<u64>>()?;
    let pages = parse_field(stat, 21)?;
    Some(Usage {
        memory_bytes: pages * rustix::param::page_size() as u64,
        cpu: Duration::from_millis(ticks * 1000 / sys::clock_ticks()),
    })
}

/// Anonymous and shared memory of a process, each page divided by how many share it.
fn parse_rollup(rollup: &str) -> Option<u64> {
    let kibibytes = |name: &str| -> Option<u64> {
        let line = rollup.lines().find_map(|line| line.strip_prefix(name))?;
        line.trim().strip_suffix(" kB")?.parse().ok()
    };
    Some((kibibytes("Pss_Anon:")? + kibibytes("Pss_Shmem:")?) * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_a_stat_line_with_a_hostile_name() {
        let mut line = String::from("7 (a) 1 2 ) S 1 7 7 0 -1 4194560 1 0 0 0 3 4 5 6 20 0 9 0 100 4096 12");
        line.push_str(" 0 0 0 0");
        let usage = parse_stat(&line).unwrap();
        assert_eq!(usage.memory_bytes, 12 * rustix::param::page_size() as u64);
        assert_eq!(usage.cpu, Duration::from_millis(18 * 1000 / sys::clock_ticks()));
        assert_eq!(parse_field(&line, 17), Some(9));
    }

    #[test]
    fn reads_a_rollup() {
        let text = "00-ff ---p 0 0 0 [rollup]\nRss: 100 kB\nPss_Anon:   30 kB\nPss_File: 5 kB\nPss_Shmem:  2 kB\n";
        assert_eq!(parse_rollup(text), Some(32 * 1024));
        assert_eq!(parse_rollup("Rss: 1 kB"), None);
    }
}
