//! Callers that wait for a run: a call that is repeated with its idempotency key joins whoever waits already, and the run
//! is killed when the last of them goes away.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::LiveRun;

/// One caller that waits. Dropping it kills the run, unless others wait too or nobody has to.
#[derive(Debug)]
pub struct Attending<End: Clone> {
    run: Arc<LiveRun<End>>,
    left: bool,
}

impl<End: Clone> LiveRun<End> {
    /// Waits for it, among others perhaps.
    pub fn attend(self: &Arc<Self>) -> Attending<End> {
        self.attending.fetch_add(1, Ordering::SeqCst);
        Attending { run: Arc::clone(self), left: false }
    }
}

impl<End: Clone> Attending<End> {
    /// Whether nobody else waits for the run.
    pub fn is_alone(&self) -> bool {
        self.run.attending.load(Ordering::SeqCst) == 1
    }

    /// Goes away with what there was to tell; the run goes on, if it has not ended.
    pub fn leave(mut self) {
        self.left = true;
    }
}

impl<End: Clone> Drop for Attending<End> {
    fn drop(&mut self) {
        let was_last = self.run.attending.fetch_sub(1, Ordering::SeqCst) == 1;
        if was_last && !self.left && !self.run.is_detached() {
            self.run.cancel.cancel();
        }
    }
}
