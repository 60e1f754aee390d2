//! A toolset as programs and people see it.

use serde::Serialize;

use super::{NamedContent, cap_warnings};
use crate::clock::rfc3339;
use crate::model::{ContentKind, Toolset, ToolsetSettings};
use crate::store::{Store, StoreError};

/// What everybody who may see a toolset sees of it.
#[derive(Clone, Debug, Serialize)]
pub struct ToolsetView {
    /// Its name.
    pub name: String,
    /// What it is.
    #[serde(flatten)]
    pub settings: ToolsetSettings,
    /// The tools that are inside by hand.
    pub tools: Vec<String>,
    /// The saved content that is inside by hand.
    pub content: Vec<NamedContent>,
    /// The names of all tools that are inside, also by tag.
    pub all_tools: Vec<String>,
    /// The path of its endpoint.
    pub path: String,
    /// What it says that clients may stumble over.
    pub warnings: Vec<String>,
    /// How often it was changed, from 1.
    pub revision: i64,
    /// When it was made.
    pub created_at: String,
    /// When it was changed last.
    pub updated_at: String,
}

/// How this toolset is shown.
///
/// # Errors
/// [`StoreError`].
pub(super) async fn of(store: &Store, toolset: Toolset) -> Result<ToolsetView, StoreError> {
    let members = store.toolset_members(&toolset.id).await?;
    let kind = |word: &str| {
        [ContentKind::Resource, ContentKind::Prompt, ContentKind::Skill].into_iter().find(|kind| kind.as_str() == word)
    };
    let by_hand = || members.iter().filter(|member| member.by_hand);
    let all_tools: Vec<String> =
        members.iter().filter(|member| member.kind == "tool").map(|member| member.name.clone()).collect();
    let listed = if toolset.settings.search { 2 } else { all_tools.len() + super::super::builtin::Builtin::ALL.len() };
    Ok(ToolsetView {
        tools: by_hand().filter(|member| member.kind == "tool").map(|member| member.name.clone()).collect(),
        content: by_hand()
            .filter_map(|member| Some(NamedContent { kind: kind(&member.kind)?, name: member.name.clone() }))
            .collect(),
        path: format!("/mcp/{}", toolset.name),
        warnings: cap_warnings(listed, toolset.settings.search),
        all_tools,
        name: toolset.name,
        settings: toolset.settings,
        revision: toolset.revision,
        created_at: rfc3339(toolset.created_at),
        updated_at: rfc3339(toolset.updated_at),
    })
}
