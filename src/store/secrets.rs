//! Sealed things: the server's key and the secrets. The store can open none of them.

use super::error::corrupt;
use super::{Store, StoreError};
use crate::model::{PrincipalId, Timestamp};

/// The server's key as it is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SealedKey {
    /// Its id; ids sort by time.
    pub id: String,
    /// Sealed with the operator's key.
    pub sealed: String,
}

/// A secret as it is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SealedSecret {
    /// Its name: that of the variable.
    pub name: String,
    /// The value, sealed.
    pub sealed: String,
    /// The only hosts that a run with it may reach; empty for any.
    pub hosts: Vec<String>,
    /// When it was set first.
    pub created_at: Timestamp,
    /// When it was set last.
    pub updated_at: Timestamp,
    /// By whom.
    pub updated_by: PrincipalId,
}

impl Store {
    /// The server's keys, newest first.
    ///
    /// # Errors
    /// [`StoreError::Database`].
    pub async fn sealed_keys(&self) -> Result<Vec<SealedKey>, StoreError> {
        Ok(sqlx::query_as!(SealedKey, "SELECT id, sealed FROM server_keys ORDER BY id DESC")
            .fetch_all(self.read())
            .await?)
    }

    /// Adds a key, unless these are not the ids of all that there are: then another process was faster. Says whether it did.
    ///
    /// # Errors
    /// [`StoreError::Database`].
    pub async fn add_sealed_key(&self, sealed: &str, known: &[SealedKey]) -> Result<bool, StoreError> {
        let mut transaction = self.write().await?;
        let ids =
            sqlx::query_scalar!("SELECT id FROM server_keys ORDER BY id DESC").fetch_all(&mut *transaction).await?;
        if !ids.iter().eq(known.iter().map(|key| &key.id)) {
            return Ok(false);
        }
        let (id, now) = (self.clock.new_id().to_string(), self.clock.now().0);
        sqlx::query!("INSERT INTO server_keys (id, sealed, created_at) VALUES ($1, $2, $3)", id, sealed, now)
            .execute(&mut *transaction)
            .await?;
        transaction.commit().await?;
        Ok(true)
    }

    /// Forgets a key that was replaced.
    ///
    /// # Errors
    /// [`StoreError::Database`].
    pub async fn forget_sealed_key(&self, id: &str) -> Result<(), StoreError> {
        sqlx::query!("DELETE FROM server_keys WHERE id = $1", id).execute(&self.connections.writer).await?;
        Ok(())
    }

    /// Keeps a secret, in place of the one of that name. Says whether there was one.
    ///
    /// # Errors
    /// [`StoreError::Database`].
    pub async fn set_secret(
        &self,
        name: &str,
        sealed: &str,
        hosts: &[String],
        by: &PrincipalId,
    ) -> Result<bool, StoreError> {
        let hosts = serde_json::to_string(hosts).map_err(|source| StoreError::Encode { what: "hosts", source })?;
        let now = self.clock.now().0;
        let mut transaction = self.write().await?;
        let known = sqlx::query_scalar!("SELECT name FROM secrets WHERE name = $1", name)
            .fetch_optional(&mut *transaction)
            .await?;
        sqlx::query!(
            "INSERT INTO secrets (name, sealed, hosts, created_at, updated_at, updated_by)
             VALUES ($1, $2, $3, $4, $4, $5)
             ON CONFLICT (name) DO UPDATE SET sealed = excluded.sealed, hosts = excluded.hosts,
                                              updated_at = excluded.updated_at, updated_by = excluded.updated_by",
            name,
            sealed,
            hosts,
            now,
            by.0
        )
        .execute(&mut *transaction)
        .await?;
        transaction.commit().await?;
        Ok(known.is_some())
    }

    /// Forgets a secret; says whether there was one.
    ///
    /// # Errors
    /// [`StoreError::Database`].
    pub async fn delete_secret(&self, name: &str) -> Result<bool, StoreError> {
        let done = sqlx::query!("DELETE FROM secrets WHERE name = $1", name).execute(&self.connections.writer).await?;
        Ok(done.rows_affected() > 0)
    }

    /// The secrets, by name.
    ///
    /// # Errors
    /// [`StoreError::Database`], [`StoreError::Corrupt`].
    pub async fn sealed_secrets(&self) -> Result<Vec<SealedSecret>, StoreError> {
        let rows =
            sqlx::query!("SELECT name, sealed, hosts, created_at, updated_at, updated_by FROM secrets ORDER BY name")
                .fetch_all(self.read())
                .await?;
        rows.into_iter()
            .map(|row| {
                Ok(SealedSecret {
                    name: row.name,
                    sealed: row.sealed,
                    hosts: serde_json::from_str(&row.hosts).map_err(|error| corrupt("hosts of a secret", error))?,
                    created_at: Timestamp(row.created_at),
                    updated_at: Timestamp(row.updated_at),
                    updated_by: PrincipalId(row.updated_by),
                })
            })
            .collect()
    }
}
