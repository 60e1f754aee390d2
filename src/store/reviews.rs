//! Reads for the person who reviews: what may ask for reach, found without reading every definition.

use super::content_rows::ItemColumns;
use super::rows::ToolWithVersionColumns;
use super::{Store, StoreError};
use crate::model::{ContentId, ContentItem, Timestamp, Tool, ToolId, ToolVersion};

impl Store {
    /// Tools with their latest version, the last saved first: those that ask for anything or set a limit, or, with `all`, every
    /// one; a page of them, which begins after the moment and the id of the last one of the page before.
    ///
    /// # Errors
    /// [`StoreError::Database`], [`StoreError::Corrupt`].
    pub async fn tools_to_review(
        &self,
        all: bool,
        after: Option<&(Timestamp, ToolId)>,
        limit: u32,
    ) -> Result<Vec<(Tool, ToolVersion)>, StoreError> {
        let (moment, id) = after.map(|(moment, id)| (moment.0, id.0.as_str())).unzip();
        sqlx::query_as!(
            ToolWithVersionColumns,
            r#"SELECT t.id, t.name, t.owner, t.enabled AS "enabled!: bool", t.serving_version, t.latest_version,
                      t.created_at, t.updated_at, v.number, v.fingerprint, v.created_at AS version_created_at,
                      v.created_by, v.note, v.definition
               FROM tools t JOIN tool_versions v ON v.tool = t.id AND v.number = t.latest_version
               WHERE ($1 OR json_extract(v.definition, '$.timeout_seconds') IS NOT NULL
                  OR json_extract(v.definition, '$.memory_mb') IS NOT NULL
                  OR EXISTS (SELECT 1 FROM json_each(v.definition, '$.grants') asked
                             WHERE asked.value NOT IN ('[]', 'false', 0)))
                 AND ($2 IS NULL OR (v.created_at, t.id) < ($2, $3))
               ORDER BY v.created_at DESC, t.id DESC LIMIT $4"#,
            all,
            moment,
            id,
            limit
        )
        .fetch_all(self.read())
        .await?
        .into_iter()
        .map(TryInto::try_into)
        .collect()
    }

    /// Content whose latest version has a script, last updated first.
    ///
    /// # Errors
    /// [`StoreError::Database`], [`StoreError::Corrupt`].
    pub async fn contents_to_review(&self, limit: u32) -> Result<Vec<ContentItem>, StoreError> {
        sqlx::query_as!(
            ItemColumns,
            r#"SELECT c.id, c.kind, c.name, c.owner, c.enabled AS "enabled!: bool", c.serving_version,
                      c.latest_version, c.created_at, c.updated_at
               FROM contents c JOIN content_versions v ON v.content = c.id AND v.number = c.latest_version
               WHERE json_extract(v.definition, '$.script') IS NOT NULL
                  OR json_extract(v.definition, '$.completions.script') IS NOT NULL
               ORDER BY v.created_at DESC, c.id DESC LIMIT $1"#,
            limit
        )
        .fetch_all(self.read())
        .await?
        .into_iter()
        .map(ContentItem::try_from)
        .collect()
    }

    /// The content item with this id.
    ///
    /// # Errors
    /// [`StoreError::Database`], [`StoreError::Corrupt`].
    pub async fn get_content_by_id(&self, id: &ContentId) -> Result<Option<ContentItem>, StoreError> {
        sqlx::query_as!(
            ItemColumns,
            r#"SELECT id, kind, name, owner, enabled AS "enabled!: bool", serving_version, latest_version, created_at,
                      updated_at
               FROM contents WHERE id = $1"#,
            id.0
        )
        .fetch_optional(self.read())
        .await?
        .map(ContentItem::try_from)
        .transpose()
    }
}
