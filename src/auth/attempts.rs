//! How often one peer may try to sign in.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::clock::Clock;
use crate::model::Timestamp;

/// How many attempts of one peer may fail within the window.
const FAILURES: u32 = 10;
const WINDOW: Duration = Duration::from_secs(60);
/// More peers than this share one account.
const PEERS: usize = 10_000;

/// The failed attempts of late, by peer. Clones share them.
#[derive(Clone, Debug, Default)]
pub(super) struct Attempts(Arc<Mutex<HashMap<Option<IpAddr>, Account>>>);

#[derive(Clone, Copy, Debug)]
struct Account {
    until: Timestamp,
    failures: u32,
}

impl Attempts {
    /// For how many seconds this peer must wait, if it must.
    pub(super) fn wait(&self, peer: Option<IpAddr>, clock: &Clock) -> Option<u64> {
        let table = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let account = table.get(&household(peer)).or_else(|| table.get(&None).filter(|_| table.len() >= PEERS))?;
        let left = account.until.0.saturating_sub(clock.now().0);
        (account.failures >= FAILURES && left > 0).then(|| u64::try_from(left).unwrap_or(0).div_ceil(1000))
    }

    /// An attempt failed.
    pub(super) fn failed(&self, peer: Option<IpAddr>, clock: &Clock) {
        let mut table = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let now = clock.now();
        if table.len() >= PEERS {
            table.retain(|_, account| account.until > now);
        }
        let peer = household(peer);
        let key = if table.len() < PEERS || table.contains_key(&peer) { peer } else { None };
        let fresh = Account { until: clock.later(WINDOW), failures: 0 };
        let account = table.entry(key).or_insert(fresh);
        if account.until <= now {
            *account = fresh;
        }
        account.failures += 1;
    }
}

/// Who has one IPv6 address has a whole network of them.
fn household(peer: Option<IpAddr>) -> Option<IpAddr> {
    peer.map(|peer| match peer.to_canonical() {
        IpAddr::V6(address) => {
            let [a, b, c, d, ..] = address.segments();
            IpAddr::V6(Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0))
        }
        v4 => v4,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peer(text: &str) -> Option<IpAddr> {
        Some(text.parse().unwrap())
    }

    #[test]
    fn a_peer_waits_after_ten_failures_and_others_do_not() {
        let (attempts, clock) = (Attempts::default(), Clock::manual(Timestamp(0)));
        for number in 0..FAILURES {
            assert_eq!(attempts.wait(peer("2001:db8::1"), &clock), None, "{number}");
            attempts.failed(peer(&format!("2001:db8::{number:x}")), &clock);
        }
        assert_eq!(attempts.wait(peer("2001:db8::ffff"), &clock), Some(60), "one network is one peer");
        assert_eq!(attempts.wait(peer("2001:db8:0:1::1"), &clock), None);
        assert_eq!(attempts.wait(peer("192.0.2.1"), &clock), None);
        clock.advance(Duration::from_millis(59_500));
        assert_eq!(attempts.wait(peer("2001:db8::1"), &clock), Some(1));
        clock.advance(Duration::from_secs(1));
        assert_eq!(attempts.wait(peer("2001:db8::1"), &clock), None);
        attempts.failed(peer("2001:db8::1"), &clock);
        assert_eq!(attempts.wait(peer("2001:db8::1"), &clock), None, "the window began anew");
    }

    #[test]
    fn more_peers_than_are_counted_share_one_account() {
        let (attempts, clock) = (Attempts::default(), Clock::manual(Timestamp(0)));
        for number in 0..u32::try_from(PEERS).unwrap() + FAILURES {
            attempts.failed(Some(IpAddr::V4(number.into())), &clock);
        }
        assert_eq!(attempts.0.lock().unwrap().len(), PEERS + 1);
        assert!(attempts.wait(peer("203.0.113.1"), &clock).is_some(), "a peer that nobody counts");
        assert_eq!(attempts.wait(peer("0.0.0.1"), &clock), None, "one that is counted");
    }
}
