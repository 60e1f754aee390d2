//! Why there is no environment.

use std::error::Error;

use super::super::RunnerError;

/// Why an environment can't be resolved, built or used. Cheap to clone: everyone who waits for a build gets its error.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EnvironmentError {
    /// There is no uv.
    #[error("no `uv` program was found on this server, so dependencies can't be installed; install uv or set `uv`")]
    NoInstaller,
    /// The `uv` that the settings name can't be used.
    #[error("the setting `uv` names {path}, which {problem}")]
    BadInstaller {
        /// The file.
        path: String,
        /// What is wrong with it.
        problem: String,
    },
    /// There is no Python.
    #[error("no Python was found on this server, so no Python package can be installed")]
    NoPython,
    /// This Python is none that the tool can use.
    #[error("`requires-python` wants {wanted}; this server has Python {version}")]
    WrongPython {
        /// The specifier.
        wanted: String,
        /// The interpreter's version.
        version: String,
    },
    /// A `requires-python` that can't be read.
    #[error("`requires-python`: {problem}")]
    BadPython {
        /// What is wrong.
        problem: String,
    },
    /// Packages that the server's owner doesn't allow.
    #[error("not allowed on this server: {}; the setting `package_allow` names what is", packages.join(", "))]
    NotAllowed {
        /// Their names.
        packages: Vec<String>,
    },
    /// The resolver found no answer, or the installer failed: uv's own words.
    #[error("{text}")]
    Uv {
        /// Cause and hint.
        text: String,
    },
    /// It took too long.
    #[error("{doing} took longer than {seconds} s and was stopped")]
    TimedOut {
        /// What was being done.
        doing: String,
        /// The limit.
        seconds: u64,
    },
    /// It would not end by itself, or the kernel ended it.
    #[error("{doing} was stopped: {problem}")]
    Stopped {
        /// What was being done.
        doing: String,
        /// Why.
        problem: String,
    },
    /// The environment is larger than one may be.
    #[error("the installed packages take {} MiB; an environment may take {} MiB", mebibytes(*bytes), mebibytes(*limit))]
    TooLarge {
        /// Its size, or how far it had come.
        bytes: u64,
        /// The limit.
        limit: u64,
    },
    /// A lock that this program didn't write.
    #[error("the stored lock can't be used: {problem}; save the tool again to make a new one")]
    BadLock {
        /// What is wrong with it.
        problem: String,
    },
    /// The file system refused.
    #[error("cannot {doing}: {problem}")]
    Files {
        /// What was being done.
        doing: String,
        /// The system's answer.
        problem: String,
    },
    /// The installer couldn't be started.
    #[error("cannot start the installer: {problem}")]
    Start {
        /// Why.
        problem: String,
    },
}

impl EnvironmentError {
    /// Says what was being done when the file system refused.
    pub(super) fn files(doing: impl Into<String>) -> impl FnOnce(std::io::Error) -> Self {
        let doing = doing.into();
        move |error| Self::Files { doing, problem: error.to_string() }
    }
}

impl From<RunnerError> for EnvironmentError {
    fn from(error: RunnerError) -> Self {
        let source = error.source().map(|source| format!(": {source}")).unwrap_or_default();
        Self::Start { problem: format!("{error}{source}") }
    }
}

fn mebibytes(bytes: u64) -> String {
    let tenths = bytes * 10 / (1 << 20);
    format!("{}.{}", tenths / 10, tenths % 10)
}
