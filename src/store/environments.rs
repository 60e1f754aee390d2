//! Reads for environments: the locks that tools need, and the versions that wait for theirs.

use super::rows::ToolWithVersionColumns;
use super::{Store, StoreError};
use crate::model::{EnvironmentLock, Tool, ToolVersion};

impl Store {
    /// The locks that tools need: those of every tool's serving and latest version, each once.
    ///
    /// # Errors
    /// [`StoreError::Database`].
    pub async fn needed_locks(&self) -> Result<Vec<EnvironmentLock>, StoreError> {
        let rows = sqlx::query!(
            r#"SELECT DISTINCT json_extract(v.definition, '$.lock.hash') AS "hash!: String",
                               json_extract(v.definition, '$.lock.lock') AS "lock!: String"
               FROM tools t JOIN tool_versions v ON v.tool = t.id AND v.number IN (t.serving_version, t.latest_version)
               WHERE json_extract(v.definition, '$.lock.hash') IS NOT NULL"#
        )
        .fetch_all(self.read())
        .await?;
        Ok(rows.into_iter().map(|row| EnvironmentLock { hash: row.hash, lock: row.lock }).collect())
    }

    /// The tools with dependencies whose latest version is not the one that serves, with that latest version.
    ///
    /// # Errors
    /// [`StoreError::Database`], [`StoreError::Corrupt`].
    pub async fn unserved_versions(&self) -> Result<Vec<(Tool, ToolVersion)>, StoreError> {
        sqlx::query_as!(
            ToolWithVersionColumns,
            r#"SELECT t.id, t.name, t.owner, t.enabled AS "enabled!: bool", t.serving_version, t.latest_version,
                      t.created_at, t.updated_at, v.number AS "number!", v.fingerprint,
                      v.created_at AS version_created_at, v.created_by, v.note, v.definition
               FROM tools t JOIN tool_versions v ON v.tool = t.id AND v.number = t.latest_version
               WHERE t.serving_version IS NOT t.latest_version
                 AND json_extract(v.definition, '$.lock.hash') IS NOT NULL
               ORDER BY t.id"#
        )
        .fetch_all(self.read())
        .await?
        .into_iter()
        .map(TryInto::try_into)
        .collect()
    }
}
