//! What tools keep for their callers.

use super::{Store, StoreError};
use crate::model::{PrincipalId, ToolId};

/// The most bytes of all values (with their keys) of one tool, principal and class.
pub const STATE_BYTES: i64 = 1 << 20;

/// Whose values: of one tool, for one principal, under one class of reach.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct StateOwner {
    /// The tool.
    pub tool: ToolId,
    /// The principal.
    pub principal: PrincipalId,
    /// The class of reach.
    pub class: String,
}

impl Store {
    /// A value, as JSON text.
    ///
    /// # Errors
    /// [`StoreError::Database`].
    pub async fn get_state(&self, owner: &StateOwner, key: &str) -> Result<Option<String>, StoreError> {
        let value = sqlx::query_scalar!(
            "SELECT value FROM tool_state WHERE tool = $1 AND principal = $2 AND class = $3 AND key = $4",
            owner.tool.0,
            owner.principal.0,
            owner.class,
            key
        );
        Ok(value.fetch_optional(self.read()).await?)
    }

    /// Keeps a value, unless all of them together would be too large; says whether it did.
    ///
    /// # Errors
    /// [`StoreError::Database`].
    pub async fn set_state(&self, owner: &StateOwner, key: &str, value: &str) -> Result<bool, StoreError> {
        let now = self.clock.now().0;
        let mut transaction = self.write().await?;
        let others = sqlx::query_scalar!(
            r#"SELECT coalesce(sum(length(CAST(key AS BLOB)) + length(CAST(value AS BLOB))), 0) AS "bytes!: i64"
               FROM tool_state WHERE tool = $1 AND principal = $2 AND class = $3 AND key <> $4"#,
            owner.tool.0,
            owner.principal.0,
            owner.class,
            key
        );
        let others = others.fetch_one(&mut *transaction).await?;
        if others + i64::try_from(key.len() + value.len()).unwrap_or(i64::MAX) > STATE_BYTES {
            return Ok(false);
        }
        sqlx::query!(
            "INSERT INTO tool_state (tool, principal, class, key, value, updated_at) VALUES ($1, $2, $3, $4, $5, $6)
             ON CONFLICT (tool, principal, class, key)
             DO UPDATE SET value = excluded.value, updated_at = excluded.updated_at",
            owner.tool.0,
            owner.principal.0,
            owner.class,
            key,
            value,
            now
        )
        .execute(&mut *transaction)
        .await?;
        transaction.commit().await?;
        Ok(true)
    }

    /// Forgets a value; says whether there was one.
    ///
    /// # Errors
    /// [`StoreError::Database`].
    pub async fn delete_state(&self, owner: &StateOwner, key: &str) -> Result<bool, StoreError> {
        let done = sqlx::query!(
            "DELETE FROM tool_state WHERE tool = $1 AND principal = $2 AND class = $3 AND key = $4",
            owner.tool.0,
            owner.principal.0,
            owner.class,
            key
        )
        .execute(&self.connections.writer)
        .await?;
        Ok(done.rows_affected() > 0)
    }
}
