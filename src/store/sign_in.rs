//! Sign-in links and the sessions of the web UI. Codes and session ids are stored as hashes alone.

use super::identity::PrincipalColumns;
use super::{AuditEntry, Hash, Principal, Store, StoreError};
use crate::model::{PrincipalId, Timestamp};

/// A session of the web UI.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionRow {
    /// Whose it is.
    pub principal: Principal,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it was used last, as far as that was recorded.
    pub last_seen_at: Timestamp,
}

/// A session as its owner sees it in a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionEntry {
    /// The hash of its id, in hexadecimal.
    pub hash: String,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it was used last, as far as that was recorded.
    pub last_seen_at: Timestamp,
}

impl Store {
    /// Stores a sign-in link for a principal.
    ///
    /// # Errors
    /// [`StoreError::Database`].
    pub async fn insert_sign_in_link(
        &self,
        code_hash: &Hash,
        principal: &PrincipalId,
        expires_at: Timestamp,
    ) -> Result<(), StoreError> {
        let (code_hash, now) = (code_hash.as_slice(), self.clock.now().0);
        sqlx::query!(
            "INSERT INTO sign_in_links (code_hash, principal, created_at, expires_at) VALUES ($1, $2, $3, $4)",
            code_hash,
            principal.0,
            now,
            expires_at.0
        )
        .execute(&self.connections.writer)
        .await?;
        Ok(())
    }

    /// Spends a sign-in link on a new session, in one transaction: the principal who is signed in now, or `None`
    /// when the link is unknown, spent or expired. A success is recorded, as the principal's.
    ///
    /// # Errors
    /// [`StoreError::Database`].
    pub async fn spend_sign_in_link(
        &self,
        code_hash: &Hash,
        session_hash: &Hash,
        entry: AuditEntry,
    ) -> Result<Option<PrincipalId>, StoreError> {
        let (code_hash, session_hash, now) = (code_hash.as_slice(), session_hash.as_slice(), self.clock.now().0);
        let mut transaction = self.write().await?;
        let spent =
            sqlx::query!("DELETE FROM sign_in_links WHERE code_hash = $1 RETURNING principal, expires_at", code_hash)
                .fetch_optional(&mut *transaction)
                .await?;
        let principal = spent.filter(|link| link.expires_at > now).map(|link| link.principal);
        if let Some(principal) = &principal {
            sqlx::query!(
                "INSERT INTO sessions (id_hash, principal, created_at, last_seen_at) VALUES ($1, $2, $3, $3)",
                session_hash,
                principal,
                now
            )
            .execute(&mut *transaction)
            .await?;
            let entry = AuditEntry { principal: Some(PrincipalId(principal.clone())), ..entry };
            self.record(&mut transaction, &entry).await?;
        }
        transaction.commit().await?;
        Ok(principal.map(PrincipalId))
    }

    /// The session with this id, however old.
    ///
    /// # Errors
    /// [`StoreError::Database`].
    pub async fn find_session(&self, id_hash: &Hash) -> Result<Option<SessionRow>, StoreError> {
        let id_hash = id_hash.as_slice();
        let row = sqlx::query!(
            "SELECT p.id, p.name, p.kind, p.created_at, s.created_at AS session_created_at, s.last_seen_at
             FROM sessions s JOIN principals p ON p.id = s.principal WHERE s.id_hash = $1",
            id_hash
        )
        .fetch_optional(self.read())
        .await?;
        row.map(|row| {
            let columns = PrincipalColumns { id: row.id, name: row.name, kind: row.kind, created_at: row.created_at };
            Ok(SessionRow {
                principal: columns.try_into()?,
                created_at: Timestamp(row.session_created_at),
                last_seen_at: Timestamp(row.last_seen_at),
            })
        })
        .transpose()
    }

    /// Records that a session is used now. Callers do so once in some minutes, not with each request.
    ///
    /// # Errors
    /// [`StoreError::Database`].
    pub async fn touch_session(&self, id_hash: &Hash) -> Result<(), StoreError> {
        let (id_hash, now) = (id_hash.as_slice(), self.clock.now().0);
        sqlx::query!("UPDATE sessions SET last_seen_at = $2 WHERE id_hash = $1 AND last_seen_at < $2", id_hash, now)
            .execute(&self.connections.writer)
            .await?;
        Ok(())
    }

    /// Ends a session; says whether there was one. That is recorded, as its principal's.
    ///
    /// # Errors
    /// [`StoreError::Database`].
    pub async fn delete_session(&self, id_hash: &Hash, entry: AuditEntry) -> Result<bool, StoreError> {
        let id_hash = id_hash.as_slice();
        let mut transaction = self.write().await?;
        let ended = sqlx::query_scalar!("DELETE FROM sessions WHERE id_hash = $1 RETURNING principal", id_hash)
            .fetch_optional(&mut *transaction)
            .await?;
        let was_there = ended.is_some();
        if let Some(principal) = ended {
            let entry = AuditEntry { principal: Some(PrincipalId(principal)), ..entry };
            self.record(&mut transaction, &entry).await?;
        }
        transaction.commit().await?;
        Ok(was_there)
    }

    /// Forgets the sessions that were last used before this time, and the sign-in links that have expired.
    ///
    /// # Errors
    /// [`StoreError::Database`].
    pub async fn delete_expired_sign_ins(&self, idle_since: Timestamp) -> Result<u64, StoreError> {
        let now = self.clock.now().0;
        let mut transaction = self.write().await?;
        let sessions = sqlx::query!("DELETE FROM sessions WHERE last_seen_at < $1", idle_since.0)
            .execute(&mut *transaction)
            .await?;
        let links =
            sqlx::query!("DELETE FROM sign_in_links WHERE expires_at <= $1", now).execute(&mut *transaction).await?;
        transaction.commit().await?;
        Ok(sessions.rows_affected() + links.rows_affected())
    }

    /// A principal's sessions that were used since then, the last used first.
    ///
    /// # Errors
    /// [`StoreError::Database`].
    pub async fn list_sessions(
        &self,
        principal: &PrincipalId,
        used_since: Timestamp,
    ) -> Result<Vec<SessionEntry>, StoreError> {
        let rows = sqlx::query!(
            r#"SELECT lower(hex(id_hash)) AS "hash!: String", created_at, last_seen_at FROM sessions
               WHERE principal = $1 AND last_seen_at > $2 ORDER BY last_seen_at DESC, created_at DESC LIMIT 200"#,
            principal.0,
            used_since.0
        )
        .fetch_all(self.read())
        .await?;
        let entry = |hash, created_at, last_seen_at| SessionEntry {
            hash,
            created_at: Timestamp(created_at),
            last_seen_at: Timestamp(last_seen_at),
        };
        Ok(rows.into_iter().map(|row| entry(row.hash, row.created_at, row.last_seen_at)).collect())
    }

    /// Ends a principal's session by the hash of its id in hexadecimal; says whether there was one.
    ///
    /// # Errors
    /// [`StoreError::Database`].
    pub async fn end_session(
        &self,
        principal: &PrincipalId,
        hash: &str,
        entry: &AuditEntry,
    ) -> Result<bool, StoreError> {
        let mut transaction = self.write().await?;
        let ended =
            sqlx::query!("DELETE FROM sessions WHERE principal = $1 AND lower(hex(id_hash)) = $2", principal.0, hash)
                .execute(&mut *transaction)
                .await?;
        let was_there = ended.rows_affected() > 0;
        if was_there {
            self.record(&mut transaction, entry).await?;
        }
        transaction.commit().await?;
        Ok(was_there)
    }
}
