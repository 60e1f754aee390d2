//! The environment of a version: its lock, waiting for it, and what its state is called.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::json;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::{Live, Tools, authoring};
use crate::model::{EnvironmentLock, Language, RunEvent, Tool, ToolDefinition, ToolVersion};
use crate::runner::{EnvironmentState, EnvironmentUse, check_requires_python, parse_requirements};
use crate::store::{AuditEntry, Serving, StoreError};
use crate::trust::ApprovalError;

/// How often a call that waits says so.
const HEARTBEAT: Duration = Duration::from_secs(5);
/// How long a save waits for its version to serve.
const SAVE_WAIT: Duration = Duration::from_secs(20);
/// What the progress of waiting grows by: so little that what the script reports of itself is more.
const STEP: f64 = 1e-6;

/// Where what is said of an installation goes.
type Tell<'a> = &'a (dyn Fn(RunEvent) + Send + Sync);

impl Tools {
    /// The environment of a run: waits until it is ready, and says how far it is meanwhile. It stays as long as the second
    /// value lives. One that failed answers at once, and is tried again for the next call.
    ///
    /// # Errors
    /// The installer's own words.
    pub(super) async fn environment(
        &self,
        lock: &EnvironmentLock,
        live: &Live,
    ) -> Result<(PathBuf, EnvironmentUse), String> {
        if let EnvironmentState::Failed(text) = self.environments.state(lock) {
            if !self.environments.available() {
                return Err(text);
            }
            self.prepare(lock);
            return Err(format!("{text}\nIt is being tried again: call again in a moment."));
        }
        self.wait_for(lock, &|event| live.note(event)).await
    }

    async fn wait_for(&self, lock: &EnvironmentLock, tell: Tell<'_>) -> Result<(PathBuf, EnvironmentUse), String> {
        let (send, mut told) = watch::channel(String::new());
        let held = self.environments.hold(lock, move |words| drop(send.send_replace(words.to_owned())));
        let mut held = std::pin::pin!(held);
        let mut waiting = Waiting::new(tell);
        let mut beat = tokio::time::interval_at(waiting.since + HEARTBEAT, HEARTBEAT);
        loop {
            tokio::select! {
                held = &mut held => return held.map_err(|error| error.to_string()),
                Ok(()) = told.changed() => waiting.say(told.borrow_and_update().clone()),
                _ = beat.tick() => waiting.go_on(),
            }
        }
    }

    /// Locks what a definition requires: as the latest version has it where that requires the same, else as the index has
    /// it today.
    ///
    /// # Errors
    /// What is wrong with which field, or the resolver's own words.
    pub(super) async fn lock(
        &self,
        definition: &ToolDefinition,
        latest: Option<&ToolDefinition>,
    ) -> Result<Option<EnvironmentLock>, String> {
        let parsed = parse_requirements(&authoring::requirements(definition));
        let requirements = parsed.map_err(|error| format!("`dependencies`: {error}"))?;
        if let Some(wanted) = &definition.requires_python {
            self.check_python(definition.language, wanted)?;
        }
        if requirements.is_empty() {
            return Ok(None);
        }
        if definition.language != Language::Python {
            let language = definition.language.as_str();
            return Err(format!("`dependencies`: those of {language} tools can't be installed yet; leave them out"));
        }
        if let Some(lock) = latest.and_then(|latest| self.kept_lock(definition, latest)) {
            return Ok(Some(lock));
        }
        let lock = self.environments.lock(&requirements, definition.requires_python.as_deref()).await;
        lock.map(Some).map_err(|error| format!("[install] {error}\nNothing was saved."))
    }

    /// The lock of the latest version, where this definition requires the same of the same interpreter.
    fn kept_lock(&self, definition: &ToolDefinition, latest: &ToolDefinition) -> Option<EnvironmentLock> {
        let required = |definition: &ToolDefinition| {
            let requirements = parse_requirements(&authoring::requirements(definition)).ok()?;
            let requirements: BTreeSet<String> = requirements.iter().map(ToString::to_string).collect();
            Some((definition.language, definition.requires_python.clone(), requirements))
        };
        let lock = latest.lock.as_ref().filter(|lock| self.environments.is_current(lock))?;
        (required(definition)? == required(latest)?).then(|| lock.clone())
    }

    fn check_python(&self, language: Language, wanted: &str) -> Result<(), String> {
        let version = self.runner.runtime(language).map(|runtime| runtime.version.as_str()).unwrap_or_default();
        match check_requires_python(wanted, version) {
            Ok(true) => Ok(()),
            Ok(false) => Err(format!("`requires-python` wants {wanted}; this server has Python {version}")),
            Err(error) => Err(format!("`requires-python`: {error}")),
        }
    }

    /// Starts building an environment in the background; what goes wrong is said by its state and by the next call.
    pub(super) fn prepare(&self, lock: &EnvironmentLock) {
        let (tools, lock) = (self.clone(), lock.clone());
        self.lifecycle.tasks.spawn(async move { tools.build(&lock).await });
    }

    /// Builds a version's environment in the background. If the version is to serve once it is there, it then does.
    pub(super) fn install(&self, version: &ToolVersion) -> JoinHandle<()> {
        let (tools, tool, number) = (self.clone(), version.tool.clone(), version.number);
        let lock = version.definition.lock.clone();
        self.lifecycle.tasks.spawn(async move {
            let built = match &lock {
                Some(lock) => tools.build(lock).await,
                None => true,
            };
            if !built {
                return;
            }
            match tools.store.serve_installed(&tool, number).await {
                Ok(false) => {}
                Ok(true) => {
                    let name = tools.store.get_tool(&tool).await.ok().flatten().map(|tool| tool.name.to_string());
                    let entry = AuditEntry {
                        action: "tool.serve".to_owned(),
                        subject: name.unwrap_or(tool.0),
                        detail: json!({"version": number, "once": "installed"}),
                        outcome: "ok".to_owned(),
                        ..AuditEntry::default()
                    };
                    tools.record(&entry).await;
                    if let Err(error) = tools.catalog.refresh().await {
                        tracing::warn!(%error, "Reading the catalogue's generation failed; lists are late");
                    }
                }
                Err(error) => {
                    tracing::error!(%error, "A version whose environment is ready could not be made to serve");
                }
            }
        })
    }

    /// When a version that waits for nobody may serve: while one serves, it goes on until the new one's environment is there.
    pub(super) fn serving_if_approved(&self, definition: &ToolDefinition, tool: Option<&Tool>) -> Serving {
        let is_missing = |lock| self.environments.state(lock) != EnvironmentState::Ready;
        if tool.is_some_and(|tool| tool.serving_version.is_some()) && definition.lock.as_ref().is_some_and(is_missing) {
            Serving::OnceInstalled
        } else {
            Serving::Now
        }
    }

    /// Starts installing what a saved version needs. Where an older version serves until that is done, and no person is
    /// waited for, waits a while for it. The tool as it is then.
    ///
    /// # Errors
    /// [`StoreError`].
    pub(super) async fn installed(
        &self,
        tool: Tool,
        (version, waits): (&ToolVersion, bool),
        events: &mpsc::Sender<RunEvent>,
    ) -> Result<Tool, StoreError> {
        let Some(lock) = &version.definition.lock else { return Ok(tool) };
        let installing = self.install(version);
        let older_serves = tool.serving_version.is_some_and(|number| number != version.number);
        if !older_serves || waits {
            return Ok(tool);
        }
        let served = async {
            // Its state says what went wrong.
            // A full channel loses the note, never the save.
            let _ = self.wait_for(lock, &|event| drop(events.try_send(event))).await;
            let _ = installing.await;
        };
        // It goes on in the background.
        let _ = tokio::time::timeout(SAVE_WAIT, served).await;
        Ok(self.store.get_tool(&tool.id).await?.unwrap_or(tool))
    }

    /// Goes on with what no process installs any more: versions that are to serve once their environments are there. What
    /// failed in this process waits for the next save.
    ///
    /// # Errors
    /// [`ApprovalError`].
    pub async fn resume_installing(&self) -> Result<(), ApprovalError> {
        for version in self.store.installing_versions().await? {
            let state = version.definition.lock.as_ref().map(|lock| self.environments.state(lock));
            let failed = matches!(state, Some(EnvironmentState::Failed(_)));
            if !failed && self.waits(&version).await?.is_empty() {
                self.install(&version);
            }
        }
        Ok(())
    }

    /// Builds an environment unless the server closes; says whether it is there.
    async fn build(&self, lock: &EnvironmentLock) -> bool {
        let built = tokio::select! {
            () = self.lifecycle.closing.cancelled() => return false,
            built = self.environments.ready(lock) => built,
        };
        if let Err(error) = &built {
            tracing::warn!(environment = %lock.hash, %error, "The environment {} could not be built", lock.hash);
        }
        built.is_ok()
    }

    /// `ready`, `installing` or `failed: …`.
    pub(super) fn environment_status(&self, lock: &EnvironmentLock) -> String {
        match self.environments.state(lock) {
            EnvironmentState::Ready => "ready".to_owned(),
            EnvironmentState::Building | EnvironmentState::Missing => "installing".to_owned(),
            EnvironmentState::Failed(text) => format!("failed: {text}"),
        }
    }
}

/// Tells a caller that waits what is being done.
struct Waiting<'a> {
    tell: Tell<'a>,
    since: Instant,
    steps: u32,
    words: String,
}

impl<'a> Waiting<'a> {
    fn new(tell: Tell<'a>) -> Self {
        Self { tell, since: Instant::now(), steps: 0, words: String::new() }
    }

    fn say(&mut self, words: String) {
        self.report(words.clone());
        self.words = words;
    }

    fn go_on(&mut self) {
        if !self.words.is_empty() {
            self.report(format!("{} ({} s)", self.words, self.since.elapsed().as_secs()));
        }
    }

    fn report(&mut self, message: String) {
        let progress = f64::from(self.steps) * STEP;
        self.steps += 1;
        (self.tell)(RunEvent::Progress { progress, total: None, message: Some(message) });
    }
}
