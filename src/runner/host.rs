//! What a running script says and asks: events, and requests that it waits for.

use tokio::sync::{oneshot, watch};

use crate::model::{Json, RunEvent};

/// Something that came from a running script, in order.
#[derive(Debug)]
pub enum Said {
    /// An event: nobody waits for an answer.
    Event(RunEvent),
    /// A request: the script waits.
    Request(HostRequest),
}

/// A request of a running script to the server.
#[derive(Debug)]
pub struct HostRequest {
    /// What it wants, such as `ask`.
    pub method: String,
    /// With what.
    pub params: Json,
    /// The run's clock, to be stopped while people are waited for.
    pub clock: RunClock,
    /// Where the answer goes. Dropped without one, the script is told that the server gave none.
    pub answer: oneshot::Sender<Result<Json, HostRefusal>>,
}

/// Why a script doesn't get what it asked for; it becomes an exception there.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct HostRefusal {
    /// Which exception: `error`, or `missing_capability`.
    pub kind: &'static str,
    /// What was wrong and what would be right.
    pub message: String,
}

impl HostRefusal {
    /// A refusal that the script sees as an ordinary exception.
    pub fn error(message: impl Into<String>) -> Self {
        Self { kind: "error", message: message.into() }
    }
}

/// The wall clock of one run.
#[derive(Clone, Debug)]
pub struct RunClock {
    stopped: watch::Sender<usize>,
}

/// The clock stands for as long as this lives.
#[derive(Debug)]
pub struct Stopped {
    clock: RunClock,
}

impl RunClock {
    /// A clock that goes.
    pub(super) fn new() -> Self {
        Self { stopped: watch::Sender::new(0) }
    }

    /// Stops the clock.
    pub fn stop(&self) -> Stopped {
        self.stopped.send_modify(|count| *count += 1);
        Stopped { clock: self.clone() }
    }

    /// Tells how many hold the clock.
    pub(super) fn watch(&self) -> watch::Receiver<usize> {
        self.stopped.subscribe()
    }
}

impl Drop for Stopped {
    fn drop(&mut self) {
        self.clock.stopped.send_modify(|count| *count -= 1);
    }
}
