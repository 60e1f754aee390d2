//! How the installer is run: confined like a tool, but with the host's network and one directory that it may write to and
//! that outlives it.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::super::layout::{Layout, text};
use super::super::process::{self, Call, Finished, Launch, Stop};
use super::super::sandbox::spec::{Cause, Mount, ProcessLimits, Purpose, Report, Spec};
use super::super::spawner::{SpawnerClient, memory_file};
use super::super::{Runner, RunnerError, Runtime, launch};
use super::error::EnvironmentError;
use crate::model::{Limits, RunId, SandboxLevel};

/// Where the full sandbox shows the installer and its directory.
const PROGRAM: &str = "/builder/uv";
const WORK: &str = "/environments";
/// Bytes of memory of all the installer's processes.
const MEMORY: u64 = 2 << 30;
/// The installer downloads and compiles with many threads, and more than one process.
const PROCESSES: u64 = 512;
const OPEN_FILES: u64 = 4096;
const TMP: u64 = 256 << 20;
/// Bytes of a lock, and of the installer's words.
const OUTPUT: u64 = 16 << 20;

/// One run of the installer.
#[derive(Clone, Debug)]
pub(super) struct BuildCommand {
    /// Program and arguments, with paths as the program sees them ([`BuilderPlaces`]).
    pub(super) command: Vec<String>,
    /// All variables that it gets, but those that say where its home is.
    pub(super) environment: Vec<(String, String)>,
    /// What it reads on stdin.
    pub(super) stdin: String,
    /// How long it may take.
    pub(super) timeout: Duration,
    /// Bytes of the largest file that it may write.
    pub(super) file_bytes: u64,
    /// Further files and directories of the host that it may read, where they are.
    pub(super) readable: Vec<PathBuf>,
}

/// What the installer needs, as it sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct BuilderPlaces {
    /// The installer's program.
    pub(super) program: String,
    /// The directory that it may write to.
    pub(super) work: String,
}

/// How it ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum BuildEnd {
    /// It left with this status.
    Exit(i32),
    /// It was ended, for this reason.
    Killed(String),
    /// Its time was over.
    TimedOut,
}

/// What it did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct BuildOutput {
    /// How it ended.
    pub(super) end: BuildEnd,
    /// Its output.
    pub(super) stdout: String,
    /// Its words.
    pub(super) stderr: String,
}

/// Runs the installer.
#[derive(Debug)]
pub(super) struct Builder {
    /// Starts processes.
    spawner: Arc<SpawnerClient>,
    /// How strongly it is confined.
    level: SandboxLevel,
    /// Where the server's process keeps what dies with it.
    runtime_dir: PathBuf,
    /// The Python interpreter's own files, where they aren't among the system's.
    interpreter: Option<Mount>,
    /// The installer's program on the host.
    program: PathBuf,
    /// The directory on the host that it may write to.
    work: PathBuf,
}

impl Builder {
    /// A builder that is confined as this runner's tools are.
    ///
    /// # Errors
    /// When the interpreter's path isn't UTF-8.
    pub(super) fn new(
        runner: &Runner,
        program: PathBuf,
        work: PathBuf,
        python: &Runtime,
    ) -> Result<Self, EnvironmentError> {
        let (spawner, level, runtime_dir) = (runner.spawner(), runner.sandbox(), runner.runtime_dir().to_owned());
        Ok(Self { spawner, level, runtime_dir, interpreter: python.mount()?, program, work })
    }

    /// Where program and directory are for the process.
    ///
    /// # Errors
    /// When a path isn't UTF-8.
    pub(super) fn places(&self) -> Result<BuilderPlaces, EnvironmentError> {
        let is_shown = self.level == SandboxLevel::Full && !self.program.starts_with("/usr");
        let program = if is_shown { PROGRAM.to_owned() } else { text(&self.program)? };
        let work = if self.level == SandboxLevel::Full { WORK.to_owned() } else { text(&self.work)? };
        Ok(BuilderPlaces { program, work })
    }

    /// Runs it to its end.
    ///
    /// # Errors
    /// When it can't be started. An installer that fails is no error.
    ///
    /// # Cancellation
    /// Dropping the future kills the whole process tree.
    pub(super) async fn run(&self, command: BuildCommand) -> Result<BuildOutput, EnvironmentError> {
        let (launch, layout) = self.prepare(command)?;
        // The installer speaks no frames, so that no event ever comes.
        let (listener, _) = mpsc::channel(1);
        let spools = launch.call.spools.clone();
        let finished = process::execute(&self.spawner, launch, &listener, &CancellationToken::new()).await;
        if let Some(directory) = layout.directory {
            directory.remove().await;
        }
        for spool in spools {
            // Hardly ever there.
            let _absent = tokio::fs::remove_file(spool).await;
        }
        Ok(output(finished?))
    }

    fn prepare(&self, command: BuildCommand) -> Result<(Launch, Layout), EnvironmentError> {
        let id = RunId(uuid::Uuid::now_v7());
        let layout = Layout::new(self.level, &self.runtime_dir, id, None)?;
        let limits = limits(&command);
        let places = self.places()?;
        let mut spec = launch::base_spec(self.level, &layout, process_limits(&limits));
        spec.purpose = Purpose::Builder { writable: Mount { source: text(&self.work)?, target: places.work } };
        spec.mounts.extend(self.interpreter.clone());
        if places.program == PROGRAM || self.level != SandboxLevel::Full {
            spec.mounts.push(Mount { source: text(&self.program)?, target: places.program });
        }
        for path in &command.readable {
            self.show(path, &mut spec)?;
        }
        let home = [("HOME", &layout.work), ("TMPDIR", &layout.tmp)].map(|(name, path)| format!("{name}={path}"));
        let variables = command.environment.iter().map(|(name, value)| format!("{name}={value}"));
        spec.environment = variables.chain(home).collect();
        spec.command = command.command;
        let stdin =
            memory_file(command.stdin.as_bytes()).map_err(RunnerError::io("hold the requirements in memory"))?;
        let spools = launch::spools(&self.runtime_dir, id);
        let call = Call { frame: None, limits, spools, network: None, masker: None };
        Ok((Launch { spec, stdin, call }, layout))
    }

    /// Adds a path of the host, unless it can be seen anyway: nothing can be mounted below a read-only mount.
    fn show(&self, path: &Path, spec: &mut Spec) -> Result<(), EnvironmentError> {
        let is_seen = |directory: &str| path.starts_with(directory);
        if !["/usr", "/etc/ssl/certs", "/etc/pki/tls/certs", "/etc/pki/ca-trust"].into_iter().any(is_seen) {
            spec.mounts.push(Mount { source: text(path)?, target: text(path)? });
        }
        Ok(())
    }
}

fn limits(command: &BuildCommand) -> Limits {
    Limits {
        wall: command.timeout,
        // The wall time is the limit, on however many cores.
        cpu: command.timeout * 64,
        memory_bytes: MEMORY,
        processes: PROCESSES,
        tmp_bytes: TMP,
        file_bytes: command.file_bytes,
        open_files: OPEN_FILES,
        output_inline_bytes: OUTPUT,
        output_spool_bytes: OUTPUT,
        result_bytes: 0,
    }
}

fn process_limits(limits: &Limits) -> ProcessLimits {
    ProcessLimits {
        cpu_milliseconds: u64::try_from(limits.cpu.as_millis()).unwrap_or(u64::MAX),
        memory_bytes: limits.memory_bytes,
        address_space_bytes: None,
        processes: limits.processes,
        tmp_bytes: limits.tmp_bytes,
        file_bytes: limits.file_bytes,
        open_files: limits.open_files,
    }
}

fn output(finished: Finished) -> BuildOutput {
    let end = match (finished.stop, finished.report) {
        (Some(Stop::Timeout), _) => BuildEnd::TimedOut,
        (Some(Stop::Flooded), _) => BuildEnd::Killed("it wrote too much".to_owned()),
        (Some(Stop::Cancelled), _) | (None, None) => BuildEnd::Killed("the server is stopping".to_owned()),
        (None, Some(Report::Ended { cause: Some(Cause::Memory), .. })) => {
            BuildEnd::Killed(format!("it used more than {} MiB of memory", MEMORY >> 20))
        }
        (None, Some(Report::Ended { exit: Some(code), cause: None, .. })) => BuildEnd::Exit(code),
        (None, Some(Report::Ended { signal: Some(signal), .. })) => BuildEnd::Killed(format!("by signal {signal}")),
        (None, Some(other)) => BuildEnd::Killed(format!("unexpectedly ({other:?})")),
    };
    BuildOutput { end, stdout: finished.stdout.text, stderr: finished.stderr.text }
}
