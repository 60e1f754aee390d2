//! Back-pressure: how many runs go at once, how many wait, and who is next. Fair by principal, then by tool.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::oneshot;

/// How many at once, how many may wait, and for how long.
#[derive(Clone, Copy, Debug)]
pub struct GateOptions {
    /// Runs at once.
    pub slots: usize,
    /// Calls that may wait.
    pub queue: usize,
    /// How long one may wait.
    pub wait: Duration,
}

/// Why there is no slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GateError {
    /// The queue is full.
    #[error("the runner is full: {slots} runs go on and {queue} wait; try again in a moment")]
    Full {
        /// Runs at once.
        slots: usize,
        /// Calls waiting.
        queue: usize,
    },
    /// Nothing became free in time.
    #[error("the runner is busy: no slot became free within {} s; try again in a moment", .wait.as_secs())]
    WaitedTooLong {
        /// How long it waited.
        wait: Duration,
    },
}

/// Hands out slots.
#[derive(Clone, Debug)]
pub struct Gate {
    options: GateOptions,
    state: Arc<Mutex<State>>,
}

/// A slot; dropping it lets the next one in.
#[derive(Debug)]
pub struct Slot {
    state: Arc<Mutex<State>>,
    /// False once it was handed back without being used.
    held: bool,
}

#[derive(Debug, Default)]
struct State {
    free: usize,
    waiting: usize,
    principals: Rotation<Rotation<VecDeque<oneshot::Sender<Slot>>>>,
}

/// Queues by key, served in turn: the front key gives one and goes to the back.
#[derive(Debug)]
struct Rotation<Queue> {
    order: VecDeque<String>,
    queues: HashMap<String, Queue>,
}

impl<Queue> Default for Rotation<Queue> {
    fn default() -> Self {
        Self { order: VecDeque::new(), queues: HashMap::new() }
    }
}

impl<Queue: Default> Rotation<Queue> {
    fn queue(&mut self, key: &str) -> &mut Queue {
        if !self.queues.contains_key(key) {
            self.order.push_back(key.to_owned());
        }
        self.queues.entry(key.to_owned()).or_default()
    }

    /// Takes one from the front key's queue; `take` says what it took and whether that queue is now empty.
    fn take<T>(&mut self, take: impl FnOnce(&mut Queue) -> (Option<T>, bool)) -> Option<T> {
        let key = self.order.pop_front()?;
        let queue = self.queues.get_mut(&key)?;
        let (taken, empty) = take(queue);
        if empty {
            self.queues.remove(&key);
        } else {
            self.order.push_back(key);
        }
        taken
    }
}

impl Gate {
    /// A gate with all its slots free.
    pub fn new(options: GateOptions) -> Self {
        Self { options, state: Arc::new(Mutex::new(State { free: options.slots, ..State::default() })) }
    }

    /// Waits for a slot.
    ///
    /// # Errors
    /// [`GateError::Full`] at once when too many wait, [`GateError::WaitedTooLong`] after the queue wait.
    ///
    /// # Cancellation
    /// Dropping the future gives up the place; a slot that was handed over in that moment goes to the next one.
    pub async fn enter(&self, principal: &str, tool: &str) -> Result<Slot, GateError> {
        let receiver = {
            let mut state = lock(&self.state);
            if state.free > 0 {
                state.free -= 1;
                return Ok(Slot { state: self.state.clone(), held: true });
            }
            if state.waiting >= self.options.queue {
                state.forget_those_who_left();
            }
            if state.waiting >= self.options.queue {
                return Err(GateError::Full { slots: self.options.slots, queue: state.waiting });
            }
            let (sender, receiver) = oneshot::channel();
            state.principals.queue(principal).queue(tool).push_back(sender);
            state.waiting += 1;
            receiver
        };
        match tokio::time::timeout(self.options.wait, receiver).await {
            Ok(Ok(slot)) => Ok(slot),
            Ok(Err(_)) | Err(_) => Err(GateError::WaitedTooLong { wait: self.options.wait }),
        }
    }

    /// How many slots are free and how many calls wait.
    pub fn load(&self) -> (usize, usize) {
        let state = lock(&self.state);
        (state.free, state.waiting)
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        if !self.held {
            return;
        }
        loop {
            let next = {
                let mut state = lock(&self.state);
                let next = state.next();
                match next {
                    Some(_) => state.waiting -= 1,
                    None => state.free += 1,
                }
                next
            };
            let Some(sender) = next else { return };
            match sender.send(Slot { state: self.state.clone(), held: true }) {
                Ok(()) => return,
                // That one gave up: ask the next. The slot that came back is this one, still ours to give away.
                Err(mut slot) => slot.held = false,
            }
        }
    }
}

impl State {
    fn forget_those_who_left(&mut self) {
        let mut left = 0;
        for queue in self.principals.queues.values_mut().flat_map(|tools| tools.queues.values_mut()) {
            let before = queue.len();
            queue.retain(|sender| !sender.is_closed());
            left += before - queue.len();
        }
        self.waiting -= left;
    }

    fn next(&mut self) -> Option<oneshot::Sender<Slot>> {
        while self.waiting > 0 {
            let sender = self.principals.take(|tools| {
                let sender = tools.take(|queue| {
                    let sender = queue.pop_front();
                    (sender, queue.is_empty())
                });
                (sender, tools.order.is_empty())
            });
            if sender.is_some() {
                return sender;
            }
        }
        None
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gate(slots: usize, queue: usize, wait_ms: u64) -> Gate {
        Gate::new(GateOptions { slots, queue, wait: Duration::from_millis(wait_ms) })
    }

    #[tokio::test]
    async fn a_full_gate_says_so_and_a_slow_one_too() {
        let gate = gate(1, 1, 20);
        let held = gate.enter("p", "t").await.unwrap();
        let waiting = tokio::spawn({
            let gate = gate.clone();
            async move { gate.enter("p", "t").await.map(|_| ()) }
        });
        while gate.load().1 == 0 {
            tokio::task::yield_now().await;
        }
        assert!(matches!(gate.enter("p", "t").await, Err(GateError::Full { slots: 1, queue: 1 })));
        assert!(matches!(waiting.await.unwrap(), Err(GateError::WaitedTooLong { .. })));
        drop(held);
        assert_eq!(gate.load(), (1, 0));
    }

    #[tokio::test]
    async fn the_queue_is_fair_by_principal_then_tool() {
        let gate = gate(1, 100, 10_000);
        let mut held = Some(gate.enter("first", "t").await.unwrap());
        let (sender, mut served) = tokio::sync::mpsc::unbounded_channel();
        for (n, (principal, tool)) in
            [("a", "x"), ("a", "x"), ("a", "x"), ("a", "y"), ("b", "z"), ("b", "z")].into_iter().enumerate()
        {
            let (gate_, sender) = (gate.clone(), sender.clone());
            tokio::spawn(async move {
                let slot = gate_.enter(principal, tool).await.unwrap();
                let _ = sender.send((format!("{principal}{tool}"), slot));
            });
            while gate.load().1 <= n {
                tokio::task::yield_now().await;
            }
        }
        let mut order = Vec::new();
        for _ in 0..6 {
            drop(held.take());
            let (who, slot) = served.recv().await.unwrap();
            order.push(who);
            held = Some(slot);
        }
        assert_eq!(order, ["ax", "bz", "ay", "bz", "ax", "ax"]);
    }

    #[tokio::test]
    async fn one_that_gave_up_costs_no_slot() {
        let gate = gate(1, 10, 10_000);
        let held = gate.enter("p", "t").await.unwrap();
        let gone = tokio::spawn({
            let gate = gate.clone();
            async move { gate.enter("p", "t").await.map(|_| ()) }
        });
        while gate.load().1 == 0 {
            tokio::task::yield_now().await;
        }
        gone.abort();
        let _ = gone.await;
        drop(held);
        assert_eq!(gate.load(), (1, 0));
        assert!(gate.enter("p", "t").await.is_ok());
    }
}
