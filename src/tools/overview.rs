//! The catalogue as a person looks at it: every tool with its state.

use super::Tools;
use crate::model::{Caller, Tool, ToolId, ToolVersion};
use crate::runner::EnvironmentState;
use crate::store::{FoundTool, StoreError, ToolSearch};

/// What a reader should know first about a tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ToolState {
    /// It is listed and can be called.
    Ready,
    /// Its newest version waits for a person.
    NeedsApproval,
    /// The environment of its newest version is being built.
    Installing,
    /// The environment of its newest version can't be built.
    Failed,
    /// It is switched off.
    Off,
}

impl ToolState {
    /// The words for it in answers.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ready => "ready",
            Self::NeedsApproval => "needs approval",
            Self::Installing => "installing",
            Self::Failed => "failed",
            Self::Off => "off",
        }
    }
}

impl Tools {
    /// The tools that this caller may see, also those that are off, last updated first; and how many there are.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn overview(
        &self,
        caller: &Caller,
        limit: usize,
    ) -> Result<(Vec<(FoundTool, ToolState)>, u64), StoreError> {
        let search = ToolSearch {
            owner: caller.sees_only().cloned(),
            include_disabled: true,
            limit: u32::try_from(limit).unwrap_or(u32::MAX),
            ..ToolSearch::default()
        };
        let found = self.store.search_tools(&search).await?;
        Ok((self.with_states(found.tools).await?, found.total))
    }

    /// These tools, each with its state.
    ///
    /// # Errors
    /// [`StoreError`].
    pub(super) async fn with_states(&self, found: Vec<FoundTool>) -> Result<Vec<(FoundTool, ToolState)>, StoreError> {
        let ids: Vec<ToolId> = found.iter().map(|found| found.tool.id.clone()).collect();
        let versions = self.store.latest_versions(&ids).await?;
        let state = |found: &FoundTool| match versions.get(&found.tool.id) {
            Some(version) => self.state_of(&found.tool, version),
            // Deleted just now.
            None => ToolState::Off,
        };
        Ok(found.into_iter().map(|tool| (state(&tool), tool)).map(|(state, tool)| (tool, state)).collect())
    }

    fn state_of(&self, tool: &Tool, latest: &ToolVersion) -> ToolState {
        if !tool.enabled {
            return ToolState::Off;
        }
        if !self.policy.waits_for(&latest.definition).is_empty() {
            return ToolState::NeedsApproval;
        }
        let serves = tool.serving_version == Some(tool.latest_version);
        match latest.definition.lock.as_ref().map(|lock| self.environments.state(lock)) {
            Some(EnvironmentState::Failed(_)) => ToolState::Failed,
            Some(EnvironmentState::Building) => ToolState::Installing,
            Some(_) if !serves => ToolState::Installing,
            None if !serves => ToolState::NeedsApproval,
            _ => ToolState::Ready,
        }
    }
}
