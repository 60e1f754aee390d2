//! Reads of saved content: by name, for lists, and the news that clients are told.

use std::collections::HashMap;

use super::content_rows::{FileColumns, ItemColumns};
use super::contents::Subject;
use super::error::corrupt;
use super::{Store, StoreError};
use crate::model::{
    ContentFile, ContentId, ContentItem, ContentKind, ContentVersion, PrincipalId, Timestamp, ToolsetId, VersionNumber,
};

/// A version without its definition.
#[derive(Clone, Debug, PartialEq)]
pub struct ContentVersionSummary {
    /// Its number.
    pub number: VersionNumber,
    /// A name for people.
    pub title: Option<String>,
    /// What it is.
    pub description: Option<String>,
    /// BLAKE3 over the canonical JSON of definition and files, hex.
    pub fingerprint: String,
    /// When it was saved.
    pub created_at: Timestamp,
    /// By whom.
    pub created_by: PrincipalId,
    /// What happened.
    pub note: String,
}

/// What to search for.
#[derive(Clone, Debug, Default)]
pub struct ContentSearch {
    /// Only this kind.
    pub kind: Option<ContentKind>,
    /// A text in name, title or description, in any case of A to Z. Empty: everything.
    pub text: String,
    /// Whose; `None`: everybody's.
    pub owner: Option<PrincipalId>,
    /// Content inside this toolset.
    pub toolset: Option<ToolsetId>,
    /// How many to return at most.
    pub limit: u32,
    /// How many to skip.
    pub offset: u32,
}

/// A content item that was found, with its latest version.
#[derive(Clone, Debug, PartialEq)]
pub struct FoundContent {
    /// The item.
    pub item: ContentItem,
    /// Its latest version.
    pub latest: ContentVersionSummary,
}

/// One page of a search, by kind and name.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FoundContents {
    /// The page.
    pub items: Vec<FoundContent>,
    /// How many match in all; 0 on a page behind the last.
    pub total: u64,
}

/// Something that clients are told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContentNews {
    /// Its number: the generation from which on it can be read.
    pub id: u64,
    /// Whose content it is about.
    pub owner: PrincipalId,
    /// The list that has changed, if one did.
    pub subject: Option<Subject>,
    /// The resource that has changed, if one did.
    pub uri: Option<String>,
}

impl Store {
    /// The generation of the saved content: it grows with every change, by any process.
    ///
    /// # Errors
    /// [`StoreError::Database`].
    pub async fn content_generation(&self) -> Result<u64, StoreError> {
        let id = sqlx::query_scalar!(r#"SELECT COALESCE(MAX(id), 0) AS "id!: i64" FROM content_news"#)
            .fetch_one(self.read())
            .await?;
        u64::try_from(id).map_err(|_| corrupt("content generation", id))
    }

    /// The news after this generation, oldest first; where some are forgotten, the first has a later number than the
    /// next one would.
    ///
    /// # Errors
    /// [`StoreError::Database`], [`StoreError::Corrupt`].
    pub async fn content_news_after(&self, generation: u64) -> Result<Vec<ContentNews>, StoreError> {
        let after = i64::try_from(generation).unwrap_or(i64::MAX);
        let rows = sqlx::query!("SELECT id, owner, subject, uri FROM content_news WHERE id > $1 ORDER BY id", after)
            .fetch_all(self.read())
            .await?;
        rows.into_iter()
            .map(|row| {
                let subject = row.subject.map(|word| Subject::parse(&word).ok_or_else(|| corrupt("subject", &word)));
                Ok(ContentNews {
                    id: u64::try_from(row.id).map_err(|_| corrupt("content generation", row.id))?,
                    owner: PrincipalId(row.owner),
                    subject: subject.transpose()?,
                    uri: row.uri,
                })
            })
            .collect()
    }

    /// The content item of this kind and name.
    ///
    /// # Errors
    /// [`StoreError::Database`], [`StoreError::Corrupt`].
    pub async fn get_content(&self, kind: ContentKind, name: &str) -> Result<Option<ContentItem>, StoreError> {
        let kind = kind.as_str();
        sqlx::query_as!(
            ItemColumns,
            r#"SELECT id, kind, name, owner, enabled AS "enabled!: bool", serving_version, latest_version, created_at,
                      updated_at
               FROM contents WHERE kind = $1 AND name = $2"#,
            kind,
            name
        )
        .fetch_optional(self.read())
        .await?
        .map(ContentItem::try_from)
        .transpose()
    }

    /// One version of a content item.
    ///
    /// # Errors
    /// [`StoreError::Database`], [`StoreError::Corrupt`].
    pub async fn get_content_version(
        &self,
        content: &ContentId,
        number: VersionNumber,
    ) -> Result<Option<ContentVersion>, StoreError> {
        let row = sqlx::query!(
            "SELECT fingerprint, created_at, created_by, note, definition FROM content_versions
             WHERE content = $1 AND number = $2",
            content.0,
            number
        )
        .fetch_optional(self.read())
        .await?;
        let Some(row) = row else { return Ok(None) };
        let files = sqlx::query_as!(
            FileColumns,
            "SELECT path, mime_type, size, digest FROM content_files WHERE content = $1 AND number = $2 ORDER BY path",
            content.0,
            number
        )
        .fetch_all(self.read())
        .await?;
        Ok(Some(ContentVersion {
            content: content.clone(),
            number,
            definition: decode(&row.definition)?,
            files: files.into_iter().map(ContentFile::try_from).collect::<Result<_, _>>()?,
            fingerprint: row.fingerprint,
            created_at: Timestamp(row.created_at),
            created_by: PrincipalId(row.created_by),
            note: row.note,
        }))
    }

    /// The versions of a content item without their definitions, newest first.
    ///
    /// # Errors
    /// [`StoreError::Database`].
    pub async fn list_content_versions(&self, content: &ContentId) -> Result<Vec<ContentVersionSummary>, StoreError> {
        let rows = sqlx::query!(
            "SELECT number, title, description, fingerprint, created_at, created_by, note FROM content_versions
             WHERE content = $1 ORDER BY number DESC",
            content.0
        )
        .fetch_all(self.read())
        .await?;
        let summaries = rows.into_iter().map(|row| ContentVersionSummary {
            number: row.number,
            title: row.title,
            description: row.description,
            fingerprint: row.fingerprint,
            created_at: Timestamp(row.created_at),
            created_by: PrincipalId(row.created_by),
            note: row.note,
        });
        Ok(summaries.collect())
    }

    /// A principal's enabled content that has a serving version, with that version; by kind and name. Only what is
    /// inside the toolset, where one is named.
    ///
    /// # Errors
    /// [`StoreError::Database`], [`StoreError::Corrupt`].
    pub async fn visible_contents(
        &self,
        owner: &PrincipalId,
        toolset: Option<&ToolsetId>,
    ) -> Result<Vec<(ContentItem, ContentVersion)>, StoreError> {
        let mut files = self.visible_files(owner).await?;
        let toolset = toolset.map(|toolset| toolset.0.as_str());
        let rows = sqlx::query!(
            "SELECT c.id, c.kind, c.name, c.owner, c.serving_version, c.latest_version, c.created_at, c.updated_at,
                    v.number, v.fingerprint, v.created_at AS version_created_at, v.created_by, v.note, v.definition
             FROM contents c JOIN content_versions v ON v.content = c.id AND v.number = c.serving_version
             WHERE c.owner = $1 AND c.enabled = 1
               AND ($2 IS NULL OR c.id IN (SELECT content FROM toolset_contents WHERE toolset = $2))
             ORDER BY c.kind, c.name",
            owner.0,
            toolset
        )
        .fetch_all(self.read())
        .await?;
        rows.into_iter()
            .map(|row| {
                let version = ContentVersion {
                    content: ContentId(row.id.clone()),
                    number: row.number,
                    definition: decode(&row.definition)?,
                    files: files.remove(&row.id).unwrap_or_default(),
                    fingerprint: row.fingerprint,
                    created_at: Timestamp(row.version_created_at),
                    created_by: PrincipalId(row.created_by),
                    note: row.note,
                };
                let item = ItemColumns {
                    id: row.id,
                    kind: row.kind,
                    name: row.name,
                    owner: row.owner,
                    enabled: true,
                    serving_version: row.serving_version,
                    latest_version: row.latest_version,
                    created_at: row.created_at,
                    updated_at: row.updated_at,
                };
                Ok((item.try_into()?, version))
            })
            .collect()
    }

    async fn visible_files(&self, owner: &PrincipalId) -> Result<HashMap<String, Vec<ContentFile>>, StoreError> {
        let rows = sqlx::query!(
            "SELECT f.content, f.path, f.mime_type, f.size, f.digest
             FROM contents c JOIN content_files f ON f.content = c.id AND f.number = c.serving_version
             WHERE c.owner = $1 AND c.enabled = 1 ORDER BY f.content, f.path",
            owner.0
        )
        .fetch_all(self.read())
        .await?;
        let mut files: HashMap<String, Vec<ContentFile>> = HashMap::new();
        for row in rows {
            let file = FileColumns { path: row.path, mime_type: row.mime_type, size: row.size, digest: row.digest };
            files.entry(row.content).or_default().push(file.try_into()?);
        }
        Ok(files)
    }

    /// The bytes of a file, by the digest that stands on its version.
    ///
    /// # Errors
    /// [`StoreError::Database`].
    pub async fn content_bytes(&self, digest: &str) -> Result<Option<Vec<u8>>, StoreError> {
        Ok(sqlx::query_scalar!("SELECT bytes FROM content_blobs WHERE digest = $1", digest)
            .fetch_optional(self.read())
            .await?)
    }

    /// Finds content by kind and text.
    ///
    /// # Errors
    /// [`StoreError::Database`], [`StoreError::Corrupt`].
    pub async fn search_contents(&self, search: &ContentSearch) -> Result<FoundContents, StoreError> {
        let kind = search.kind.map(ContentKind::as_str);
        let text = search.text.trim().to_ascii_lowercase();
        let owner = search.owner.as_ref().map(|owner| owner.0.as_str());
        let toolset = search.toolset.as_ref().map(|toolset| toolset.0.as_str());
        let rows = sqlx::query!(
            r#"SELECT c.id, c.kind, c.name, c.owner, c.enabled AS "enabled!: bool", c.serving_version, c.latest_version,
                      c.created_at, c.updated_at, v.title, v.description, v.fingerprint,
                      v.created_at AS version_created_at, v.created_by, v.note, COUNT(*) OVER () AS "total!: i64"
               FROM contents c JOIN content_versions v ON v.content = c.id AND v.number = c.latest_version
               WHERE ($1 IS NULL OR c.kind = $1) AND ($2 IS NULL OR c.owner = $2)
                 AND instr(lower(c.name || char(10) || COALESCE(v.title, '') || char(10)
                                 || COALESCE(v.description, '')), $3) > 0
                 AND ($6 IS NULL OR c.id IN (SELECT content FROM toolset_contents WHERE toolset = $6))
               ORDER BY c.kind, c.name LIMIT $4 OFFSET $5"#,
            kind,
            owner,
            text,
            search.limit,
            search.offset,
            toolset
        )
        .fetch_all(self.read())
        .await?;
        let total = rows.first().map_or(0, |row| row.total.unsigned_abs());
        let items = rows.into_iter().map(|row| {
            let item = ItemColumns {
                id: row.id,
                kind: row.kind,
                name: row.name,
                owner: row.owner,
                enabled: row.enabled,
                serving_version: row.serving_version,
                latest_version: row.latest_version,
                created_at: row.created_at,
                updated_at: row.updated_at,
            };
            let latest = ContentVersionSummary {
                number: item.latest_version,
                title: row.title,
                description: row.description,
                fingerprint: row.fingerprint,
                created_at: Timestamp(row.version_created_at),
                created_by: PrincipalId(row.created_by),
                note: row.note,
            };
            Ok(FoundContent { item: item.try_into()?, latest })
        });
        Ok(FoundContents { items: items.collect::<Result<_, StoreError>>()?, total })
    }
}

fn decode(definition: &str) -> Result<crate::model::ContentDefinition, StoreError> {
    serde_json::from_str(definition).map_err(|error| corrupt("content definition", error))
}
