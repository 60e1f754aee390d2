//! Toolsets: who may change them, what is written of it, and what acting within one means for a caller.

mod caps;
mod portable;
mod view;

use http::StatusCode;
use serde::Deserialize;
use serde_json::json;

use super::authoring::clean as clean_text;
use crate::model::{
    Caller, ContentKind, NameError, PrincipalId, Scope, Toolset, ToolsetId, ToolsetSettings, check_toolset_name,
};
use crate::store::{AuditEntry, Store, StoreError, ToolsetWrite};

pub use caps::cap_warnings;
pub use portable::portable;
pub use view::ToolsetView;

/// The most bytes of the instructions, and of the description.
const TEXT_BYTES: usize = 8 << 10;
/// The most tags.
const TAGS: usize = 64;
/// The most members by hand.
const MEMBERS: usize = 10_000;

/// What a toolset is to be; what is left out stays as it is, or is empty in a new one.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToolsetDraft {
    /// What it is for.
    pub description: Option<String>,
    /// What its clients are told when they connect.
    pub instructions: Option<String>,
    /// What carries one of these tags is inside.
    pub tags: Option<Vec<String>>,
    /// Whether everything is inside.
    pub everything: Option<bool>,
    /// Whether two tools alone are listed.
    pub search: Option<bool>,
    /// Whether schemas are served in their plainest form.
    pub portable: Option<bool>,
    /// The names of the tools that are inside by hand.
    pub tools: Option<Vec<String>>,
    /// The saved content that is inside by hand.
    pub content: Option<Vec<NamedContent>>,
}

/// Saved content by its name.
#[derive(Clone, Debug, Deserialize, serde::Serialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub struct NamedContent {
    /// What it is.
    pub kind: ContentKind,
    /// Its name, or a resource's URI.
    pub name: String,
}

/// Why a toolset was not shown or changed.
#[derive(Debug, thiserror::Error)]
pub enum ToolsetError {
    /// The credential does not carry the scope.
    #[error("this needs the scope `{0}`, which the credential does not carry")]
    Forbidden(&'static str),
    /// The credential is limited to a toolset.
    #[error("this credential is limited to a toolset: it may look at that one, and change none")]
    Limited,
    /// There is none.
    #[error("there is no toolset `{0}`")]
    Unknown(String),
    /// It can't have that name.
    #[error("`name`: {0}")]
    Name(#[from] NameError),
    /// A field is wrong.
    #[error("{0}")]
    Wrong(String),
    /// It exists.
    #[error("there is a toolset `{0}` already")]
    Taken(String),
    /// The store refused or failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl ToolsetError {
    /// The HTTP status that fits.
    pub fn status(&self) -> StatusCode {
        match self {
            Self::Forbidden(_) | Self::Limited => StatusCode::FORBIDDEN,
            Self::Unknown(_) | Self::Store(StoreError::NoSuchToolset) => StatusCode::NOT_FOUND,
            Self::Name(_) | Self::Wrong(_) => StatusCode::BAD_REQUEST,
            Self::Taken(_) | Self::Store(StoreError::ToolsetInUse { .. }) => StatusCode::CONFLICT,
            Self::Store(StoreError::VersionConflict { .. }) => StatusCode::PRECONDITION_FAILED,
            Self::Store(_) => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }
}

/// The toolsets of a store. Whoever holds a cache of the catalogue refreshes it after a change.
#[derive(Clone, Debug)]
pub struct Toolsets {
    store: Store,
}

impl Toolsets {
    /// The toolsets in this store.
    pub fn new(store: Store) -> Self {
        Self { store }
    }

    /// The caller's toolsets, by name; everybody's for an administrator; its own for one that acts within one.
    ///
    /// # Errors
    /// [`ToolsetError`].
    pub async fn list(&self, caller: &Caller) -> Result<Vec<ToolsetView>, ToolsetError> {
        needs(caller, Scope::Call)?;
        let mut views = Vec::new();
        for toolset in self.store.list_toolsets(caller.sees_only()).await? {
            if caller.toolset.as_ref().is_none_or(|own| *own == toolset.id) {
                views.push(view::of(&self.store, toolset).await?);
            }
        }
        Ok(views)
    }

    /// One of them.
    ///
    /// # Errors
    /// [`ToolsetError`].
    pub async fn get(&self, caller: &Caller, name: &str) -> Result<ToolsetView, ToolsetError> {
        needs(caller, Scope::Call)?;
        let toolset = self.find(caller, name).await?;
        Ok(view::of(&self.store, toolset).await?)
    }

    /// Makes a toolset of the caller's.
    ///
    /// # Errors
    /// [`ToolsetError`].
    pub async fn create(&self, caller: &Caller, name: &str, draft: ToolsetDraft) -> Result<ToolsetView, ToolsetError> {
        may_change(caller)?;
        check_toolset_name(name)?;
        let write = self.write(&caller.principal, draft, None).await?;
        let entry = deed(caller, "toolset.create", name, &write);
        let made = self.store.create_toolset((&caller.principal, name), &write, &entry).await;
        let toolset = made.map_err(|error| match error {
            StoreError::NameTaken { .. } => ToolsetError::Taken(name.to_owned()),
            other => other.into(),
        })?;
        Ok(view::of(&self.store, toolset).await?)
    }

    /// Changes what the draft names, if `revision` (where one is given) still is the toolset's.
    ///
    /// # Errors
    /// [`ToolsetError`].
    pub async fn update(
        &self,
        caller: &Caller,
        (name, revision): (&str, Option<i64>),
        draft: ToolsetDraft,
    ) -> Result<ToolsetView, ToolsetError> {
        may_change(caller)?;
        let before = self.find(caller, name).await?;
        let expected = revision.unwrap_or(before.revision);
        let write = self.write(&before.owner.clone(), draft, Some(&before)).await?;
        let entry = deed(caller, "toolset.update", name, &write);
        let toolset = self.store.update_toolset((&before.id, expected), &write, &entry).await?;
        Ok(view::of(&self.store, toolset).await?)
    }

    /// Deletes a toolset; what was inside stays.
    ///
    /// # Errors
    /// [`ToolsetError`].
    pub async fn delete(&self, caller: &Caller, name: &str, revision: Option<i64>) -> Result<(), ToolsetError> {
        may_change(caller)?;
        let toolset = self.find(caller, name).await?;
        let entry = AuditEntry { detail: json!({}), ..deed(caller, "toolset.delete", name, &ToolsetWrite::default()) };
        Ok(self.store.delete_toolset((&toolset.id, revision), &entry).await?)
    }

    /// The caller within this toolset of its own: nobody gets wider by that. `None` where there is no such toolset for
    /// it.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn within(&self, caller: &Caller, name: &str) -> Result<Option<Caller>, StoreError> {
        let toolset = self.store.get_toolset_by_name(name).await?;
        let toolset = toolset.filter(|toolset| toolset.owner == caller.principal);
        let toolset = toolset.filter(|toolset| caller.toolset.as_ref().is_none_or(|own| *own == toolset.id));
        Ok(toolset.map(|toolset| Caller { toolset: Some(toolset.id), ..caller.clone() }))
    }

    async fn find(&self, caller: &Caller, name: &str) -> Result<Toolset, ToolsetError> {
        let toolset = self.store.get_toolset_by_name(name).await?.filter(|toolset| caller.sees(&toolset.owner));
        let toolset = toolset.filter(|toolset| caller.toolset.as_ref().is_none_or(|own| *own == toolset.id));
        toolset.ok_or_else(|| ToolsetError::Unknown(name.to_owned()))
    }

    async fn write(
        &self,
        owner: &PrincipalId,
        draft: ToolsetDraft,
        before: Option<&Toolset>,
    ) -> Result<ToolsetWrite, ToolsetError> {
        let kept = before.map(|before| before.settings.clone()).unwrap_or_default();
        let settings = ToolsetSettings {
            description: text("description", draft.description, kept.description)?,
            instructions: text("instructions", draft.instructions, kept.instructions)?,
            tags: draft.tags.map_or(Ok(kept.tags), tags)?,
            everything: draft.everything.unwrap_or(kept.everything),
            search: draft.search.unwrap_or(kept.search),
            portable: draft.portable.unwrap_or(kept.portable),
        };
        let inside = match before {
            Some(before) => self.store.toolset_members(&before.id).await?,
            None => Vec::new(),
        };
        let by_hand = |tools: bool| {
            let kept = inside.iter().filter(move |member| member.by_hand && (member.kind == "tool") == tools);
            kept.map(|member| member.id.clone()).collect::<Vec<String>>()
        };
        let mut members = match draft.tools {
            Some(names) => self.tools(owner, &names).await?,
            None => by_hand(true),
        };
        members.extend(match draft.content {
            Some(named) => self.content(owner, &named).await?,
            None => by_hand(false),
        });
        if members.len() > MEMBERS {
            return Err(ToolsetError::Wrong(format!("`tools`: at most {MEMBERS} are inside by hand; use a tag")));
        }
        Ok(ToolsetWrite { settings, members })
    }

    async fn tools(&self, owner: &PrincipalId, names: &[String]) -> Result<Vec<String>, ToolsetError> {
        let mut ids = Vec::with_capacity(names.len());
        for name in names {
            let tool = self.store.get_tool_by_name(name).await?.filter(|tool| tool.owner == *owner);
            let tool = tool.ok_or_else(|| ToolsetError::Wrong(format!("`tools`: there is no tool `{name}`")))?;
            ids.push(tool.id.0);
        }
        Ok(ids)
    }

    async fn content(&self, owner: &PrincipalId, named: &[NamedContent]) -> Result<Vec<String>, ToolsetError> {
        let mut ids = Vec::with_capacity(named.len());
        for NamedContent { kind, name } in named {
            let item = self.store.get_content(*kind, name).await?.filter(|item| item.owner == *owner);
            let missing = || ToolsetError::Wrong(format!("`content`: there is no {} `{name}`", kind.as_str()));
            ids.push(item.ok_or_else(missing)?.id.0);
        }
        Ok(ids)
    }
}

/// The tags that would put something into another toolset than the one that this caller acts within, and that it did not
/// carry before.
///
/// # Errors
/// [`StoreError`].
pub async fn foreign_tag(
    store: &Store,
    (owner, within): (&PrincipalId, &ToolsetId),
    tags: &[String],
    kept: &[String],
) -> Result<Option<String>, StoreError> {
    let toolsets = store.list_toolsets(Some(owner)).await?;
    let has = |tags: &[String], tag: &str| tags.iter().any(|other| other.eq_ignore_ascii_case(tag));
    let foreign = |tag: &&String| {
        let others = toolsets.iter().filter(|toolset| toolset.id != *within);
        !has(kept, tag) && others.into_iter().any(|toolset| has(&toolset.settings.tags, tag))
    };
    Ok(tags.iter().find(foreign).cloned())
}

fn needs(caller: &Caller, scope: Scope) -> Result<(), ToolsetError> {
    if caller.scopes.has(scope) || caller.scopes.has(Scope::Admin) {
        return Ok(());
    }
    Err(ToolsetError::Forbidden(scope.as_str()))
}

fn may_change(caller: &Caller) -> Result<(), ToolsetError> {
    needs(caller, Scope::Author)?;
    if caller.toolset.is_some() { Err(ToolsetError::Limited) } else { Ok(()) }
}

fn text(field: &str, given: Option<String>, kept: String) -> Result<String, ToolsetError> {
    let Some(given) = given else { return Ok(kept) };
    let given = clean_text(&given);
    if given.len() > TEXT_BYTES {
        return Err(ToolsetError::Wrong(format!("`{field}`: it is longer than {TEXT_BYTES} bytes")));
    }
    Ok(given)
}

fn tags(given: Vec<String>) -> Result<Vec<String>, ToolsetError> {
    let bad = |tag: &&String| tag.is_empty() || tag.chars().count() > 64 || clean_text(tag) != **tag;
    if let Some(bad) = given.iter().find(bad) {
        return Err(ToolsetError::Wrong(format!("`tags`: {bad:?} is no tag; one has 1 to 64 visible characters")));
    }
    if given.len() > TAGS {
        return Err(ToolsetError::Wrong(format!("`tags`: at most {TAGS} are allowed")));
    }
    Ok(given)
}

fn deed(caller: &Caller, action: &str, name: &str, write: &ToolsetWrite) -> AuditEntry {
    let ToolsetSettings { tags, everything, search, portable, .. } = &write.settings;
    AuditEntry {
        principal: Some(caller.principal.clone()),
        token: caller.token_id.clone(),
        source: caller.source.clone(),
        action: action.to_owned(),
        subject: name.to_owned(),
        detail: json!({"tags": tags, "everything": everything, "search": search, "portable": portable,
            "members": write.members}),
        outcome: "ok".to_owned(),
        ..AuditEntry::default()
    }
}
