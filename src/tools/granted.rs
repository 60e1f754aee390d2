//! The secrets that a run is given, and how far it could carry them.

use std::collections::HashSet;

use super::invoke::{Invocation, Learning, Stopped};
use super::{Tools, internal};
use crate::trust::SecretError;

impl Tools {
    /// The secrets that it was granted; placeholders where it only learns what it would reach.
    pub(super) async fn secrets_of(&self, invocation: &Invocation) -> Result<Vec<(String, String)>, Stopped> {
        let grants = &invocation.definition.grants;
        match &invocation.learn {
            Some(learning) => Ok(placeholders(learning)),
            None => {
                self.secrets.values(&grants.secrets, &self.within_reach(invocation).await?).await.map_err(|error| {
                    match error {
                        SecretError::Key(_) | SecretError::Store(_) => {
                            Stopped::Internal(internal("secrets can't be read", &error))
                        }
                        refused => Stopped::Unset(refused.to_string()),
                    }
                })
            }
        }
    }

    /// Every host that a run can send something to: its own network, and that of the tools it may call, and theirs.
    async fn within_reach(&self, invocation: &Invocation) -> Result<Vec<String>, Stopped> {
        let grants = &invocation.definition.grants;
        let mut network = grants.network.clone();
        if grants.secrets.is_empty() || grants.calls.is_empty() {
            return Ok(network);
        }
        let seen = self.catalog.seen(&invocation.caller).await;
        let seen = seen.map_err(|error| Stopped::Internal(internal("the catalogue can't be read", &error)))?;
        let (mut called, mut known) = (grants.calls.clone(), HashSet::new());
        while let Some(name) = called.pop() {
            let Some(entry) = seen.entries.get(&name).filter(|_| known.insert(name)) else { continue };
            network.extend(entry.definition.grants.network.iter().cloned());
            called.extend(entry.definition.grants.calls.iter().cloned());
        }
        Ok(network)
    }
}

/// What stands for the secrets of a run that learns.
fn placeholders(learning: &Learning) -> Vec<(String, String)> {
    learning.secrets.iter().map(|name| (name.clone(), format!("placeholder-for-{name}"))).collect()
}
