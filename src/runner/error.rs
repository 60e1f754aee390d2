//! What can go wrong in the runner itself. A script that fails is an outcome.

use std::io;
use std::path::PathBuf;

use super::advice;
use super::sandbox::spec::Failure;
use crate::model::{Language, NetworkError};

/// Why the runner did not run a script.
#[derive(Debug, thiserror::Error)]
pub enum RunnerError {
    /// The spawner process can't be started.
    #[error("cannot start the spawner process")]
    Spawner {
        /// Why not.
        #[source]
        source: io::Error,
    },
    /// The spawner process doesn't answer any more.
    #[error("the spawner process is gone")]
    SpawnerGone {
        /// What was seen of it.
        #[source]
        source: io::Error,
    },
    /// The sandbox can't be built here.
    #[error("the sandbox could not be built: {step}{}. {advice}", reason(*errno))]
    Sandbox {
        /// The step that failed.
        step: String,
        /// The kernel's error number; 0 when it wasn't the kernel.
        errno: i32,
        /// What to do.
        advice: String,
    },
    /// The sandbox was built but doesn't hold.
    #[error("the sandbox does not hold: {problem}. Tools will not run")]
    NotIsolated {
        /// What a script could do.
        problem: String,
    },
    /// Nothing to run this language with.
    #[error("no runtime for {} is installed", language.as_str())]
    NoRuntime {
        /// The language.
        language: Language,
    },
    /// The harness can't be prepared for an interpreter.
    #[error("the interpreter {} can't prepare the harness: {problem}", path.display())]
    Harness {
        /// The interpreter.
        path: PathBuf,
        /// What it said.
        problem: String,
    },
    /// A network grant that can't be read.
    #[error("the network grant can't be used")]
    Network {
        /// Which entry, and what is wrong with it.
        #[source]
        source: NetworkError,
    },
    /// More than a run may be given.
    #[error("{what} has {size} bytes; at most {limit} are allowed")]
    TooLarge {
        /// What.
        what: &'static str,
        /// Its size in bytes.
        size: usize,
        /// The limit in bytes.
        limit: usize,
    },
    /// A secret that can't be an environment variable.
    #[error("the secret `{name}` can't be given to the script: {reason}")]
    Secret {
        /// Its name.
        name: String,
        /// Why not.
        reason: &'static str,
    },
    /// A path that isn't UTF-8.
    #[error("the path {} is not UTF-8", path.display())]
    Path {
        /// The path.
        path: PathBuf,
    },
    /// Files or pipes of a run.
    #[error("cannot {what}")]
    Io {
        /// What was tried.
        what: &'static str,
        /// Why not.
        #[source]
        source: io::Error,
    },
}

impl RunnerError {
    /// Makes the error for something that was tried.
    pub(super) fn io<E: Into<io::Error>>(what: &'static str) -> impl Fn(E) -> Self {
        move |source| Self::Io { what, source: source.into() }
    }

    /// The error for a step of the sandbox, with advice.
    pub(super) fn sandbox(failure: Failure) -> Self {
        let advice = advice::advice(&failure);
        Self::Sandbox { step: failure.step, errno: failure.errno, advice }
    }
}

fn reason(errno: i32) -> String {
    if errno == 0 { String::new() } else { format!(" ({})", io::Error::from_raw_os_error(errno)) }
}
