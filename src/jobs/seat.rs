//! A run's slot, given back while the run waits for people and taken again before it goes on.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::gate::{Gate, GateError, Slot};

/// How long to wait before asking a full gate again.
const AGAIN: Duration = Duration::from_millis(100);

/// A run's place at the gate.
#[derive(Debug)]
pub struct Seat {
    gate: Gate,
    principal: String,
    tool: String,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    slot: Option<Slot>,
    /// How many of the run's questions wait for people.
    away: usize,
}

impl Seat {
    /// Waits for a slot, and sits down in it.
    ///
    /// # Errors
    /// As [`Gate::enter`].
    pub async fn take(gate: &Gate, principal: &str, tool: &str) -> Result<Self, GateError> {
        let slot = gate.enter(principal, tool).await?;
        let state = Mutex::new(State { slot: Some(slot), away: 0 });
        Ok(Self { gate: gate.clone(), principal: principal.to_owned(), tool: tool.to_owned(), state })
    }

    /// Gives the slot back while something is waited for.
    pub fn leave(&self) {
        let mut state = self.state();
        state.away += 1;
        state.slot = None;
    }

    /// Comes back; waits for a slot when nothing else is waited for.
    ///
    /// # Cancellation
    /// The run then goes on without a slot, so cancel it as well.
    pub async fn come_back(&self) {
        {
            let mut state = self.state();
            state.away -= 1;
            if state.away > 0 || state.slot.is_some() {
                return;
            }
        }
        loop {
            match self.gate.enter(&self.principal, &self.tool).await {
                Ok(slot) => {
                    self.state().slot = Some(slot);
                    return;
                }
                Err(GateError::Full { .. } | GateError::WaitedTooLong { .. }) => tokio::time::sleep(AGAIN).await,
            }
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::super::GateOptions;
    use super::*;

    #[tokio::test]
    async fn a_parked_run_lets_another_in_and_waits_for_its_turn() {
        let gate = Gate::new(GateOptions { slots: 1, queue: 4, wait: Duration::from_secs(60) });
        let first = Seat::take(&gate, "anna", "a").await.unwrap();
        assert_eq!(gate.load(), (0, 0));
        first.leave();
        first.leave();
        let second = Seat::take(&gate, "anna", "b").await.unwrap();
        first.come_back().await;
        {
            let back = first.come_back();
            tokio::pin!(back);
            assert!(futures::poll!(&mut back).is_pending());
            drop(second);
            back.await;
        }
        assert_eq!(gate.load(), (0, 0));
        drop(first);
        assert_eq!(gate.load(), (1, 0));
    }
}
