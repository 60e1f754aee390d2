//! A run's deadline, on a clock that can stand.

use tokio::sync::watch;
use tokio::time::Instant;

use super::host::RunClock;

/// Waits for a deadline that moves on while the clock stands.
pub(super) struct Timer {
    deadline: Instant,
    stopped_at: Option<Instant>,
    stopped: watch::Receiver<usize>,
    /// Held, so that `stopped` can always change.
    _clock: RunClock,
}

impl Timer {
    /// A timer for this deadline, on a clock that goes now.
    pub(super) fn new(deadline: Instant, clock: &RunClock) -> Self {
        Self { deadline, stopped_at: None, stopped: clock.watch(), _clock: clock.clone() }
    }

    /// Waits until the time is over.
    ///
    /// # Cancellation
    /// Safe: calling it again goes on waiting.
    pub(super) async fn over(&mut self) {
        loop {
            let stands = *self.stopped.borrow_and_update() > 0;
            match (stands, self.stopped_at) {
                (true, None) => self.stopped_at = Some(Instant::now()),
                (false, Some(since)) => {
                    self.deadline += since.elapsed();
                    self.stopped_at = None;
                }
                (true, Some(_)) | (false, None) => {}
            }
            tokio::select! {
                () = tokio::time::sleep_until(self.deadline), if !stands => return,
                _ = self.stopped.changed() => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test]
    async fn time_stands_while_somebody_holds_the_clock() {
        let (begun, clock) = (Instant::now(), RunClock::new());
        let mut timer = Timer::new(begun + Duration::from_millis(50), &clock);
        let holder = async {
            tokio::time::sleep(Duration::from_millis(10)).await;
            let (one, two) = (clock.stop(), clock.stop());
            tokio::time::sleep(Duration::from_millis(100)).await;
            drop(one);
            tokio::time::sleep(Duration::from_millis(100)).await;
            drop(two);
        };
        tokio::join!(timer.over(), holder);
        assert!(begun.elapsed() >= Duration::from_millis(250), "{:?}", begun.elapsed());
    }
}
