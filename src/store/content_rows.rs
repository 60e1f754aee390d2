//! Rows of saved content, turned into the words of the domain.

use super::StoreError;
use super::error::corrupt;
use crate::model::{ContentFile, ContentId, ContentItem, ContentKind, PrincipalId, Timestamp, VersionNumber};

/// The columns of `contents`.
pub(super) struct ItemColumns {
    pub id: String,
    pub kind: String,
    pub name: String,
    pub owner: String,
    pub enabled: bool,
    pub serving_version: Option<VersionNumber>,
    pub latest_version: VersionNumber,
    pub created_at: i64,
    pub updated_at: i64,
}

impl TryFrom<ItemColumns> for ContentItem {
    type Error = StoreError;

    fn try_from(row: ItemColumns) -> Result<Self, StoreError> {
        Ok(Self {
            id: ContentId(row.id),
            kind: ContentKind::parse(&row.kind).ok_or_else(|| corrupt("content kind", &row.kind))?,
            name: row.name,
            owner: PrincipalId(row.owner),
            enabled: row.enabled,
            serving_version: row.serving_version,
            latest_version: row.latest_version,
            created_at: Timestamp(row.created_at),
            updated_at: Timestamp(row.updated_at),
        })
    }
}

/// The columns of `content_files` that make a [`ContentFile`].
pub(super) struct FileColumns {
    pub path: String,
    pub mime_type: Option<String>,
    pub size: i64,
    pub digest: String,
}

impl TryFrom<FileColumns> for ContentFile {
    type Error = StoreError;

    fn try_from(row: FileColumns) -> Result<Self, StoreError> {
        let size = u64::try_from(row.size).map_err(|error| corrupt("file size", error))?;
        Ok(Self { path: row.path, mime_type: row.mime_type, size, digest: row.digest })
    }
}
