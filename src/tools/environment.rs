//! The environment of a version: waiting for it, and what its state is called.

use std::path::PathBuf;

use tokio::sync::mpsc;

use super::Tools;
use crate::model::{EnvironmentLock, RunEvent};
use crate::runner::{EnvironmentState, EnvironmentUse};

impl Tools {
    /// Waits until the environment is ready, with progress. It stays as long as the second value lives.
    ///
    /// # Errors
    /// The installer's own words.
    pub(super) async fn environment(
        &self,
        lock: &EnvironmentLock,
        events: &mpsc::Sender<RunEvent>,
    ) -> Result<(PathBuf, EnvironmentUse), String> {
        if !matches!(self.environments.state(lock), EnvironmentState::Ready) {
            let message = Some("installing the dependencies".to_owned());
            // A full channel loses the note, never the call.
            let _ = events.try_send(RunEvent::Progress { progress: 0.0, total: None, message });
        }
        self.environments.hold(lock, |_| {}).await.map_err(|error| error.to_string())
    }

    /// Starts building the environment in the background; what goes wrong is said by its state and by the next call.
    pub(super) fn prepare(&self, lock: &EnvironmentLock) {
        let (environments, lock) = (self.environments.clone(), lock.clone());
        self.lifecycle.tasks.spawn(async move {
            if let Err(error) = environments.ready(&lock).await {
                tracing::warn!(environment = %lock.hash, %error, "The environment {} could not be built", lock.hash);
            }
        });
    }

    /// `ready`, `installing` or `failed: …`.
    pub(super) fn environment_status(&self, lock: &EnvironmentLock) -> String {
        match self.environments.state(lock) {
            EnvironmentState::Ready => "ready".to_owned(),
            EnvironmentState::Building | EnvironmentState::Missing => "installing".to_owned(),
            EnvironmentState::Failed(text) => format!("failed: {text}"),
        }
    }
}
