//! Rows of tools and versions, turned into the words of the domain.

use super::StoreError;
use super::error::corrupt;
use crate::model::{PrincipalId, Timestamp, Tool, ToolId, ToolName, ToolVersion, VersionNumber};

/// The columns of `tools`.
pub(super) struct ToolColumns {
    pub id: String,
    pub name: String,
    pub owner: String,
    pub enabled: bool,
    pub serving_version: Option<VersionNumber>,
    pub latest_version: VersionNumber,
    pub created_at: i64,
    pub updated_at: i64,
}

impl From<ToolColumns> for Tool {
    fn from(row: ToolColumns) -> Self {
        Self {
            id: ToolId(row.id),
            name: ToolName::from_stored(row.name),
            owner: PrincipalId(row.owner),
            enabled: row.enabled,
            serving_version: row.serving_version,
            latest_version: row.latest_version,
            created_at: Timestamp(row.created_at),
            updated_at: Timestamp(row.updated_at),
        }
    }
}

/// The columns of `tool_versions` that make a [`ToolVersion`].
pub(super) struct VersionColumns {
    pub tool: String,
    pub number: VersionNumber,
    pub fingerprint: String,
    pub created_at: i64,
    pub created_by: String,
    pub note: String,
    pub definition: String,
}

impl TryFrom<VersionColumns> for ToolVersion {
    type Error = StoreError;

    fn try_from(row: VersionColumns) -> Result<Self, StoreError> {
        Ok(Self {
            tool: ToolId(row.tool),
            number: row.number,
            definition: serde_json::from_str(&row.definition).map_err(|error| corrupt("tool definition", error))?,
            fingerprint: row.fingerprint,
            created_at: Timestamp(row.created_at),
            created_by: PrincipalId(row.created_by),
            note: row.note,
        })
    }
}

/// A tool with one of its versions.
pub(super) struct ToolWithVersionColumns {
    pub id: String,
    pub name: String,
    pub owner: String,
    pub enabled: bool,
    pub serving_version: Option<VersionNumber>,
    pub latest_version: VersionNumber,
    pub created_at: i64,
    pub updated_at: i64,
    pub number: VersionNumber,
    pub fingerprint: String,
    pub version_created_at: i64,
    pub created_by: String,
    pub note: String,
    pub definition: String,
}

impl TryFrom<ToolWithVersionColumns> for (Tool, ToolVersion) {
    type Error = StoreError;

    fn try_from(row: ToolWithVersionColumns) -> Result<Self, StoreError> {
        let version = VersionColumns {
            tool: row.id.clone(),
            number: row.number,
            fingerprint: row.fingerprint,
            created_at: row.version_created_at,
            created_by: row.created_by,
            note: row.note,
            definition: row.definition,
        };
        let tool = ToolColumns {
            id: row.id,
            name: row.name,
            owner: row.owner,
            enabled: row.enabled,
            serving_version: row.serving_version,
            latest_version: row.latest_version,
            created_at: row.created_at,
            updated_at: row.updated_at,
        };
        Ok((tool.into(), version.try_into()?))
    }
}
