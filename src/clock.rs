//! Time and ids, handed in so that tests decide them. Whoever asks what time it is, or needs a fresh id, asks a
//! [`Clock`].

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use time::OffsetDateTime;
use uuid::Uuid;

use crate::model::{RunId, Timestamp};

/// Tells the time and makes ids. Clones share the same source.
#[derive(Clone, Debug, Default)]
pub struct Clock {
    manual: Option<Arc<Manual>>,
}

#[derive(Debug)]
struct Manual {
    now: AtomicI64,
    made: AtomicU64,
}

impl Clock {
    /// The machine's clock and random ids.
    pub fn system() -> Self {
        Self::default()
    }

    /// A clock that stands at this time until [`Clock::advance`], and makes the same ids in each test run.
    pub fn manual(now: Timestamp) -> Self {
        Self { manual: Some(Arc::new(Manual { now: AtomicI64::new(now.0), made: AtomicU64::new(0) })) }
    }

    /// The time, in UTC, to the millisecond.
    pub fn now(&self) -> Timestamp {
        match &self.manual {
            Some(manual) => Timestamp(manual.now.load(Ordering::SeqCst)),
            None => {
                let since_epoch = OffsetDateTime::now_utc() - OffsetDateTime::UNIX_EPOCH;
                Timestamp(i64::try_from(since_epoch.whole_milliseconds()).unwrap_or(i64::MAX))
            }
        }
    }

    /// The time so much later than now.
    pub fn later(&self, by: Duration) -> Timestamp {
        Timestamp(self.now().0.saturating_add(millis(by)))
    }

    /// The time so much earlier than now.
    pub fn earlier(&self, by: Duration) -> Timestamp {
        Timestamp(self.now().0.saturating_sub(millis(by)))
    }

    /// A fresh UUIDv7; those of one clock sort in the order in which they were made.
    pub fn new_id(&self) -> Uuid {
        let Some(manual) = &self.manual else { return Uuid::now_v7() };
        let mut tail = [0; 10];
        // The first two bytes share bits with the version, so the count goes behind them and the variant.
        tail[3..].copy_from_slice(&manual.made.fetch_add(1, Ordering::SeqCst).to_be_bytes()[1..]);
        let millis = u64::try_from(self.now().0).unwrap_or(0);
        uuid::Builder::from_unix_timestamp_millis(millis, &tail).into_uuid()
    }

    /// A fresh run id.
    pub fn new_run_id(&self) -> RunId {
        RunId(self.new_id())
    }

    /// Moves a manual clock on. The system's clock moves by itself: there this does nothing.
    pub fn advance(&self, by: Duration) {
        if let Some(manual) = &self.manual {
            manual.now.fetch_add(millis(by), Ordering::SeqCst);
        }
    }
}

/// The moment as RFC 3339 writes it, in UTC.
pub fn rfc3339(at: Timestamp) -> String {
    let moment = OffsetDateTime::from_unix_timestamp_nanos(i128::from(at.0) * 1_000_000).ok();
    moment.and_then(|at| at.format(&time::format_description::well_known::Rfc3339).ok()).unwrap_or_default()
}

fn millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_manual_clock_stands_until_it_is_moved() {
        let clock = Clock::manual(Timestamp(1_000));
        assert_eq!(clock.now(), Timestamp(1_000));
        clock.clone().advance(Duration::from_secs(2));
        assert_eq!(clock.now(), Timestamp(3_000));
        assert_eq!(clock.later(Duration::from_millis(5)), Timestamp(3_005));
        assert_eq!(clock.earlier(Duration::from_secs(3)), Timestamp(0));
    }

    #[test]
    fn ids_sort_in_the_order_they_were_made() {
        for clock in [Clock::system(), Clock::manual(Timestamp(1_700_000_000_000))] {
            let ids: Vec<Uuid> = (0..1000).map(|_| clock.new_id()).collect();
            assert!(ids.is_sorted_by(|a, b| a.to_string() < b.to_string()));
            assert!(ids.iter().all(|id| id.get_version_num() == 7));
        }
    }
}
