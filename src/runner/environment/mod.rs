//! Environments: the packages that a tool depends on, resolved and installed once, read-only ever after.
//!
//! At save, uv resolves the requirements to a lock with hashes. Before a run, the lock is installed into a directory named
//! by the hash of lock, interpreter, platform and way of building: once, however many ask for it. uv runs confined like a
//! tool, with the host's network and one writable directory.

mod build;
mod builder;
mod directory;
mod error;
mod garbage;
mod lock;
mod requirement;
mod resolve;
mod uv;

use std::collections::HashMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::Semaphore;

pub use directory::EnvironmentUse;
pub use error::EnvironmentError;
pub use garbage::Collected;
pub use requirement::{Requirement, RequirementError, check_requires_python, parse_requirements};

use super::Runner;
use crate::model::{EnvironmentLock, Language};
use build::Builds;
use builder::Builder;
use directory::Directories;

/// How environments are built and kept.
#[derive(Clone, Debug)]
pub struct EnvironmentOptions {
    /// Where they are; made when missing, this user's alone.
    pub root: PathBuf,
    /// The uv program; else the first on `search_path`.
    pub uv: Option<PathBuf>,
    /// Where programs are looked for, as in `PATH`.
    pub search_path: OsString,
    /// The package index; uv's default when unset.
    pub index: Option<String>,
    /// Only these packages may be installed, dependencies of dependencies included; all when empty.
    pub allow: Vec<String>,
    /// Ignore releases younger than this many days.
    pub min_age_days: Option<u32>,
    /// Use what is cached alone.
    pub offline: bool,
    /// The most bytes of one environment.
    pub max_bytes_each: u64,
    /// The most bytes of all, with the installer's cache.
    pub max_bytes_all: u64,
    /// How long one that no version needs is kept after its last use.
    pub keep: Duration,
    /// How long resolving or building may take.
    pub build_timeout: Duration,
    /// Builds at once.
    pub builders: usize,
    /// Variables about certificates and proxies: all that the installer gets of the server's own.
    pub variables: Vec<(String, String)>,
}

/// The environments of a server. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Environments {
    inner: Arc<Inner>,
}

/// What all clones share.
#[derive(Debug)]
struct Inner {
    options: EnvironmentOptions,
    directories: Directories,
    python: Option<Python>,
    builder: Option<Builder>,
    resolving: Semaphore,
    building: Semaphore,
    builds: Builds,
    failures: Mutex<HashMap<String, String>>,
}

/// The interpreter that environments are for.
#[derive(Clone, Debug)]
struct Python {
    path: PathBuf,
    version: String,
}

/// What is known of an environment without waiting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EnvironmentState {
    /// It can be used.
    Ready,
    /// It is being built.
    Building,
    /// It has not been built, or was removed.
    Missing,
    /// The last attempt in this process failed; the next call tries again.
    Failed(String),
}

/// The most failures that are remembered.
const FAILURES: usize = 256;

impl Environments {
    /// Opens the directory of environments, and makes it when it is missing. Python and the confinement are the runner's.
    ///
    /// # Errors
    /// [`EnvironmentError::BadInstaller`] when the settings name a `uv` that can't be used; [`EnvironmentError::Files`].
    pub fn new(options: EnvironmentOptions, runner: &Runner) -> Result<Self, EnvironmentError> {
        let directories =
            Directories::open(&options.root).map_err(EnvironmentError::files("make the directory of environments"))?;
        let python = runner.runtimes().iter().find(|runtime| runtime.language == Language::Python);
        let uv = uv::find(options.uv.as_deref(), &options.search_path)?;
        let builder = match uv.zip(python) {
            Some((program, python)) => Some(Builder::new(runner, program, directories.work(), python)?),
            None => None,
        };
        let python = python.map(|runtime| Python { path: runtime.path.clone(), version: runtime.version.clone() });
        let permits = options.builders.max(1);
        Ok(Self {
            inner: Arc::new(Inner {
                directories,
                python,
                builder,
                resolving: Semaphore::new(permits),
                building: Semaphore::new(permits),
                builds: Builds::default(),
                failures: Mutex::default(),
                options,
            }),
        })
    }

    /// Whether packages can be installed: a uv and a Python were found.
    pub fn available(&self) -> bool {
        self.inner.builder.is_some()
    }

    /// What is known of an environment.
    pub fn state(&self, lock: &EnvironmentLock) -> EnvironmentState {
        let hash = self.inner.hash(lock);
        if self.inner.directories.environment(&hash).is_dir() {
            EnvironmentState::Ready
        } else if self.inner.builds.is_running(&hash) {
            EnvironmentState::Building
        } else if let Some(text) = self.inner.failures().get(&hash) {
            EnvironmentState::Failed(text.clone())
        } else if !self.available() {
            EnvironmentState::Failed(EnvironmentError::NoInstaller.to_string())
        } else {
            EnvironmentState::Missing
        }
    }
}

impl Inner {
    fn python(&self) -> Result<&Python, EnvironmentError> {
        self.python.as_ref().ok_or(EnvironmentError::NoPython)
    }

    fn builder(&self) -> Result<&Builder, EnvironmentError> {
        self.builder.as_ref().ok_or(EnvironmentError::NoInstaller)
    }

    /// The name of the environment that a lock stands for with the interpreter of today, which may be another than that of
    /// the day when the lock was made.
    fn hash(&self, lock: &EnvironmentLock) -> String {
        match &self.python {
            Some(python) => python.environment_hash(&lock.lock),
            None => lock.hash.clone(),
        }
    }

    fn failures(&self) -> std::sync::MutexGuard<'_, HashMap<String, String>> {
        // Only whole entries are ever written.
        self.failures.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn remember(&self, hash: &str, failure: Option<&EnvironmentError>) {
        let mut failures = self.failures();
        match failure {
            Some(_) if failures.len() >= FAILURES && !failures.contains_key(hash) => {}
            Some(failure) => drop(failures.insert(hash.to_owned(), failure.to_string())),
            None => drop(failures.remove(hash)),
        }
    }

    fn seconds(&self) -> u64 {
        self.options.build_timeout.as_secs()
    }
}

impl Python {
    fn environment_hash(&self, lock: &str) -> String {
        lock::environment_hash(lock, &self.version, &self.path.to_string_lossy())
    }

    fn path(&self) -> &Path {
        &self.path
    }
}
