//! Toolsets: named groups of tools and saved content, and who acts within one.

use serde::{Deserialize, Serialize};

use super::{NameError, PrincipalId, Timestamp};

/// A toolset's id (UUIDv7 text).
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ToolsetId(pub String);

/// What a toolset is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ToolsetSettings {
    /// What it is for, for people.
    pub description: String,
    /// What its clients are told when they connect; empty for what every client is told.
    pub instructions: String,
    /// Tags: what carries one of them is inside.
    pub tags: Vec<String>,
    /// Whether everything of its owner's is inside.
    pub everything: bool,
    /// Whether two tools alone are listed: one that searches, and one that calls.
    pub search: bool,
    /// Whether schemas are served in their plainest form.
    pub portable: bool,
}

/// A named group of a principal's tools and saved content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Toolset {
    /// Its id.
    pub id: ToolsetId,
    /// Its name, in URLs.
    pub name: String,
    /// Whose it is, and whose tools are inside.
    pub owner: PrincipalId,
    /// What it is.
    pub settings: ToolsetSettings,
    /// How often it was changed, from 1.
    pub revision: i64,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it was changed last.
    pub updated_at: Timestamp,
}

/// Whose a session is: a principal's, and within which toolset.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Holder {
    /// The principal.
    pub principal: PrincipalId,
    /// The toolset that it acts within, where it does.
    pub toolset: Option<ToolsetId>,
}

/// Checks a toolset's name: what a tool's may be, because it stands in URLs as they do.
///
/// # Errors
/// [`NameError`] says which character is wrong.
pub fn check_toolset_name(name: &str) -> Result<(), NameError> {
    super::name::check_letters(name)
}
