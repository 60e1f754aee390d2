//! Refusals in the audit log: the first of a kind at once, the others of the same minute as one number, so that a flood
//! of them can't fill the disk.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::json;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::model::{Caller, PrincipalId};
use crate::store::{AuditEntry, Store};

/// How long refusals of a kind are counted before their number is written.
const WINDOW: Duration = Duration::from_secs(60);
/// How many kinds are told apart in that time; the others are counted together.
const KINDS: usize = 60;
/// How many entries may wait to be written.
const WAITING: usize = 256;
/// The longest reason that is kept.
const REASON_BYTES: usize = 300;

/// Something that was not allowed.
#[derive(Clone, Debug, Default)]
pub struct Refusal {
    /// What was refused, such as `auth.refused`.
    pub action: String,
    /// To what it was about, such as a tool's name.
    pub subject: String,
    /// Why.
    pub reason: String,
    /// Who asked, as far as that is known.
    pub principal: Option<PrincipalId>,
    /// With which token.
    pub token: Option<String>,
    /// From where.
    pub source: Option<String>,
}

impl Refusal {
    /// Of somebody who is known.
    pub fn of(caller: &Caller, action: &str, subject: &str, reason: impl Into<String>) -> Self {
        Self {
            action: action.to_owned(),
            subject: subject.to_owned(),
            reason: reason.into(),
            principal: Some(caller.principal.clone()),
            token: caller.token_id.clone(),
            source: caller.source.clone(),
        }
    }
}

/// From where, or as whom, and what.
type Kind = (Option<String>, String, String);

/// Where refusals are noted. Clones share it.
#[derive(Clone, Debug)]
pub struct Refusals {
    table: Arc<Mutex<HashMap<Kind, Counted>>>,
    entries: mpsc::Sender<AuditEntry>,
}

/// Refusals of a kind that are not yet written.
#[derive(Debug)]
struct Counted {
    times: u64,
    last: Refusal,
}

/// What writes them down.
#[derive(Debug)]
pub struct RefusalWriter {
    refusals: Refusals,
    entries: mpsc::Receiver<AuditEntry>,
}

impl Refusals {
    /// Where refusals are noted, and what must run to write them down.
    pub fn new() -> (Self, RefusalWriter) {
        let (sender, entries) = mpsc::channel(WAITING);
        let refusals = Self { table: Arc::default(), entries: sender };
        (refusals.clone(), RefusalWriter { refusals, entries })
    }

    fn table(&self) -> MutexGuard<'_, HashMap<Kind, Counted>> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes a refusal. Costs its caller no time and can't fail.
    pub fn note(&self, mut refusal: Refusal) {
        refusal.reason.truncate(refusal.reason.floor_char_boundary(REASON_BYTES));
        let who = refusal.source.clone().or_else(|| refusal.principal.as_ref().map(|it| it.0.clone()));
        let mut table = self.table();
        let mut kind = (who, refusal.action.clone(), refusal.subject.clone());
        if table.len() >= KINDS && !table.contains_key(&kind) {
            kind = (None, refusal.action.clone(), String::new());
            refusal = Refusal { source: None, subject: String::new(), principal: None, token: None, ..refusal };
            table.entry(kind).or_insert_with(|| Counted { times: 0, last: refusal }).times += 1;
            return;
        }
        if let Some(counted) = table.get_mut(&kind) {
            counted.times += 1;
            counted.last = refusal;
            return;
        }
        // What does not fit into the channel is counted.
        let times = u64::from(self.entries.try_send(entry(&refusal, 1)).is_err());
        table.insert(kind, Counted { times, last: refusal });
    }

    /// What was counted since the last time.
    fn counted(&self) -> Vec<AuditEntry> {
        let counted = std::mem::take(&mut *self.table());
        counted.into_values().filter(|it| it.times > 0).map(|it| entry(&it.last, it.times)).collect()
    }
}

impl RefusalWriter {
    /// Writes refusals down until the server closes, and then what is left.
    pub async fn write(mut self, store: Store, closing: CancellationToken) {
        let mut interval = tokio::time::interval(WINDOW);
        interval.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                biased;
                Some(entry) = self.entries.recv() => append(&store, &entry).await,
                _ = interval.tick() => self.append_counted(&store).await,
                () = closing.cancelled() => break,
            }
        }
        while let Ok(entry) = self.entries.try_recv() {
            append(&store, &entry).await;
        }
        self.append_counted(&store).await;
    }

    async fn append_counted(&self, store: &Store) {
        for entry in self.refusals.counted() {
            append(store, &entry).await;
        }
    }
}

async fn append(store: &Store, entry: &AuditEntry) {
    if let Err(error) = store.append_audit(entry).await {
        let action = &entry.action;
        tracing::error!(action, %error, "The audit entry `{action}` could not be written");
    }
}

fn entry(refusal: &Refusal, times: u64) -> AuditEntry {
    let detail = match times {
        1 => json!({"reason": refusal.reason}),
        _ => json!({"reason": refusal.reason, "times": times, "within_seconds": WINDOW.as_secs()}),
    };
    AuditEntry {
        principal: refusal.principal.clone(),
        token: refusal.token.clone(),
        source: refusal.source.clone(),
        action: refusal.action.clone(),
        subject: refusal.subject.clone(),
        detail,
        outcome: "refused".to_owned(),
        ..AuditEntry::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(source: &str) -> Refusal {
        let reason = "é".repeat(REASON_BYTES);
        Refusal { action: "auth.refused".into(), source: Some(source.to_owned()), reason, ..Refusal::default() }
    }

    #[test]
    fn a_flood_is_a_few_entries_and_no_refusal_is_lost() {
        let (refusals, mut writer) = Refusals::new();
        for _ in 0..1_000 {
            refusals.note(refusal("192.0.2.1"));
        }
        for number in 0..1_000 {
            refusals.note(refusal(&number.to_string()));
        }
        let mut entries = Vec::new();
        while let Ok(entry) = writer.entries.try_recv() {
            entries.push(entry);
        }
        assert_eq!(entries.len(), KINDS);
        entries.extend(refusals.counted());
        assert_eq!(entries.len(), KINDS + 2, "999 more of the first peer, and the peers beyond those told apart");
        let times = entries.iter().map(|entry| entry.detail.get("times").map_or(1, |times| times.as_u64().unwrap()));
        assert_eq!(times.sum::<u64>(), 2_000);
        assert!(entries.iter().all(|entry| entry.detail["reason"].as_str().unwrap().len() == REASON_BYTES));
        assert!(refusals.counted().is_empty());
    }
}
