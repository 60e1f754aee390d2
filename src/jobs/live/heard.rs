//! The last events of a live run, for who looks in later.

use std::collections::VecDeque;

use crate::model::RunEvent;

/// How many events are kept.
const MOST: usize = 500;

/// The last events, and how many there were in all.
#[derive(Debug, Default)]
pub(super) struct Heard {
    events: VecDeque<RunEvent>,
    count: usize,
}

impl Heard {
    /// Keeps an event; the oldest ones go.
    pub(super) fn keep(&mut self, event: &RunEvent) {
        self.count += 1;
        self.events.push_back(event.clone());
        if self.events.len() > MOST {
            self.events.pop_front();
        }
    }

    /// The events from this number on, as far as they are kept, and the number of the next one.
    pub(super) fn from(&self, number: usize) -> (Vec<RunEvent>, usize) {
        let skipped = number.saturating_sub(self.count - self.events.len());
        (self.events.iter().skip(skipped).cloned().collect(), self.count)
    }
}
