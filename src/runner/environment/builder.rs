//! How the installer is run: a program, confined, with the host's network and one directory that it may write to.

use std::path::PathBuf;
use std::time::Duration;

use async_trait::async_trait;

use super::error::EnvironmentError;

/// One run of the installer.
#[derive(Clone, Debug)]
pub(in crate::runner) struct BuildCommand {
    /// Program and arguments, with paths as the program sees them ([`BuilderPlaces`]).
    pub(in crate::runner) command: Vec<String>,
    /// All variables that it gets.
    pub(in crate::runner) environment: Vec<(String, String)>,
    /// What it reads on stdin.
    pub(in crate::runner) stdin: String,
    /// How long it may take.
    pub(in crate::runner) timeout: Duration,
    /// Bytes of the largest file that it may write.
    pub(in crate::runner) file_bytes: u64,
    /// Further files and directories of the host that it may read, where they are.
    pub(in crate::runner) readable: Vec<PathBuf>,
}

/// What the installer needs, as it sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::runner) struct BuilderPlaces {
    /// The installer's program.
    pub(in crate::runner) program: String,
    /// The directory that it may write to.
    pub(in crate::runner) work: String,
}

/// How it ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::runner) enum BuildEnd {
    /// It left with this status.
    Exit(i32),
    /// It was ended, for this reason.
    Killed(String),
    /// Its time was over.
    TimedOut,
}

/// What it did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::runner) struct BuildOutput {
    /// How it ended.
    pub(in crate::runner) end: BuildEnd,
    /// Its output.
    pub(in crate::runner) stdout: String,
    /// Its words.
    pub(in crate::runner) stderr: String,
}

/// Runs the installer.
#[async_trait]
pub(in crate::runner) trait Builder: Send + Sync + std::fmt::Debug {
    /// Where program and directory are for the process.
    fn places(&self, program: &std::path::Path, work: &std::path::Path) -> Result<BuilderPlaces, EnvironmentError>;

    /// Runs it to its end.
    ///
    /// # Cancellation
    /// Dropping the future kills the whole process tree.
    async fn run(&self, command: BuildCommand) -> Result<BuildOutput, EnvironmentError>;
}
