//! Whose turn it is: changes of one tool happen one after another in this process, so that each builds on the last.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use tokio::sync::OwnedMutexGuard;

use crate::model::ToolId;

/// The turns that are taken or waited for.
#[derive(Debug, Default)]
pub struct Turns {
    tools: Mutex<HashMap<ToolId, Weak<tokio::sync::Mutex<()>>>>,
}

impl Turns {
    /// Waits for a turn at this tool. It ends when the guard is dropped.
    ///
    /// # Cancellation
    /// Dropping the future gives up the place in the queue.
    pub async fn take(&self, tool: &ToolId) -> OwnedMutexGuard<()> {
        let turn = self.of(tool);
        turn.lock_owned().await
    }

    fn of(&self, tool: &ToolId) -> Arc<tokio::sync::Mutex<()>> {
        // The map is whole between any two statements, so a panic elsewhere spoils nothing.
        let mut tools = self.tools.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(turn) = tools.get(tool).and_then(Weak::upgrade) {
            return turn;
        }
        tools.retain(|_, turn| turn.strong_count() > 0);
        let turn = Arc::default();
        tools.insert(tool.clone(), Arc::downgrade(&turn));
        turn
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn one_tool_has_one_turn_and_another_its_own() {
        let (turns, tool) = (Turns::default(), ToolId("a".into()));
        let first = turns.take(&tool).await;
        let mut second = Box::pin(turns.take(&tool));
        assert!(futures::poll!(&mut second).is_pending());
        drop(turns.take(&ToolId("b".into())).await);
        drop(first);
        assert!(futures::poll!(&mut second).is_ready());
    }

    #[tokio::test]
    async fn what_nobody_waits_for_is_forgotten() {
        let turns = Turns::default();
        for name in ["a", "b", "c"] {
            drop(turns.take(&ToolId(name.into())).await);
        }
        assert_eq!(turns.tools.lock().unwrap().len(), 1);
    }
}
