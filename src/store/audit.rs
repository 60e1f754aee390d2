//! The audit log: every change and every refusal. Entries are only ever added.

use serde_json::Value;

use super::error::corrupt;
use super::{Store, StoreError};
use crate::model::{PrincipalId, Timestamp};

/// Something to record.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AuditEntry {
    /// Who did it; `None` for nobody known.
    pub principal: Option<PrincipalId>,
    /// With which token.
    pub token: Option<String>,
    /// What was done, such as `tool.update`.
    pub action: String,
    /// To what, such as a tool's name.
    pub subject: String,
    /// More facts.
    pub detail: Value,
    /// The fingerprint of the version it was about.
    pub fingerprint: Option<String>,
    /// How it went, such as `ok` or `refused`.
    pub outcome: String,
}

/// An entry of the log.
#[derive(Clone, Debug, PartialEq)]
pub struct AuditRow {
    /// Its id; ids sort by time.
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

impl Store {
    /// Adds an entry.
    ///
    /// # Errors
    /// [`StoreError::Database`].
    pub async fn append_audit(&self, entry: &AuditEntry) -> Result<AuditRow, StoreError> {
        let (id, at) = (self.clock.new_id().to_string(), self.clock.now());
        let principal = entry.principal.as_ref().map(|principal| principal.0.as_str());
        let detail = entry.detail.to_string();
        sqlx::query!(
            "INSERT INTO audit (id, at, principal, token, action, subject, detail, fingerprint, outcome)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)",
            id,
            at.0,
            principal,
            entry.token,
            entry.action,
            entry.subject,
            detail,
            entry.fingerprint,
            entry.outcome
        )
        .execute(&self.connections.writer)
        .await?;
        Ok(AuditRow { id, at, entry: entry.clone() })
    }

    /// Entries, newest first.
    ///
    /// # Errors
    /// [`StoreError::Database`]; [`StoreError::Corrupt`] for a detail that is no JSON.
    pub async fn list_audit(&self, filter: &AuditFilter, limit: u32) -> Result<Vec<AuditRow>, StoreError> {
        let principal = filter.principal.as_ref().map(|principal| principal.0.as_str());
        let rows = sqlx::query!(
            "SELECT id, at, principal, token, action, subject, detail, fingerprint, outcome FROM audit
             WHERE ($1 IS NULL OR principal = $1)
               AND ($2 IS NULL OR action = $2 OR substr(action, 1, length($2) + 1) = $2 || '.')
               AND ($3 IS NULL OR subject = $3)
               AND ($4 IS NULL OR id < $4)
             ORDER BY id DESC LIMIT $5",
            principal,
            filter.action,
            filter.subject,
            filter.before,
            limit
        )
        .fetch_all(self.read())
        .await?;
        rows.into_iter()
            .map(|row| {
                Ok(AuditRow {
                    id: row.id,
                    at: Timestamp(row.at),
                    entry: AuditEntry {
                        principal: row.principal.map(PrincipalId),
                        token: row.token,
                        action: row.action,
                        subject: row.subject,
                        detail: serde_json::from_str(&row.detail).map_err(|error| corrupt("audit detail", error))?,
                        fingerprint: row.fingerprint,
                        outcome: row.outcome,
                    },
                })
            })
            .collect()
    }
}
