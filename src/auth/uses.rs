//! Tokens in use: when each was used last, and the signal that ends what is open under it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::Lifetime;
use crate::clock::Clock;
use crate::model::Timestamp;
use crate::store::Token;

/// How often at most the use of one token is written down.
const WRITTEN_EVERY: Duration = Duration::from_secs(60);

/// The tokens that were used since the start and have not ended. Clones share them.
#[derive(Clone, Debug, Default)]
pub(super) struct Uses(Arc<Mutex<HashMap<String, Use>>>);

#[derive(Debug)]
struct Use {
    ended: CancellationToken,
    expires_at: Option<Timestamp>,
    lifetime: Lifetime,
    /// Whether the store was asked since this was put here: a revocation may have come in between.
    checked: bool,
    used_at: Timestamp,
    written_at: Option<Timestamp>,
}

impl Uses {
    fn table(&self) -> MutexGuard<'_, HashMap<String, Use>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A token lets somebody in now.
    pub(super) fn note(&self, token: &Token, lifetime: Lifetime, now: Timestamp) {
        let mut table = self.table();
        if let Some(found) = table.get_mut(&token.id) {
            found.used_at = now;
            return;
        }
        let fresh = Use {
            ended: CancellationToken::new(),
            expires_at: token.expires_at,
            lifetime,
            checked: false,
            used_at: now,
            written_at: None,
        };
        table.insert(token.id.clone(), fresh);
    }

    /// Cancelled when the token has ended.
    pub(super) fn ended(&self, id: &str) -> CancellationToken {
        self.table().get(id).map(|found| found.ended.clone()).unwrap_or_else(|| {
            // It has ended since it let somebody in.
            let ended = CancellationToken::new();
            ended.cancel();
            ended
        })
    }

    /// Ends what is open under a token.
    pub(super) fn end(&self, id: &str) {
        if let Some(found) = self.table().remove(id) {
            found.ended.cancel();
        }
    }

    /// Ends what is open under tokens whose time is over.
    pub(super) fn expire(&self, now: Timestamp) {
        self.table().retain(|_, found| {
            let over = found.expires_at.is_some_and(|at| at <= now);
            if over {
                found.ended.cancel();
            }
            !over
        });
    }

    /// The tokens to look up in the store: all, or those that never were.
    pub(super) fn to_check(&self, all: bool) -> Vec<String> {
        let table = self.table();
        let asked = |found: &Use| found.lifetime == Lifetime::Stored && (all || !found.checked);
        table.iter().filter(|(_, found)| asked(found)).map(|(id, _)| id.clone()).collect()
    }

    /// A token was looked up and is good.
    pub(super) fn checked(&self, id: &str) {
        if let Some(found) = self.table().get_mut(id) {
            found.checked = true;
        }
    }

    /// The uses that are to be written down now; at the end all of them.
    pub(super) fn due(&self, clock: &Clock, at_the_end: bool) -> Vec<(String, Timestamp)> {
        let settled = clock.earlier(WRITTEN_EVERY);
        let due = |found: &Use| {
            let fresh = found.written_at.is_none_or(|written| at_the_end || written <= settled);
            found.lifetime == Lifetime::Stored && fresh && found.written_at.is_none_or(|at| at < found.used_at)
        };
        let table = self.table();
        table.iter().filter(|(_, found)| due(found)).map(|(id, found)| (id.clone(), found.used_at)).collect()
    }

    /// These uses were written down.
    pub(super) fn written(&self, uses: &[(String, Timestamp)]) {
        let mut table = self.table();
        for (id, at) in uses {
            if let Some(found) = table.get_mut(id) {
                found.written_at = Some(*at);
            }
        }
    }

    /// When a token was used last in this process.
    pub(super) fn last(&self, id: &str) -> Option<Timestamp> {
        self.table().get(id).map(|found| found.used_at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{PrincipalId, Scopes};

    fn token(id: &str, expires_at: Option<i64>) -> Token {
        Token {
            id: id.to_owned(),
            principal: PrincipalId("p".to_owned()),
            name: "t".to_owned(),
            scopes: Scopes::default(),
            created_at: Timestamp(0),
            expires_at: expires_at.map(Timestamp),
            revoked_at: None,
            last_used_at: None,
            toolset: None,
        }
    }

    #[test]
    fn a_use_is_written_at_once_and_then_once_a_minute() {
        let (uses, clock) = (Uses::default(), Clock::manual(Timestamp(1_000_000)));
        let mut written = Vec::new();
        for _ in 0..180 {
            uses.note(&token("a", None), Lifetime::Stored, clock.now());
            uses.note(&token("b", None), Lifetime::Process, clock.now());
            let due = uses.due(&clock, false);
            uses.written(&due);
            written.extend(due);
            clock.advance(Duration::from_secs(1));
        }
        let times: Vec<i64> = written.iter().map(|(_, at)| (at.0 - 1_000_000) / 1000).collect();
        assert_eq!(times, [0, 60, 120]);
        assert_eq!(uses.due(&clock, true), [("a".to_owned(), Timestamp(1_179_000))]);
    }

    #[test]
    fn what_is_open_ends_with_its_token_alone() {
        let uses = Uses::default();
        for (id, expires) in [("revoked", None), ("expiring", Some(10)), ("good", Some(20))] {
            uses.note(&token(id, expires), Lifetime::Stored, Timestamp(1));
        }
        let open = ["revoked", "expiring", "good"].map(|id| uses.ended(id));
        uses.end("revoked");
        uses.expire(Timestamp(10));
        assert_eq!(open.map(|ended| ended.is_cancelled()), [true, true, false]);
        assert!(uses.ended("revoked").is_cancelled(), "also for who comes a moment later");
        assert_eq!(uses.to_check(false), ["good"]);
        uses.checked("good");
        assert!(uses.to_check(false).is_empty());
        assert_eq!(uses.to_check(true), ["good"]);
    }
}
