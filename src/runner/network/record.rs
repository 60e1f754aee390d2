//! What a run did, while it does it: counters, the names it looked up, and what it tried in vain.

use std::collections::{HashMap, HashSet};
use std::net::{IpAddr, Ipv4Addr};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::packets::Attempt;
use super::plan::{Plan, Verdict};
use crate::model::{NetworkUse, Unreached};

/// How many things that were not reached are named.
const MOST_UNREACHED: usize = 64;
/// How many names that aren't granted get an address of their own.
const MOST_NAMES: u16 = 1024;

/// Shared by everything that serves one run.
#[derive(Debug)]
pub(super) struct Record {
    pub(super) plan: Plan,
    pub(super) connections: AtomicU64,
    pub(super) sent: AtomicU64,
    pub(super) received: AtomicU64,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Which name an address of the namespace stands for.
    names: HashMap<Ipv4Addr, String>,
    /// Names that aren't granted, in the order of their first look-up.
    strangers: Vec<(String, Ipv4Addr)>,
    /// Strangers that were tried beyond the look-up.
    tried: HashSet<String>,
    unreached: Vec<Unreached>,
}

impl Record {
    pub(super) fn new(plan: Plan) -> Self {
        let state = State { names: plan.names_by_address(), ..State::default() };
        let zero = || AtomicU64::new(0);
        Self { plan, connections: zero(), sent: zero(), received: zero(), state: Mutex::new(state) }
    }

    /// The address that stands for a name; none when too many were asked for.
    pub(super) fn address_of(&self, name: &str) -> Option<Ipv4Addr> {
        if name == "localhost" || name.ends_with(".localhost") || name == "sandbox" {
            return Some(Ipv4Addr::LOCALHOST);
        }
        if let Some(address) = self.plan.names.get(name) {
            return Some(*address);
        }
        let mut state = self.state();
        if let Some((_, address)) = state.strangers.iter().find(|(stranger, _)| stranger == name) {
            return Some(*address);
        }
        let count = u16::try_from(state.strangers.len()).ok().filter(|count| *count < MOST_NAMES)?;
        let [high, low] = count.to_be_bytes();
        let address = Ipv4Addr::new(127, 78, high, low);
        state.names.insert(address, name.to_owned());
        state.strangers.push((name.to_owned(), address));
        Some(address)
    }

    /// Notes a first packet, unless it went to a listener or within the sandbox.
    pub(super) fn attempt(&self, attempt: Attempt) {
        let Attempt { address, port, udp } = attempt;
        let listened = |place: &std::net::SocketAddr| place.ip() == address && place.port() == port;
        if !udp && self.plan.listeners.iter().any(|(place, _)| listened(place)) {
            return;
        }
        let name = match address {
            IpAddr::V4(address) => self.state().names.get(&address).cloned(),
            IpAddr::V6(_) => None,
        };
        let host = match name {
            // A server of the tool's own may be there.
            Some(name) if name == "localhost" => return,
            Some(name) => name,
            None if address.is_loopback() => return,
            None => address.to_string(),
        };
        let reason = match self.plan.verdict(&host, port) {
            _ if udp => "only TCP leaves the sandbox".to_owned(),
            Verdict::Refused(reason) => reason,
            Verdict::TakenIn => {
                "a wildcard and `full` go through the HTTP proxy alone (HTTPS_PROXY); name the host for TCP".to_owned()
            }
            Verdict::Named => return,
        };
        self.unreached(Unreached { host, port: Some(port), udp, refused: true, reason });
    }

    /// Notes what was not reached, once.
    pub(super) fn unreached(&self, unreached: Unreached) {
        let mut state = self.state();
        state.tried.insert(unreached.host.clone());
        let known = state
            .unreached
            .iter()
            .any(|known| (&known.host, known.port, known.udp) == (&unreached.host, unreached.port, unreached.udp));
        if !known && state.unreached.len() < MOST_UNREACHED {
            state.unreached.push(unreached);
        }
    }

    /// What the run did, now that it is over.
    pub(super) fn end(&self) -> NetworkUse {
        let state = self.state();
        let mut unreached = state.unreached.clone();
        // A name that was only looked up: perhaps for a client that then gave up, or had another address at hand.
        for (name, _) in state.strangers.iter().filter(|(name, _)| !state.tried.contains(name)) {
            if unreached.len() < MOST_UNREACHED {
                let reason = match self.plan.verdict(name, 443) {
                    Verdict::Refused(reason) => reason,
                    Verdict::Named | Verdict::TakenIn => continue,
                };
                unreached.push(Unreached { host: name.clone(), port: None, udp: false, refused: true, reason });
            }
        }
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let (sent_bytes, received_bytes) = (count(&self.sent), count(&self.received));
        NetworkUse { connections: count(&self.connections), sent_bytes, received_bytes, notice: None, unreached }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(entries: &[&str]) -> Record {
        let entries: Vec<String> = entries.iter().map(|entry| (*entry).to_owned()).collect();
        Record::new(Plan::new(&entries, false).unwrap().unwrap())
    }

    fn attempt(address: impl Into<IpAddr>, port: u16) -> Attempt {
        Attempt { address: address.into(), port, udp: false }
    }

    #[test]
    fn attempts_are_named_as_they_were_asked_for() {
        let record = record(&["a.example", "*.b.example"]);
        let granted = record.address_of("a.example").unwrap();
        let stranger = record.address_of("c.example").unwrap();
        assert_eq!(record.address_of("c.example"), Some(stranger));
        let below = record.address_of("x.b.example").unwrap();
        record.address_of("d.example").unwrap();
        for (address, port) in [(granted, 443), (granted, 22), (stranger, 25), (stranger, 25), (below, 443)] {
            record.attempt(attempt(address, port));
        }
        record.attempt(attempt([192, 0, 2, 1], 443));
        record.attempt(attempt([127, 0, 0, 1], 8000));
        record.attempt(Attempt { address: [192, 0, 2, 1].into(), port: 53, udp: true });
        let lines: Vec<String> = record.end().unreached.iter().map(ToString::to_string).collect();
        assert_eq!(
            lines,
            [
                "[network] refused a.example:22: not granted: this host is granted at port 80, 443",
                "[network] refused c.example:25: not granted",
                "[network] refused x.b.example:443: a wildcard and `full` go through the HTTP proxy alone (HTTPS_PROXY); \
                 name the host for TCP",
                "[network] refused 192.0.2.1:443: not granted",
                "[network] refused 192.0.2.1:53 (UDP): only TCP leaves the sandbox",
                "[network] refused d.example: not granted",
            ]
        );
    }

    #[test]
    fn names_without_end_are_not_kept() {
        let record = record(&["a.example"]);
        let given = (0..2000).filter(|n| record.address_of(&format!("n{n}.example")).is_some()).count();
        assert_eq!(given, usize::from(MOST_NAMES));
        assert_eq!(record.end().unreached.len(), MOST_UNREACHED);
    }
}
