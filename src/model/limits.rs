//! The limits of a run: defaults, per-tool values and the server's ceilings.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// A limit that a run can hit. Its name is what the ending says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Limit {
    /// CPU seconds of all the run's processes.
    Cpu,
    /// Memory of all the run's processes.
    Memory,
    /// Bytes written to stdout or stderr.
    Output,
    /// Bytes of the returned value.
    Result,
}

impl Limit {
    /// The name used in JSON and SQL.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Cpu => "cpu",
            Self::Memory => "memory",
            Self::Output => "output",
            Self::Result => "result",
        }
    }
}

/// What one run may use. Each value is already under the server's ceiling.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Time on the clock from the start of the process to its end.
    pub wall: Duration,
    /// CPU time of each process.
    pub cpu: Duration,
    /// Bytes resident over all the run's processes.
    pub memory_bytes: u64,
    /// Processes and threads at once.
    pub processes: u64,
    /// Bytes in the private `/tmp` (which holds the working directory).
    pub tmp_bytes: u64,
    /// Bytes in one file.
    pub file_bytes: u64,
    /// Open descriptors of each process.
    pub open_files: u64,
    /// Bytes of each output stream kept inline with the run.
    pub output_inline_bytes: u64,
    /// Bytes of each output stream after which the run is killed.
    pub output_spool_bytes: u64,
    /// Bytes of the returned value.
    pub result_bytes: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            wall: Duration::from_secs(60),
            cpu: Duration::from_secs(60),
            memory_bytes: 512 << 20,
            processes: 64,
            tmp_bytes: 64 << 20,
            file_bytes: 64 << 20,
            open_files: 256,
            output_inline_bytes: 1 << 20,
            output_spool_bytes: 64 << 20,
            result_bytes: 4 << 20,
        }
    }
}

/// The most that a tool may ask for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ceilings {
    /// The longest wall time.
    pub wall: Duration,
    /// The most memory.
    pub memory_bytes: u64,
}

impl Default for Ceilings {
    fn default() -> Self {
        Self { wall: Duration::from_secs(3600), memory_bytes: 8 << 30 }
    }
}
