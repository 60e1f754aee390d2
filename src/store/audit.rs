//! The audit log: every change and every refusal. Entries are only ever added, at the end of a chain (`audit_chain`).

use serde_json::Value;
use sqlx::SqliteConnection;

use super::audit_chain;
use super::error::corrupt;
use super::{Store, StoreError};
use crate::clock::Clock;
use crate::model::{PrincipalId, Timestamp};

/// Something to record.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AuditEntry {
    /// Who did it; `None` for nobody known.
    pub principal: Option<PrincipalId>,
    /// With which token.
    pub token: Option<String>,
    /// From where: a peer's address, `stdio` or `cli`.
    pub source: Option<String>,
    /// What was done, such as `tool.update`.
    pub action: String,
    /// To what, such as a tool's name.
    pub subject: String,
    /// More facts.
    pub detail: Value,
    /// The fingerprint of what stood before a change.
    pub before: Option<String>,
    /// The fingerprint of what it was about: after a change, of what stands now.
    pub fingerprint: Option<String>,
    /// How it went, such as `ok` or `refused`.
    pub outcome: String,
}

/// An entry of the log.
#[derive(Clone, Debug, PartialEq)]
pub struct AuditRow {
    /// Its place in the chain, from 1.
    pub number: i64,
    /// Its id.
    pub id: String,
    /// When it was recorded.
    pub at: Timestamp,
    /// What was recorded.
    pub entry: AuditEntry,
}

/// Which entries to list; what is `None` is not asked for.
#[derive(Clone, Debug, Default)]
pub struct AuditFilter {
    /// Who did it.
    pub principal: Option<PrincipalId>,
    /// What was done: this action, or those that begin with it and a dot.
    pub action: Option<String>,
    /// To what.
    pub subject: Option<String>,
    /// Only entries older than the one with this id.
    pub before: Option<String>,
}

/// The columns of `audit`, exactly as they are stored: the MAC is over these.
pub(super) struct AuditColumns {
    pub number: i64,
    pub id: String,
    pub at: i64,
    pub principal: Option<String>,
    pub token: Option<String>,
    pub source: Option<String>,
    pub action: String,
    pub subject: String,
    pub detail: String,
    pub before: Option<String>,
    pub fingerprint: Option<String>,
    pub outcome: String,
    pub mac: Option<Vec<u8>>,
}

impl AuditColumns {
    /// What is stored of an entry, before it has a place in the chain.
    pub(super) fn of(entry: &AuditEntry, clock: &Clock) -> Self {
        Self {
            number: 0,
            id: clock.new_id().to_string(),
            at: clock.now().0,
            principal: entry.principal.as_ref().map(|principal| principal.0.clone()),
            token: entry.token.clone(),
            source: entry.source.clone(),
            action: entry.action.clone(),
            subject: entry.subject.clone(),
            detail: entry.detail.to_string(),
            before: entry.before.clone(),
            fingerprint: entry.fingerprint.clone(),
            outcome: entry.outcome.clone(),
            mac: None,
        }
    }
}

impl TryFrom<AuditColumns> for AuditRow {
    type Error = StoreError;

    fn try_from(row: AuditColumns) -> Result<Self, StoreError> {
        Ok(Self {
            number: row.number,
            id: row.id,
            at: Timestamp(row.at),
            entry: AuditEntry {
                principal: row.principal.map(PrincipalId),
                token: row.token,
                source: row.source,
                action: row.action,
                subject: row.subject,
                detail: serde_json::from_str(&row.detail).map_err(|error| corrupt("audit detail", error))?,
                before: row.before,
                fingerprint: row.fingerprint,
                outcome: row.outcome,
            },
        })
    }
}

/// Writes an entry at the end of the chain. The only place that adds one.
pub(super) async fn insert(connection: &mut SqliteConnection, row: &AuditColumns) -> Result<(), StoreError> {
    sqlx::query!(
        "INSERT INTO audit (number, id, at, principal, token, source, action, subject, detail, before, fingerprint,
                            outcome, mac)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)",
        row.number,
        row.id,
        row.at,
        row.principal,
        row.token,
        row.source,
        row.action,
        row.subject,
        row.detail,
        row.before,
        row.fingerprint,
        row.outcome,
        row.mac
    )
    .execute(connection)
    .await?;
    Ok(())
}

impl Store {
    /// Adds an entry.
    ///
    /// # Errors
    /// [`StoreError::NoAuditKey`], [`StoreError::Database`].
    pub async fn append_audit(&self, entry: &AuditEntry) -> Result<AuditRow, StoreError> {
        let mut transaction = self.write().await?;
        let row = self.record(&mut transaction, entry).await?;
        transaction.commit().await?;
        Ok(row)
    }

    /// Adds an entry within a writing transaction: it stands there if, and only if, the change does.
    pub(super) async fn record(
        &self,
        transaction: &mut SqliteConnection,
        entry: &AuditEntry,
    ) -> Result<AuditRow, StoreError> {
        let row = AuditColumns::of(entry, &self.clock);
        audit_chain::append(transaction, self.audit_key()?, row).await?.try_into()
    }

    /// Entries, newest first.
    ///
    /// # Errors
    /// [`StoreError::Database`]; [`StoreError::Corrupt`] for a detail that is no JSON.
    pub async fn list_audit(&self, filter: &AuditFilter, limit: u32) -> Result<Vec<AuditRow>, StoreError> {
        let principal = filter.principal.as_ref().map(|principal| principal.0.as_str());
        let rows = sqlx::query_as!(
            AuditColumns,
            "SELECT number, id, at, principal, token, source, action, subject, detail, before, fingerprint, outcome, mac
             FROM audit
             WHERE ($1 IS NULL OR principal = $1)
               AND ($2 IS NULL OR action = $2 OR substr(action, 1, length($2) + 1) = $2 || '.')
               AND ($3 IS NULL OR subject = $3)
               AND ($4 IS NULL OR number < (SELECT number FROM audit WHERE id = $4))
             ORDER BY number DESC LIMIT $5",
            principal,
            filter.action,
            filter.subject,
            filter.before,
            limit
        )
        .fetch_all(self.read())
        .await?;
        rows.into_iter().map(AuditRow::try_from).collect()
    }
}
