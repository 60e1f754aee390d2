//! From requirements to a lock.

use super::builder::BuildOutput;
use super::error::EnvironmentError;
use super::uv::{self, Task};
use super::{Environments, Inner, Requirement, check_requires_python, lock};
use crate::model::EnvironmentLock;

impl Environments {
    /// Resolves requirements to versions and hashes, for this server's Python. Nothing is installed.
    ///
    /// # Errors
    /// [`EnvironmentError`]; where there is no answer, its text is uv's own cause and hint.
    ///
    /// # Cancellation
    /// Dropping the future ends the resolver.
    pub async fn lock(
        &self,
        requirements: &[Requirement],
        requires_python: Option<&str>,
    ) -> Result<EnvironmentLock, EnvironmentError> {
        let inner = &self.inner;
        let python = inner.python()?;
        if let Some(wanted) = requires_python {
            let met = check_requires_python(wanted, &python.version)
                .map_err(|error| EnvironmentError::BadPython { problem: error.to_string() })?;
            if !met {
                let (wanted, version) = (wanted.to_owned(), python.version.clone());
                return Err(EnvironmentError::WrongPython { wanted, version });
            }
        }
        inner.check_allowed(requirements.iter().map(Requirement::name))?;
        let lines: String = requirements.iter().map(|requirement| format!("{requirement}\n")).collect();
        let _permit = inner.resolving.acquire().await.expect("the semaphore is never closed");
        let output = inner.run_uv(&Task::Resolve, &lines).await?;
        let pins = lock::parse(&uv::outcome(output, "resolving the dependencies", inner.seconds())?)?;
        inner.check_allowed(pins.iter().map(|pin| pin.name.as_str()))?;
        let text = lock::render(&pins);
        Ok(EnvironmentLock { hash: python.environment_hash(&text), lock: text })
    }
}

impl Environments {
    /// Whether a lock was made for the interpreter of today, and holds nothing but what may be installed.
    pub fn is_current(&self, lock: &EnvironmentLock) -> bool {
        let allowed = |pins: Vec<lock::Pin>| self.inner.check_allowed(pins.iter().map(|pin| pin.name.as_str())).is_ok();
        self.inner.hash(lock) == lock.hash && lock::parse(&lock.lock).is_ok_and(allowed)
    }
}

impl Inner {
    /// Refuses packages that the server's owner doesn't allow.
    pub(super) fn check_allowed<'a>(&self, names: impl Iterator<Item = &'a str>) -> Result<(), EnvironmentError> {
        let packages = lock::not_allowed(names, &self.options.allow);
        if packages.is_empty() { Ok(()) } else { Err(EnvironmentError::NotAllowed { packages }) }
    }

    /// Runs uv; where the index can't be reached, once more with what is cached.
    pub(super) async fn run_uv(&self, task: &Task<'_>, stdin: &str) -> Result<BuildOutput, EnvironmentError> {
        let (builder, python) = (self.builder()?, self.python()?);
        let places = builder.places()?;
        let run = async |offline| {
            let command = uv::command(&self.options, &places, python.path(), task, (stdin.to_owned(), offline));
            builder.run(command).await
        };
        let output = run(false).await?;
        if self.options.offline || !uv::is_network_failure(&output) {
            return Ok(output);
        }
        let cached = run(true).await?;
        // What uv said of the network is the cause, not that the cache lacks it.
        Ok(if uv::succeeded(&cached) { cached } else { output })
    }
}
