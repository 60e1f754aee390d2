//! What waits, by kind: how many, for how long, and what has to go.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use tokio::time::Instant;

use super::{Key, Member};

/// The most members, and the most bytes of all of them.
const MOST: usize = 32;
const MOST_BYTES: u64 = 256 << 20;
/// The most of one kind.
const MOST_OF_A_KIND: usize = 4;
/// How long after its last use a kind keeps more than one, and any.
const BUSY: Duration = Duration::from_secs(60);
const KEPT: Duration = Duration::from_secs(600);
/// How long nothing is tried after an interpreter could not be started.
const PAUSE: Duration = Duration::from_secs(30);
/// The most kinds whose modules are known not to be importable before a call.
const UNFIT: usize = 1024;

/// The members of one kind.
struct Shelf {
    members: Vec<Member>,
    /// How many are being started.
    starting: usize,
    /// How many are wanted.
    wanted: usize,
    used: Instant,
    paused_until: Option<Instant>,
}

/// All members.
#[derive(Default)]
pub(super) struct Shelves {
    shelves: HashMap<String, Shelf>,
    unfit: HashSet<String>,
}

impl Shelves {
    /// This key, or the one without imports where those are known not to work.
    pub(super) fn usable(&self, key: Key) -> Key {
        if self.unfit.contains(key.text()) { key.bare() } else { key }
    }

    /// Takes one, and notes what the demand is.
    pub(super) fn take(&mut self, key: &Key) -> Option<Member> {
        let now = Instant::now();
        let shelf = self.shelves.entry(key.text().to_owned()).or_insert_with(|| Shelf {
            members: Vec::new(),
            starting: 0,
            wanted: 0,
            used: now,
            paused_until: None,
        });
        let steady = now.duration_since(shelf.used) < Duration::from_secs(1);
        shelf.used = now;
        let mut found = None;
        while let Some(member) = shelf.members.pop() {
            if member.is_fit() {
                found = Some(member);
                break;
            }
        }
        // One for a kind that was used, a second for one in use, more for one that comes short.
        let floor = if steady { 2 } else { 1 };
        let more = usize::from(found.is_none() && steady);
        shelf.wanted = (shelf.wanted.max(floor) + more).min(MOST_OF_A_KIND);
        found
    }

    /// Whether one more is to be started; it then counts as being started until [`Self::put`] or [`Self::fail`].
    pub(super) fn begin(&mut self, key: &Key) -> bool {
        let all: usize = self.shelves.values().map(|shelf| shelf.members.len() + shelf.starting).sum();
        let Some(shelf) = self.shelves.get_mut(key.text()) else { return false };
        let paused = shelf.paused_until.is_some_and(|until| Instant::now() < until);
        // Over the count, another kind makes room once this one is there.
        let wanted = !paused && shelf.members.len() + shelf.starting < shelf.wanted && all < 2 * MOST;
        shelf.starting += usize::from(wanted);
        wanted
    }

    /// Puts one on its shelf, and makes room for it. What has to go is returned, to be dropped.
    pub(super) fn put(&mut self, key: &Key, member: Member) -> Vec<Member> {
        let Some(shelf) = self.shelves.get_mut(key.text()) else { return vec![member] };
        shelf.starting = shelf.starting.saturating_sub(1);
        shelf.members.push(member);
        let mut gone = Vec::new();
        while self.count() > MOST || self.bytes() > MOST_BYTES {
            let oldest = self.shelves.values_mut().filter(|shelf| !shelf.members.is_empty());
            let Some(shelf) = oldest.min_by_key(|shelf| shelf.used) else { break };
            shelf.wanted = shelf.wanted.saturating_sub(1);
            gone.push(shelf.members.remove(0));
        }
        gone
    }

    /// One could not be started; `unfit` where its modules are why.
    pub(super) fn fail(&mut self, key: &Key, unfit: bool) {
        if let Some(shelf) = self.shelves.get_mut(key.text()) {
            shelf.starting = shelf.starting.saturating_sub(1);
            shelf.paused_until = Some(Instant::now() + PAUSE);
        }
        if unfit && !key.is_bare() {
            if self.unfit.len() >= UNFIT {
                self.unfit.clear();
            }
            self.unfit.insert(key.text().to_owned());
        }
    }

    /// Takes out what has waited too long, to be dropped.
    pub(super) fn expire(&mut self) -> Vec<Member> {
        let now = Instant::now();
        let mut gone = Vec::new();
        for shelf in self.shelves.values_mut() {
            let idle = now.duration_since(shelf.used);
            let kept = if idle > KEPT {
                0
            } else if idle > BUSY {
                1
            } else {
                MOST_OF_A_KIND
            };
            shelf.wanted = shelf.wanted.min(kept);
            gone.extend(shelf.members.drain(..shelf.members.len().saturating_sub(kept)));
        }
        self.shelves.retain(|_, shelf| shelf.wanted + shelf.starting + shelf.members.len() > 0);
        gone
    }

    fn count(&self) -> usize {
        self.shelves.values().map(|shelf| shelf.members.len()).sum()
    }

    fn bytes(&self) -> u64 {
        self.shelves.values().flat_map(|shelf| &shelf.members).map(|member| member.bytes).sum()
    }
}
