//! Built-ins that save, list and delete resources, prompts and skills.

mod look;
mod prompt;
mod resource;
mod schemas;
mod scripts;
mod skill;

use std::fmt::Write as _;

use serde::Deserialize;
use serde_json::json;

use super::written::{deed, made_content};
use super::{BuiltinCall, Failed, Handled, SAVED, missing, parse};
use crate::model::{
    About, CallReply, Caller, ContentDefinition, ContentFile, ContentItem, ContentKind, ContentVersion, Fault,
    VersionNumber,
};
use crate::store::{AuditEntry, NewContent, NewContentVersion, NewFile, Store};
use crate::tools::authoring::Draft;
use crate::tools::content::sha256;
use crate::tools::{Tools, internal};
use crate::trust;

pub(super) use schemas::{delete_content, list_content, save_prompt, save_resource, save_skill};

/// How the reply begins where nothing was new.
const UNCHANGED: &str = "Nothing changed in";

/// What one save asks for.
struct Wanted {
    name: String,
    definition: ContentDefinition,
    files: Vec<NewFile>,
    enabled: Option<bool>,
    /// What was understood, a line each.
    understood: Vec<String>,
    warnings: Vec<String>,
}

/// A save that brings no contents: it switches, or returns to a version.
#[derive(Deserialize)]
struct Change {
    enabled: Option<bool>,
    from_version: Option<VersionNumber>,
}

/// What was saved, and how the reply begins.
struct Saved {
    item: ContentItem,
    version: ContentVersion,
    verb: &'static str,
}

impl Tools {
    pub(super) async fn builtin_save_resource(&self, call: BuiltinCall) -> Handled {
        let change: Change = parse(&call.arguments)?;
        let draft: resource::ResourceDraft = parse(&call.arguments)?;
        if !draft.has_contents() {
            let name = draft.uri.clone();
            return self.change_content(&call, ContentKind::Resource, &name, change).await;
        }
        refuse_both(&change)?;
        let before = self.latest_content(&call.caller, ContentKind::Resource, &draft.uri).await?;
        let wanted = self.resource_from(draft, before.as_ref()).await?;
        self.save_content(&call, wanted).await
    }

    pub(super) async fn builtin_save_prompt(&self, call: BuiltinCall) -> Handled {
        let change: Change = parse(&call.arguments)?;
        let draft: prompt::PromptDraft = parse(&call.arguments)?;
        if !draft.has_contents() {
            let name = draft.name.clone();
            return self.change_content(&call, ContentKind::Prompt, &name, change).await;
        }
        refuse_both(&change)?;
        let before = self.latest_content(&call.caller, ContentKind::Prompt, &draft.name).await?;
        let wanted = self.prompt_from(draft, before.as_ref()).await?;
        self.save_content(&call, wanted).await
    }

    pub(super) async fn builtin_save_skill(&self, call: BuiltinCall) -> Handled {
        let change: Change = parse(&call.arguments)?;
        let mut draft: skill::SkillDraft = parse(&call.arguments)?;
        match (draft.markdown.take(), draft.name.clone()) {
            (Some(markdown), _) => {
                refuse_both(&change)?;
                let wanted = self.skill_from(draft, markdown)?;
                self.save_content(&call, wanted).await
            }
            (None, Some(name)) => self.change_content(&call, ContentKind::Skill, &name, change).await,
            (None, None) => Err(Failed::Refused(schemas::nothing_given(ContentKind::Skill).to_owned())),
        }
    }

    /// What stands now of the caller's own content of that name.
    async fn latest_content(
        &self,
        caller: &Caller,
        kind: ContentKind,
        name: &str,
    ) -> Result<Option<ContentDefinition>, Failed> {
        let item = self.store.get_content(kind, name).await?.filter(|item| item.owner == caller.principal);
        let Some(item) = item else { return Ok(None) };
        if !self.content_is_inside(caller, &item).await? {
            return Ok(None);
        }
        Ok(Some(self.content_version(&item, item.latest_version).await?.definition))
    }

    /// Saves content as a new item, or as the next version of one that is the caller's.
    async fn save_content(&self, call: &BuiltinCall, wanted: Wanted) -> Handled {
        let caller = &call.caller;
        let Wanted { name, definition, files, enabled, understood, warnings } = wanted;
        let kind = definition.kind();
        let existing = self.store.get_content(kind, &name).await?;
        if let Some(item) = &existing
            && (item.owner != caller.principal || !self.content_is_inside(caller, item).await?)
        {
            return Err(taken(kind, &name));
        }
        call.expects(existing.as_ref().map(|item| (item.latest_version, item.enabled)))?;
        let kept = match &existing {
            Some(item) => self.content_version(item, item.latest_version).await?.definition.about().tags.clone(),
            None => Vec::new(),
        };
        self.check_tags(caller, &definition.about().tags, &kept).await?;
        let note = if existing.is_some() { "update" } else { "create" };
        let about = (existing.as_ref(), note.to_owned());
        let version = self.new_content_version(caller, definition, files, about).await?;
        let mut saved = match existing {
            None => {
                let owner = caller.principal.clone();
                let new = NewContent {
                    name: name.clone(),
                    owner,
                    toolset: caller.toolset.clone(),
                    enabled: enabled.unwrap_or(true),
                    version,
                };
                let entry = deed(caller, format!("{}.create", kind.as_str()), &name, json!({}));
                let write = move |store: Store| async move { store.create_content(&new).await };
                match self.write_content(entry, write, |entry, (_, version)| made_content(entry, version)).await {
                    Err(Failed::Refused(_)) => return Err(taken(kind, &name)),
                    other => other.map(|(item, version)| Saved { item, version, verb: "Created" })?,
                }
            }
            Some(item) => self.next_version(caller, item, version, note).await?,
        };
        if let Some(enabled) = enabled.filter(|enabled| *enabled != saved.item.enabled) {
            saved.item = self.switch_content(caller, &saved.item, enabled).await?;
        }
        self.content_saved(saved, (understood, warnings)).await
    }

    async fn next_version(
        &self,
        caller: &Caller,
        item: ContentItem,
        version: NewContentVersion,
        verb: &str,
    ) -> Result<Saved, Failed> {
        let latest = self.content_version(&item, item.latest_version).await?;
        let files: Vec<&ContentFile> = version.files.iter().map(|new| &new.file).collect();
        if latest.definition == version.definition && latest.files.iter().eq(files) {
            return Ok(Saved { item, version: latest, verb: UNCHANGED });
        }
        let entry = deed(caller, format!("{}.{verb}", item.kind.as_str()), &item.name, json!({}));
        let entry = AuditEntry { before: Some(latest.fingerprint), ..entry };
        let (id, number) = (item.id, item.latest_version);
        let write = move |store: Store| async move { store.add_content_version(&id, number, &version).await };
        let written = self.write_content(entry, write, |entry, (_, version)| made_content(entry, version));
        written.await.map(|(item, version)| Saved { item, version, verb: "Saved" })
    }

    /// Switches existing content, or returns to one of its versions.
    async fn change_content(&self, call: &BuiltinCall, kind: ContentKind, name: &str, change: Change) -> Handled {
        if change.enabled.is_none() && change.from_version.is_none() {
            return Err(Failed::Refused(schemas::nothing_given(kind).to_owned()));
        }
        let item = self.owned_content(&call.caller, kind, name).await?;
        call.expects(Some((item.latest_version, item.enabled)))?;
        let version = self.content_version(&item, change.from_version.unwrap_or(item.latest_version)).await?;
        let mut saved = Saved { item, version, verb: "Switched" };
        if let Some(number) = change.from_version {
            let files = saved.version.files.into_iter().map(|file| NewFile { file, bytes: None }).collect();
            let note = format!("rollback to {number}");
            let version = self
                .new_content_version(&call.caller, saved.version.definition, files, (Some(&saved.item), note))
                .await?;
            saved = self.next_version(&call.caller, saved.item, version, "rollback").await?;
            if saved.verb == "Saved" {
                saved.verb = "Rolled back";
            }
        }
        if let Some(enabled) = change.enabled {
            saved.item = self.switch_content(&call.caller, &saved.item, enabled).await?;
        }
        self.content_saved(saved, (Vec::new(), Vec::new())).await
    }

    async fn switch_content(&self, caller: &Caller, item: &ContentItem, enabled: bool) -> Result<ContentItem, Failed> {
        let action = format!("{}.set_enabled", item.kind.as_str());
        let (id, entry) = (item.id.clone(), deed(caller, action, &item.name, json!({"enabled": enabled})));
        let write = move |store: Store| async move { store.set_content_enabled(&id, enabled).await };
        self.write_content(entry, write, |entry, _| Some(entry)).await
    }

    async fn new_content_version(
        &self,
        caller: &Caller,
        definition: ContentDefinition,
        files: Vec<NewFile>,
        (item, note): (Option<&ContentItem>, String),
    ) -> Result<NewContentVersion, Failed> {
        let named: Vec<&ContentFile> = files.iter().map(|new| &new.file).collect();
        let fingerprint = trust::content_fingerprint(&definition, &named)
            .map_err(|error| Failed::Broken(internal("a fingerprint could not be taken", &error)))?;
        let asks = definition.scripts().any(|script| !self.approvals.policy().waits_for(script).is_empty());
        let approved = match item.filter(|_| asks) {
            Some(item) => self.approvals.is_approved(&item.id.0, &fingerprint).await?,
            None => false,
        };
        let serve = !asks || approved;
        Ok(NewContentVersion { definition, files, fingerprint, created_by: caller.principal.clone(), note, serve })
    }

    /// The caller's own content of that name; anybody's for an administrator.
    async fn owned_content(&self, caller: &Caller, kind: ContentKind, name: &str) -> Result<ContentItem, Failed> {
        let gone = || {
            let kind = kind.as_str();
            missing(format!("there is no {kind} `{name}`; omniforge_list_content shows what there is"))
        };
        let item = self.store.get_content(kind, name).await?.filter(|item| caller.sees(&item.owner));
        let item = item.ok_or_else(gone)?;
        if self.content_is_inside(caller, &item).await? { Ok(item) } else { Err(gone()) }
    }

    async fn content_is_inside(&self, caller: &Caller, item: &ContentItem) -> Result<bool, Failed> {
        match &caller.toolset {
            None => Ok(true),
            Some(toolset) => Ok(self.store.toolset_holds_content(toolset, &item.id).await?),
        }
    }

    /// One version, or an error that says where those there are stand.
    async fn content_version(&self, item: &ContentItem, number: VersionNumber) -> Result<ContentVersion, Failed> {
        let found = self.store.get_content_version(&item.id, number).await?;
        found.ok_or_else(|| {
            let (kind, name) = (item.kind.as_str(), &item.name);
            missing(format!(
                "the {kind} `{name}` has no version {number}; omniforge_list_content with its name lists them"
            ))
        })
    }

    /// Starts the environments, and says what was understood and what comes next.
    async fn content_saved(&self, saved: Saved, (understood, warnings): (Vec<String>, Vec<String>)) -> Handled {
        let Saved { item, version, verb } = saved;
        let kind = item.kind.as_str();
        let mut text = format!("{verb} {kind} `{}`, version {}.\n", item.name, version.number);
        for line in understood {
            let _ = writeln!(text, "{line}");
        }
        for lock in version.definition.scripts().filter_map(|script| script.lock.as_ref()) {
            self.prepare(lock);
            let _ = writeln!(text, "Environment: {}.", self.environment_status(lock));
        }
        let waits = self.approvals.content_waits(&version).await?;
        if !waits.is_empty() {
            let serving = item.serving_version.map_or("no version is served".to_owned(), |n| format!("version {n} is"));
            let (asks, place) = (waits.join("; "), self.where_to_approve(&item.id.0));
            let _ = writeln!(text, "Needs approval by a person: {asks}. {place} Until then {serving}.");
        } else if item.enabled {
            let _ = writeln!(text, "{}", schemas::how_to_use(&item));
        } else {
            let _ = writeln!(text, "It is switched off: save with `enabled: true` and nothing else switches it on.");
        }
        for warning in warnings {
            let _ = writeln!(text, "Warning: {warning}");
        }
        let fact = json!({"version": version.number, "unchanged": verb == UNCHANGED});
        let meta = [(SAVED.to_owned(), fact)].into_iter().collect();
        Ok(CallReply { meta: Some(meta), ..CallReply::text(text.trim_end()) })
    }
}

fn taken(kind: ContentKind, name: &str) -> Failed {
    Failed::Faulty(
        Fault::Taken,
        format!("`{name}` is taken by a {} of somebody else, or outside your toolset; choose another", kind.as_str()),
    )
}

fn refuse_both(change: &Change) -> Result<(), Failed> {
    match change.from_version {
        None => Ok(()),
        Some(_) => Err(Failed::Refused("`from_version`: give it without new contents, or contents without it".into())),
    }
}

fn wrong<T>(field: &str, problem: impl std::fmt::Display) -> Result<T, Failed> {
    Err(Failed::Refused(format!("`{field}`: {problem}")))
}

/// What a checked draft says of its content.
fn about(draft: &Draft) -> About {
    let given = |text: &Option<Option<String>>| text.clone().flatten().filter(|text| !text.is_empty());
    About {
        title: given(&draft.title),
        description: given(&draft.description),
        icons: draft.icons.clone().unwrap_or_default(),
        tags: draft.tags.clone().unwrap_or_default(),
        meta: draft.meta.clone().flatten(),
    }
}

/// A file with what is to be known of it.
fn new_file(path: &str, mime_type: Option<String>, bytes: Vec<u8>) -> NewFile {
    let file = ContentFile { path: path.to_owned(), mime_type, size: bytes.len() as u64, digest: sha256(&bytes) };
    NewFile { file, bytes: Some(bytes) }
}
