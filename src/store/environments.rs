//! Reads for environments: the locks that tools need, and the versions that wait for theirs.

use super::rows::VersionColumns;
use super::{Store, StoreError};
use crate::model::{EnvironmentLock, ToolVersion};

impl Store {
    /// The locks that tools and the scripts of saved content need, each once: those of every latest version, of the one
    /// that serves, and of the one that will.
    ///
    /// # Errors
    /// [`StoreError::Database`].
    pub async fn needed_locks(&self) -> Result<Vec<EnvironmentLock>, StoreError> {
        let rows = sqlx::query!(
            r#"SELECT DISTINCT json_extract(v.definition, '$.lock.hash') AS "hash!: String",
                               json_extract(v.definition, '$.lock.lock') AS "lock!: String"
               FROM tools t
               JOIN tool_versions v
                 ON v.tool = t.id AND v.number IN (t.serving_version, t.installing_version, t.latest_version)
               WHERE json_extract(v.definition, '$.lock.hash') IS NOT NULL
               UNION
               SELECT json_extract(s.value, '$.lock.hash'), json_extract(s.value, '$.lock.lock')
               FROM contents c
               JOIN content_versions v ON v.content = c.id AND v.number IN (c.serving_version, c.latest_version)
               JOIN json_each(json_array(json_extract(v.definition, '$.script'),
                                         json_extract(v.definition, '$.completions.script'))) s
               WHERE json_extract(s.value, '$.lock.hash') IS NOT NULL"#
        )
        .fetch_all(self.read())
        .await?;
        Ok(rows.into_iter().map(|row| EnvironmentLock { hash: row.hash, lock: row.lock }).collect())
    }

    /// The versions that are to serve once their environments are installed.
    ///
    /// # Errors
    /// [`StoreError::Database`], [`StoreError::Corrupt`].
    pub async fn installing_versions(&self) -> Result<Vec<ToolVersion>, StoreError> {
        sqlx::query_as!(
            VersionColumns,
            r#"SELECT v.tool, v.number AS "number!", v.fingerprint, v.created_at, v.created_by, v.note, v.definition
               FROM tools t JOIN tool_versions v ON v.tool = t.id AND v.number = t.installing_version
               ORDER BY v.tool"#
        )
        .fetch_all(self.read())
        .await?
        .into_iter()
        .map(ToolVersion::try_from)
        .collect()
    }
}
