//! The environment of a version: waiting for it, and what its state is called.

use std::path::PathBuf;

use super::{Live, Tools};
use crate::model::{EnvironmentLock, RunEvent};
use crate::runner::EnvironmentState;

const NO_INSTALLER: &str = "no `uv` program was found on this server, so dependencies can't be installed";

impl Tools {
    /// Waits until the environment is ready, with progress.
    ///
    /// # Errors
    /// The installer's own words.
    pub(super) async fn environment(&self, lock: &EnvironmentLock, live: &Live) -> Result<PathBuf, String> {
        let environments = self.environments.as_ref().ok_or(NO_INSTALLER)?;
        if !matches!(environments.state(lock), EnvironmentState::Ready) {
            let message = Some("installing the dependencies".to_owned());
            live.tell(RunEvent::Progress { progress: 0.0, total: None, message });
        }
        environments.ready(lock).await.map_err(|error| error.to_string())
    }

    /// Starts building the environment in the background; what goes wrong is said by its state and by the next call.
    pub(super) fn prepare(&self, lock: &EnvironmentLock) {
        let Some(environments) = self.environments.clone() else { return };
        let lock = lock.clone();
        self.lifecycle.tasks.spawn(async move {
            if let Err(error) = environments.ready(&lock).await {
                tracing::warn!(environment = %lock.hash, %error, "The environment {} could not be built", lock.hash);
            }
        });
    }

    /// How far it is; where nothing can install it, it has failed.
    pub(super) fn environment_state(&self, lock: &EnvironmentLock) -> EnvironmentState {
        match &self.environments {
            Some(environments) => environments.state(lock),
            None => EnvironmentState::Failed(NO_INSTALLER.to_owned()),
        }
    }

    /// `ready`, `installing` or `failed: …`.
    pub(super) fn environment_status(&self, lock: &EnvironmentLock) -> String {
        match self.environment_state(lock) {
            EnvironmentState::Ready => "ready".to_owned(),
            EnvironmentState::Building | EnvironmentState::Missing => "installing".to_owned(),
            EnvironmentState::Failed(text) => format!("failed: {text}"),
        }
    }
}
