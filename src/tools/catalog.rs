//! What each caller sees: the list and the entries behind it, cached for at most 5 seconds and cleared by every change.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde_json::{Map, Value, json};
use tokio::sync::broadcast;
use tokio_util::sync::CancellationToken;

use super::arguments::Checks;
use super::builtin::Builtin;
use super::domain::{Change, ListedTool, ToolList};
use super::schema::{self, SchemaError};
use super::toolsets::portable;
use crate::model::{Caller, Holder, Mode, Tool, ToolDefinition, ToolId, Toolset, ToolsetSettings, VersionNumber};
use crate::store::{Store, StoreError};

/// The cache's last resort: how stale a list may be when no news came.
const LIST_LIFETIME: Duration = Duration::from_secs(5);
/// How often another process's writes are looked for.
const WATCH_INTERVAL: Duration = Duration::from_millis(300);

/// A saved tool with the version that serves.
#[derive(Clone, Debug)]
pub struct Entry {
    /// The tool.
    pub tool: Tool,
    /// The number of the serving version.
    pub number: VersionNumber,
    /// What that version says.
    pub definition: Arc<ToolDefinition>,
}

/// What one caller sees, as of one generation.
#[derive(Debug)]
pub struct Seen {
    /// The list, built-ins first.
    pub list: Arc<ToolList>,
    /// The saved tools by name.
    pub entries: HashMap<String, Entry>,
    /// The toolset that the caller acts within.
    pub toolset: Option<Toolset>,
}

/// The built-ins that a `search` toolset lists.
const SEARCH: [Builtin; 2] = [Builtin::ListTools, Builtin::CallTool];

type Key = (u64, Holder, bool);

/// The cached catalogue of this process.
#[derive(Clone, Debug)]
pub struct Catalog {
    store: Store,
    generation: Arc<AtomicU64>,
    seen: moka::future::Cache<Key, Arc<Seen>>,
    checks: moka::future::Cache<(ToolId, VersionNumber), Arc<Checks>>,
    changes: broadcast::Sender<Change>,
}

impl Catalog {
    /// A catalogue over this store.
    ///
    /// # Errors
    /// [`StoreError`] when the generation can't be read.
    pub async fn open(store: Store) -> Result<Self, StoreError> {
        let generation = store.catalog_generation().await?;
        Ok(Self {
            store,
            generation: Arc::new(AtomicU64::new(generation)),
            seen: moka::future::Cache::builder().max_capacity(1_000).time_to_live(LIST_LIFETIME).build(),
            checks: moka::future::Cache::builder().max_capacity(10_000).build(),
            changes: broadcast::channel(64).0,
        })
    }

    /// What this caller sees. A load in flight when a change comes is kept under the generation before it, where
    /// nobody looks any more.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn seen(&self, caller: &Caller) -> Result<Arc<Seen>, Arc<StoreError>> {
        let generation = self.generation.load(Ordering::SeqCst);
        let author = caller.scopes.has(crate::model::Scope::Author);
        let key = (generation, caller.holder(), author);
        self.seen.try_get_with(key, self.load(generation, caller)).await
    }

    async fn load(&self, generation: u64, caller: &Caller) -> Result<Arc<Seen>, StoreError> {
        let within = caller.toolset.as_ref();
        let visible = self.store.visible_tools(&caller.principal, within).await?;
        let toolset = match within {
            Some(id) => self.store.get_toolset(id).await?,
            None => None,
        };
        let is = |setting: fn(&ToolsetSettings) -> bool| toolset.as_ref().is_some_and(|it| setting(&it.settings));
        let (search, plain) = (is(|settings| settings.search), is(|settings| settings.portable));
        let builtins = Builtin::ALL.into_iter().filter(|builtin| caller.scopes.has(builtin.scope()));
        let jobs = visible.iter().any(|(_, version)| version.definition.mode == Mode::Async);
        let builtins = builtins.filter(|builtin| jobs || *builtin != Builtin::JobResult);
        let builtins = builtins.filter(|builtin| !search || SEARCH.contains(builtin));
        let mut tools: Vec<ListedTool> = builtins.map(Builtin::listed).collect();
        let mut entries = HashMap::with_capacity(visible.len());
        for (tool, version) in visible {
            if !search {
                tools.push(listed(&tool, &version.definition));
            }
            let entry = Entry { tool, number: version.number, definition: Arc::new(version.definition) };
            entries.insert(entry.tool.name.as_str().to_owned(), entry);
        }
        let author = caller.scopes.has(crate::model::Scope::Author);
        if plain {
            tools = tokio::task::spawn_blocking(move || tools.into_iter().map(simplified).collect())
                .await
                .expect("writing schemas out does not panic");
        }
        let within = within.map_or("", |toolset| toolset.0.as_str());
        let visible = format!("{}/{author}/{within}", caller.principal.0);
        Ok(Arc::new(Seen { list: Arc::new(ToolList { generation, visible, tools }), entries, toolset }))
    }

    /// The compiled schemas of a version.
    ///
    /// # Errors
    /// [`SchemaError`]: only when the database was changed by hand, since saving checks them.
    pub async fn checks(
        &self,
        tool: &ToolId,
        number: VersionNumber,
        definition: &ToolDefinition,
    ) -> Result<Arc<Checks>, Arc<SchemaError>> {
        let (input, output) = (definition.input_schema.clone(), definition.output_schema.clone());
        self.checks.try_get_with((tool.clone(), number), compile(input, output)).await
    }

    /// Drops what was cached before this generation, then tells everybody.
    pub fn advance(&self, generation: u64) {
        if self.generation.fetch_max(generation, Ordering::SeqCst) < generation {
            // Nobody listening is no error.
            let _ = self.changes.send(Change { generation });
        }
    }

    /// Reads the generation that a write of this process has just raised, and advances to it.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn refresh(&self) -> Result<(), StoreError> {
        self.advance(self.store.catalog_generation().await?);
        Ok(())
    }

    /// News of change.
    pub fn changes(&self) -> broadcast::Receiver<Change> {
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
                Err(error) => tracing::warn!(%error, "Looking for other processes' changes failed; trying again"),
            }
        }
    }
}

/// Compiles a version's schemas off the async threads.
///
/// # Errors
/// [`SchemaError`].
pub async fn compile(input: Value, output: Option<Value>) -> Result<Arc<Checks>, SchemaError> {
    let task = tokio::task::spawn_blocking(move || {
        let compiled = schema::compile("input_schema", &input)?;
        let output = output.map(|schema| schema::compile("output_schema", &schema)).transpose()?;
        Ok(Arc::new(Checks { input_schema: input, input: compiled, output }))
    });
    task.await.unwrap_or_else(|error| {
        tracing::error!(%error, "Compiling a schema failed");
        let problem = "compiling it failed".to_owned();
        Err(SchemaError::At { which: "input_schema", pointer: String::new(), problem })
    })
}

/// The entry with its schemas in their plainest form.
fn simplified(tool: ListedTool) -> ListedTool {
    ListedTool {
        input_schema: portable(&tool.input_schema),
        // Structured content of another kind is served without a promise.
        output_schema: tool.output_schema.filter(|schema| schema["type"] == "object").map(|schema| portable(&schema)),
        ..tool
    }
}

/// The entry of `tools/list` for a saved tool.
pub fn listed(tool: &Tool, definition: &ToolDefinition) -> ListedTool {
    let mut meta = definition.meta.clone().unwrap_or_default();
    if !definition.tags.is_empty() {
        meta.insert("omniforge/tags".into(), json!(definition.tags));
    }
    ListedTool {
        name: tool.name.as_str().to_owned(),
        title: definition.title.clone(),
        description: definition.description.clone(),
        input_schema: definition.input_schema.clone(),
        output_schema: definition.output_schema.clone().filter(|_| definition.lists_output()),
        annotations: hints(definition),
        icons: definition.icons.clone(),
        meta: (!meta.is_empty()).then_some(meta),
    }
}

/// All four hints, explicit: the author's, else derived from the grants.
fn hints(definition: &ToolDefinition) -> Map<String, Value> {
    let grants = &definition.grants;
    let reach = !(grants.network.is_empty() && grants.secrets.is_empty() && grants.calls.is_empty());
    let mut hints = definition.annotations.clone();
    for (key, derived) in [
        ("readOnlyHint", !reach),
        ("destructiveHint", reach),
        ("idempotentHint", false),
        ("openWorldHint", !grants.network.is_empty() || !grants.calls.is_empty()),
    ] {
        hints.entry(key).or_insert(Value::Bool(derived));
    }
    hints
}
