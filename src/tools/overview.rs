//! The catalogue as a person looks at it: every tool with its state.

use std::collections::HashSet;

use super::Tools;
use crate::model::{Caller, Tool, ToolId, ToolVersion};
use crate::runner::EnvironmentState;
use crate::store::{FoundTool, ToolSearch};
use crate::trust::ApprovalError;

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
    /// [`ApprovalError`].
    pub async fn overview(
        &self,
        caller: &Caller,
        limit: usize,
    ) -> Result<(Vec<(FoundTool, ToolState)>, u64), ApprovalError> {
        let search = ToolSearch {
            owner: caller.sees_only().cloned(),
            toolset: caller.toolset.clone(),
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
    /// [`ApprovalError`].
    pub(super) async fn with_states(
        &self,
        found: Vec<FoundTool>,
    ) -> Result<Vec<(FoundTool, ToolState)>, ApprovalError> {
        let ids: Vec<ToolId> = found.iter().map(|found| found.tool.id.clone()).collect();
        let versions = self.store.latest_versions(&ids).await?;
        let latest: Vec<&ToolVersion> = versions.values().collect();
        let waits = self.approvals.which_wait(&latest).await?;
        let waiting: HashSet<&ToolId> =
            latest.iter().zip(waits).filter(|(_, waits)| *waits).map(|(version, _)| &version.tool).collect();
        let state = |found: &FoundTool| match versions.get(&found.tool.id) {
            Some(version) => self.state_of(&found.tool, version, waiting.contains(&found.tool.id)),
            // Deleted just now.
            None => ToolState::Off,
        };
        Ok(found.into_iter().map(|tool| (state(&tool), tool)).map(|(state, tool)| (tool, state)).collect())
    }

    pub(super) fn state_of(&self, tool: &Tool, latest: &ToolVersion, waits: bool) -> ToolState {
        if !tool.enabled {
            return ToolState::Off;
        }
        if waits {
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
