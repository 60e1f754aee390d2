//! The catalogue as a person looks at it: every tool with its state.

use super::Tools;
use crate::model::Caller;
use crate::runner::EnvironmentState;
use crate::store::{FoundTool, StoreError, ToolSearch};

/// What a reader should know first about a tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ToolState {
    /// It is listed and can be called.
    Ready,
    /// Its newest version waits for a person.
    NeedsApproval,
    /// Its environment can't be built.
    Failed,
    /// It is switched off.
    Off,
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
        let mut tools = Vec::with_capacity(found.tools.len());
        for tool in found.tools {
            let state = self.state_of(&tool).await?;
            tools.push((tool, state));
        }
        Ok((tools, found.total))
    }

    async fn state_of(&self, found: &FoundTool) -> Result<ToolState, StoreError> {
        let tool = &found.tool;
        if !tool.enabled {
            return Ok(ToolState::Off);
        }
        if tool.serving_version != Some(tool.latest_version) {
            return Ok(ToolState::NeedsApproval);
        }
        let version = self.store.get_version(&tool.id, tool.latest_version).await?;
        let lock = version.and_then(|version| version.definition.lock);
        let failed = lock.is_some_and(|lock| matches!(self.environment_state(&lock), EnvironmentState::Failed(_)));
        Ok(if failed { ToolState::Failed } else { ToolState::Ready })
    }
}
