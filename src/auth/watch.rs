//! What goes on beside the requests: tokens that are revoked anywhere, or expire, end what is open under them, and when
//! each was used is written down.

use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::Auth;
use crate::model::Caller;
use crate::store::StoreError;

/// How often other processes' revocations are looked for.
const INTERVAL: Duration = Duration::from_millis(500);

/// What was seen of the database.
#[derive(Default)]
struct Seen {
    version: Option<i64>,
    revocations: Option<i64>,
}

impl Auth {
    /// Cancelled when this caller's token is revoked, in whichever process, or has expired; never for a caller without
    /// a token. Needs [`Auth::watch`].
    pub fn ended(&self, caller: &Caller) -> CancellationToken {
        caller.token_id.as_deref().map(|id| self.uses.ended(id)).unwrap_or_default()
    }

    /// Watches over the tokens in use until the server closes.
    pub async fn watch(self, closing: CancellationToken) {
        let mut interval = tokio::time::interval(INTERVAL);
        interval.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut seen = Seen::default();
        let mut failing = false;
        loop {
            let at_the_end = tokio::select! {
                () = closing.cancelled() => true,
                _ = interval.tick() => false,
            };
            let looked = self.look(&mut seen, at_the_end).await;
            if let (Err(error), false) = (&looked, failing) {
                tracing::warn!(%error, "Looking after the tokens in use failed; trying again all the time");
            }
            failing = looked.is_err();
            if at_the_end {
                return;
            }
        }
    }

    async fn look(&self, seen: &mut Seen, at_the_end: bool) -> Result<(), StoreError> {
        self.uses.expire(self.store.clock().now());
        let version = self.store.data_version().await?;
        let revocations = match seen.revocations {
            Some(known) if seen.version == Some(version) => known,
            _ => self.store.count_revocations().await?,
        };
        let all = seen.revocations != Some(revocations);
        if all {
            self.generation.fetch_add(1, Ordering::SeqCst);
        }
        for id in self.uses.to_check(all) {
            let found = self.store.find_token(&id).await?;
            if found.is_some_and(|(token, ..)| token.revoked_at.is_none()) {
                self.uses.checked(&id);
            } else {
                self.uses.end(&id);
            }
        }
        *seen = Seen { version: Some(version), revocations: Some(revocations) };
        let due = self.uses.due(self.store.clock(), at_the_end);
        if !due.is_empty() {
            self.store.touch_tokens(&due).await?;
            self.uses.written(&due);
        }
        Ok(())
    }
}
