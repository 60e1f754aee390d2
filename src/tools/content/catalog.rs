//! What each caller sees of the saved content: cached like the tools, and cleared by every change.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde_json::json;
use tokio::sync::{Mutex, broadcast};
use tokio_util::sync::CancellationToken;

use super::domain::{ContentChange, ContentList, ListedPrompt, ListedResource, ListedSkill, Subject};
use super::outputs;
use super::template::UriTemplate;
use crate::model::{
    About, Caller, ContentDefinition, ContentItem, ContentVersion, Holder, ResourceDefinition, SkillDefinition,
    skill_uri,
};
use crate::store::{Store, StoreError};

/// The cache's last resort: how stale a list may be when no news came.
const LIST_LIFETIME: Duration = Duration::from_secs(5);
/// How often another process's writes are looked for.
const WATCH_INTERVAL: Duration = Duration::from_millis(300);

/// A content item with the version that is served.
#[derive(Clone, Debug)]
pub struct Entry {
    /// The item.
    pub item: ContentItem,
    /// What it says.
    pub version: Arc<ContentVersion>,
}

/// What one caller sees, as of one generation.
#[derive(Debug, Default)]
pub struct Seen {
    /// The lists.
    pub list: Arc<ContentList>,
    /// Resources by URI.
    pub resources: HashMap<String, Entry>,
    /// Templates, those that say most of their URI first.
    pub templates: Vec<(UriTemplate, Entry)>,
    /// Prompts by name.
    pub prompts: HashMap<String, Entry>,
    /// Skills by name.
    pub skills: HashMap<String, Entry>,
}

/// The cached content of this process.
#[derive(Clone, Debug)]
pub struct ContentCatalog {
    store: Store,
    generation: Arc<AtomicU64>,
    seen: moka::future::Cache<(u64, Holder), Arc<Seen>>,
    changes: broadcast::Sender<ContentChange>,
    /// One at a time reads and tells the news, so that each is told once.
    telling: Arc<Mutex<()>>,
}

impl ContentCatalog {
    /// A catalogue over this store.
    ///
    /// # Errors
    /// [`StoreError`] when the generation can't be read.
    pub async fn open(store: Store) -> Result<Self, StoreError> {
        let generation = store.content_generation().await?;
        Ok(Self {
            store,
            generation: Arc::new(AtomicU64::new(generation)),
            seen: moka::future::Cache::builder().max_capacity(1_000).time_to_live(LIST_LIFETIME).build(),
            changes: broadcast::channel(1_024).0,
            telling: Arc::default(),
        })
    }

    /// What this caller sees.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn seen(&self, caller: &Caller) -> Result<Arc<Seen>, Arc<StoreError>> {
        let key = (self.generation.load(Ordering::SeqCst), caller.holder());
        let load = async {
            let all = self.store.visible_contents(&caller.principal, caller.toolset.as_ref()).await?;
            Ok(Arc::new(collect(all)))
        };
        self.seen.try_get_with(key, load).await
    }

    /// Reads what has changed since it was asked last, by this process or another, drops what was cached before it, and
    /// tells everybody.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn refresh(&self) -> Result<(), StoreError> {
        let _one = self.telling.lock().await;
        let known = self.generation.load(Ordering::SeqCst);
        let news = self.store.content_news_after(known).await?;
        let Some(newest) = news.last().map(|news| news.id) else { return Ok(()) };
        self.generation.fetch_max(newest, Ordering::SeqCst);
        // Nobody listening is no error.
        if news.first().is_some_and(|first| first.id > known + 1) {
            for subject in Subject::ALL {
                let _ = self.changes.send(ContentChange::List { owner: None, subject });
            }
        }
        for news in news {
            if let Some(subject) = news.subject {
                let owner = Some(news.owner.clone());
                let _ = self.changes.send(ContentChange::List { owner, subject });
            }
            if let Some(uri) = news.uri {
                let _ = self.changes.send(ContentChange::Updated { owner: news.owner, uri });
            }
        }
        Ok(())
    }

    /// News of change.
    pub fn changes(&self) -> broadcast::Receiver<ContentChange> {
        self.changes.subscribe()
    }

    /// Looks for writes of other processes until the server closes.
    pub async fn watch(self, closing: CancellationToken) {
        let mut interval = tokio::time::interval(WATCH_INTERVAL);
        interval.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut known = None;
        loop {
            tokio::select! {
                () = closing.cancelled() => return,
                _ = interval.tick() => {}
            }
            let seen = match self.store.data_version().await {
                Ok(version) if known == Some(version) => continue,
                Ok(version) => self.refresh().await.map(|()| version),
                Err(error) => Err(error),
            };
            match seen {
                Ok(version) => known = Some(version),
                Err(error) => tracing::warn!(%error, "Looking for other processes' content failed; trying again"),
            }
        }
    }
}

fn collect(all: Vec<(ContentItem, ContentVersion)>) -> Seen {
    let mut seen = Seen::default();
    let mut list = ContentList { templates: outputs::listed(), ..ContentList::default() };
    for (item, version) in all {
        let entry = Entry { version: Arc::new(version), item };
        match &entry.version.clone().definition {
            ContentDefinition::Resource(resource) if entry.item.uri().is_some() => {
                list.resources.push(listed_resource(&entry, resource));
                seen.resources.insert(entry.item.name.clone(), entry);
            }
            // One that can't be read was checked when it was saved: the database was changed by hand.
            ContentDefinition::Resource(resource) => match UriTemplate::parse(&entry.item.name) {
                Ok(template) => {
                    list.templates.push(listed_resource(&entry, resource));
                    seen.templates.push((template, entry));
                }
                Err(error) => tracing::error!(%error, "The template `{}` can't be read", entry.item.name),
            },
            ContentDefinition::Prompt(prompt) => {
                let about = &prompt.about;
                list.prompts.push(ListedPrompt {
                    name: entry.item.name.clone(),
                    title: about.title.clone(),
                    description: about.description.clone().unwrap_or_else(|| entry.item.name.clone()),
                    arguments: prompt.arguments.clone(),
                    icons: about.icons.clone(),
                    meta: meta(about),
                });
                seen.prompts.insert(entry.item.name.clone(), entry);
            }
            ContentDefinition::Skill(skill) => {
                list.resources.push(skill_resource(&entry, skill));
                list.skills.push(ListedSkill {
                    name: entry.item.name.clone(),
                    frontmatter: skill.frontmatter.clone(),
                    files: entry.version.files.clone(),
                });
                seen.skills.insert(entry.item.name.clone(), entry);
            }
        }
    }
    list.resources.sort_by(|a, b| a.uri.cmp(&b.uri));
    list.templates.sort_by(|a, b| a.uri.cmp(&b.uri));
    seen.templates.sort_by_key(|(template, _)| std::cmp::Reverse(template.literal_length()));
    seen.list = Arc::new(list);
    seen
}

fn listed_resource(entry: &Entry, resource: &ResourceDefinition) -> ListedResource {
    let about = &resource.about;
    ListedResource {
        uri: entry.item.name.clone(),
        name: resource.name.clone(),
        title: about.title.clone(),
        description: about.description.clone(),
        mime_type: resource.mime_type.clone(),
        size: entry.item.uri().and_then(|_| entry.version.files.first()).map(|file| file.size),
        annotations: resource.annotations.clone(),
        icons: about.icons.clone(),
        meta: meta(about),
    }
}

/// The `SKILL.md` of a skill among the resources.
fn skill_resource(entry: &Entry, skill: &SkillDefinition) -> ListedResource {
    let file = entry.version.files.iter().find(|file| file.path == "SKILL.md");
    ListedResource {
        uri: skill_uri(&entry.item.name, "SKILL.md"),
        name: entry.item.name.clone(),
        description: skill.about.description.clone(),
        mime_type: file.and_then(|file| file.mime_type.clone()),
        size: file.map(|file| file.size),
        ..ListedResource::default()
    }
}

/// `_meta` of a listed entry: the author's, and the tags.
fn meta(about: &About) -> Option<serde_json::Map<String, serde_json::Value>> {
    let mut meta = about.meta.clone().unwrap_or_default();
    if !about.tags.is_empty() {
        meta.insert("omniforge/tags".into(), json!(about.tags));
    }
    (!meta.is_empty()).then_some(meta)
}
