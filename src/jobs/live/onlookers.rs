//! Looking on: what a run said and says, told to those who neither called it nor are waited for.

use tokio::sync::{broadcast, watch};
use tokio_util::sync::CancellationToken;

use super::{LiveRun, PAST, State};
use crate::model::RunEvent;

impl<End: Clone> LiveRun<End> {
    /// The events from this number on, as far as they are kept, and the number of the next one.
    pub fn heard(&self, from: usize) -> (Vec<RunEvent>, usize) {
        self.state().heard.from(from)
    }

    /// Changes whenever there is an event, a question, an answer or its end.
    pub fn watch(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }

    /// What it ended with, once it has.
    pub fn ended(&self) -> Option<End> {
        self.state().end.clone()
    }

    /// Keeps an event for those who come later, and shows it to those who look on.
    pub(super) fn show(&self, state: &mut State<End>, event: &RunEvent) {
        if state.past.len() == PAST {
            state.past.pop_front();
        }
        state.past.push_back(event.clone());
        // Nobody looking on is no error.
        let _ = self.news.send(event.clone());
    }

    /// What it said last, what it says from now on, and its end. Looking on takes nothing from whoever listens, and nobody
    /// waits for those who look on.
    pub fn look_on(&self) -> (Vec<RunEvent>, broadcast::Receiver<RunEvent>, CancellationToken) {
        let state = self.state();
        (state.past.iter().cloned().collect(), self.news.subscribe(), self.over.clone())
    }
}
