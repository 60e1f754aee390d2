//! Looking whether the audit log is whole, and pruning its oldest entries.

use std::time::Duration;

use serde_json::json;
use sqlx::SqliteConnection;

use super::audit::{AuditColumns, AuditEntry};
use super::audit_chain::{self, AuditKey, BEGINNING, Mac, NO_HEAD, Place, SealName, Sealed};
use super::{Store, StoreError};
use crate::model::Timestamp;

/// How many entries are read, or pruned in one transaction, at once.
const PAGE: i64 = 1_000;
/// The log is pruned once it is older by this than what is to be kept: not entry by entry.
const SLACK: Duration = Duration::from_secs(24 * 3600);

/// The log's state, which a person can note and compare later.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditHead {
    /// How many entries were ever written.
    pub count: i64,
    /// The MAC of the last one, in hex.
    pub head: String,
    /// How many of them were pruned.
    pub pruned: i64,
    /// How many entries from before there was a chain were taken in as they were.
    pub adopted: i64,
}

/// The first thing that is wrong with the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditFault {
    /// At which number.
    pub number: i64,
    /// What is wrong there.
    pub problem: String,
}

/// A state of the log that somebody noted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotedHead {
    /// How many entries there were.
    pub count: i64,
    /// The MAC of the last one, in hex.
    pub head: String,
}

/// A walk along the chain.
struct Walk<'a> {
    key: &'a AuditKey,
    last: Place,
    adopted: i64,
}

type Found<T> = Result<T, AuditFault>;

fn fault<T>(number: i64, problem: impl Into<String>) -> Found<T> {
    Err(AuditFault { number, problem: problem.into() })
}

impl<'a> Walk<'a> {
    /// From the beginning, or from where the log was pruned.
    fn from(key: &'a AuditKey, checkpoint: Sealed) -> Found<Self> {
        let last = match checkpoint {
            Sealed::At(place) => place,
            Sealed::Missing => Place { number: 0, at: 0, mac: BEGINNING },
            Sealed::Broken(_) => {
                return fault(0, "the checkpoint, which stands for what was pruned, was not sealed by this server");
            }
        };
        Ok(Self { key, last, adopted: 0 })
    }

    /// Goes on to this entry.
    fn step(&mut self, row: &AuditColumns) -> Found<()> {
        let expected = self.last.number + 1;
        if row.number < expected {
            return fault(row.number, "it stands where no entry can: at or below what was pruned");
        }
        if row.number > expected {
            return fault(expected, missing(expected, row.number - 1));
        }
        let Some(stored) = &row.mac else {
            return fault(row.number, "it has no MAC: a program without the server's key wrote it");
        };
        let mac: Mac = self.key.entry(&self.last.mac, row);
        if !audit_chain::same(stored, &mac) {
            let lost = audit_chain::same(stored, &self.key.entry(&NO_HEAD, row));
            return fault(
                row.number,
                if lost {
                    "the head was gone or changed when it was written: what stands before it may not be all there was"
                } else {
                    "its MAC does not fit: it, or the entry before it, was changed, moved or put in by somebody \
                     without the server's key (or `server.key` is not the one that it was written with)"
                },
            );
        }
        if row.action == "audit.begin" {
            self.adopted = row.number - 1;
        }
        self.last = Place { number: row.number, at: row.at, mac };
        Ok(())
    }

    /// The end of the log must be where the head says.
    fn end(&self, head: Sealed) -> Found<()> {
        let last = self.last.number;
        match head {
            Sealed::Missing => fault(last, "the head, which says where the log ends, is missing"),
            Sealed::Broken(_) => fault(last, "the head, which says where the log ends, was not sealed by this server"),
            Sealed::At(head) if head.number > last => fault(last + 1, missing(last + 1, head.number)),
            Sealed::At(head) if head.number < last => fault(head.number + 1, "it stands behind the end of the log"),
            Sealed::At(head) if head.mac != self.last.mac => fault(last, "the head is that of another log"),
            Sealed::At(_) => Ok(()),
        }
    }
}

fn missing(first: i64, last: i64) -> String {
    if first == last { "it is missing".to_owned() } else { format!("the entries {first} to {last} are missing") }
}

/// The next entries, in their order.
async fn page(connection: &mut SqliteConnection, from: i64) -> Result<Vec<AuditColumns>, StoreError> {
    Ok(sqlx::query_as!(
        AuditColumns,
        "SELECT number, id, at, principal, token, source, action, subject, detail, before, fingerprint, outcome, mac
         FROM audit WHERE number >= $1 ORDER BY number LIMIT $2",
        from,
        PAGE
    )
    .fetch_all(connection)
    .await?)
}

impl Store {
    /// Looks whether the audit log is what this server wrote: its state, or the first thing that is wrong. With a state
    /// that was noted earlier, also whether that is still part of it.
    ///
    /// # Errors
    /// [`StoreError::Database`].
    pub async fn verify_audit(&self, noted: Option<&NotedHead>) -> Result<Result<AuditHead, AuditFault>, StoreError> {
        // One transaction is one state, however long the walk takes.
        let mut transaction = self.read().begin().await?;
        let walked = self.walk(&mut transaction, noted).await?;
        transaction.rollback().await?;
        Ok(walked)
    }

    async fn walk(
        &self,
        connection: &mut SqliteConnection,
        noted: Option<&NotedHead>,
    ) -> Result<Found<AuditHead>, StoreError> {
        let key = self.audit_key()?;
        let checkpoint = audit_chain::read_seal(connection, key, SealName::Checkpoint).await?;
        let head = audit_chain::read_seal(connection, key, SealName::Head).await?;
        let mut walk = match Walk::from(key, checkpoint) {
            Ok(walk) => walk,
            Err(fault) => return Ok(Err(fault)),
        };
        let pruned = walk.last.number;
        let mut from = i64::MIN;
        loop {
            let rows = page(connection, from).await?;
            for row in &rows {
                if let Err(fault) = walk.step(row).and_then(|()| compare(&walk.last, noted)) {
                    return Ok(Err(fault));
                }
            }
            let Some(last) = rows.last() else { break };
            from = last.number.saturating_add(1);
        }
        let ends = walk.end(head).and_then(|()| reaches(walk.last.number, noted));
        let (count, adopted) = (walk.last.number, walk.adopted);
        Ok(ends.map(|()| AuditHead { count, head: hex(&walk.last.mac), pruned, adopted }))
    }

    /// Removes the entries that are older than this, once the oldest is a day older. What stood there is attested by a
    /// checkpoint, and an entry tells of it. Says how many were removed.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] when what would be removed is not what this server wrote: it stays then, as evidence;
    /// [`StoreError::Database`].
    pub async fn prune_audit(&self, keep: Duration) -> Result<i64, StoreError> {
        let oldest =
            sqlx::query_scalar!("SELECT at FROM audit ORDER BY number LIMIT 1").fetch_optional(self.read()).await?;
        if oldest.is_none_or(|at| at >= self.clock.earlier(keep.saturating_add(SLACK)).0) {
            return Ok(0);
        }
        let mut pruned = 0;
        loop {
            let now = self.prune_some(self.clock.earlier(keep)).await?;
            pruned += now;
            if now < PAGE {
                return Ok(pruned);
            }
        }
    }

    async fn prune_some(&self, before: Timestamp) -> Result<i64, StoreError> {
        let found = |fault: AuditFault| StoreError::Corrupt {
            what: "audit log",
            problem: format!("entry {}: {}; nothing was pruned", fault.number, fault.problem),
        };
        let mut transaction = self.write().await?;
        let key = self.audit_key()?;
        let checkpoint = audit_chain::read_seal(&mut transaction, key, SealName::Checkpoint).await?;
        let mut walk = Walk::from(key, checkpoint).map_err(found)?;
        let first = walk.last.number;
        for row in page(&mut transaction, i64::MIN).await?.iter().take_while(|row| row.at < before.0) {
            walk.step(row).map_err(found)?;
        }
        let (last, count) = (walk.last.number, walk.last.number - first);
        if count == 0 {
            return Ok(0);
        }
        let place = Place { at: self.clock.now().0, ..walk.last };
        audit_chain::write_seal(&mut transaction, key, SealName::Checkpoint, &place).await?;
        sqlx::query!("DELETE FROM audit WHERE number <= $1", last).execute(&mut *transaction).await?;
        let entry = AuditEntry {
            action: "audit.prune".to_owned(),
            subject: "audit".to_owned(),
            detail: json!({"entries": count, "last": last}),
            outcome: "ok".to_owned(),
            ..AuditEntry::default()
        };
        self.record(&mut transaction, &entry).await?;
        transaction.commit().await?;
        Ok(count)
    }
}

fn hex(mac: &Mac) -> String {
    blake3::Hash::from(*mac).to_hex().to_string()
}

/// Whether the entry is the one that was noted, where it has its number.
fn compare(last: &Place, noted: Option<&NotedHead>) -> Found<()> {
    match noted {
        Some(noted) if noted.count == last.number && noted.head != hex(&last.mac) => {
            fault(last.number, "it is not the entry that was noted: another log stands in its place")
        }
        _ => Ok(()),
    }
}

/// Whether the log still goes as far as was noted.
fn reaches(count: i64, noted: Option<&NotedHead>) -> Found<()> {
    match noted {
        Some(noted) if noted.count > count => {
            fault(count + 1, format!("the log had {} entries when it was noted: this is an older copy", noted.count))
        }
        _ => Ok(()),
    }
}
