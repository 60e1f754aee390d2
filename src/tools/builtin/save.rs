//! Built-ins that save versions: create, update, roll back.

use std::fmt::Write as _;
use std::future::Future;

use serde::Deserialize;
use serde_json::json;

use super::written::{deed, made};
use super::{BuiltinCall, Failed, Handled, parse};
use crate::model::{
    CallReply, Caller, Fault, Language, Tool, ToolDefinition, ToolId, ToolName, ToolVersion, VersionNumber,
};
use crate::runner::EnvironmentState;
use crate::store::{AuditEntry, NewTool, NewVersion, Serving, Store, StoreError};
use crate::tools::authoring::{self, Assembled, Draft, Parts};
use crate::tools::{Tools, catalog, internal, schema};
use crate::trust;

/// Where the reply's `_meta` tells programs which version stands now, and whether it is an old one.
pub const SAVED: &str = "omniforge/saved";

/// How often a save is tried that others overtake.
const ATTEMPTS: usize = 8;

#[derive(Deserialize)]
struct Create {
    name: String,
    #[serde(default)]
    replace: bool,
    #[serde(flatten)]
    draft: Draft,
}

#[derive(Deserialize)]
struct Update {
    name: String,
    #[serde(flatten)]
    draft: Draft,
}

#[derive(Deserialize)]
struct Rollback {
    name: String,
    version: VersionNumber,
}

/// A definition that may be saved, and what its author should know.
pub(in crate::tools) struct Understood {
    pub(in crate::tools) definition: ToolDefinition,
    pub(in crate::tools) warnings: Vec<String>,
}

/// What is saved now, and what the reply says of it.
pub(in crate::tools) struct Saved {
    pub(in crate::tools) tool: Tool,
    pub(in crate::tools) version: ToolVersion,
    verb: &'static str,
    /// The latest version said the same: there is no new one.
    unchanged: bool,
    pub(in crate::tools) warnings: Vec<String>,
    /// What stood before.
    before: Option<ToolDefinition>,
}

impl Tools {
    pub(super) async fn builtin_create(&self, call: BuiltinCall) -> Handled {
        let Create { name, replace, draft } = parse(&call.arguments)?;
        let name = authoring::tool_name(&name)?;
        for _ in 0..ATTEMPTS {
            let done = match self.store.get_tool_by_name(name.as_str()).await? {
                Some(existing) if !replace || existing.owner != call.caller.principal => {
                    let inside = self.is_inside(&call.caller, &existing).await?;
                    return Err(taken(&name, inside && existing.owner == call.caller.principal));
                }
                Some(existing) if !self.is_inside(&call.caller, &existing).await? => return Err(taken(&name, false)),
                Some(existing) => self.change(&call.caller, &existing.id, &draft, "replace").await,
                None => self.create(&call.caller, &name, draft.clone()).await,
            };
            match done {
                Err(Failed::Overtaken(StoreError::NameTaken { .. } | StoreError::NoSuchTool)) => {}
                done => return self.saved(&call, done?).await,
            }
        }
        Err(busy(name.as_str()))
    }

    pub(in crate::tools) async fn create(
        &self,
        caller: &Caller,
        name: &ToolName,
        draft: Draft,
    ) -> Result<Saved, Failed> {
        if draft.code.is_none() {
            return Err(Failed::Refused("`code`: it is missing".into()));
        }
        let enabled = draft.enabled.unwrap_or(true);
        let Understood { definition, warnings } = self.understand(name.as_str(), draft, (None, None)).await?;
        self.check_tags(caller, &definition.tags, &[]).await?;
        let version = self.new_version(caller, definition, "create".into(), None).await?;
        let (name, owner, toolset) = (name.clone(), caller.principal.clone(), caller.toolset.clone());
        let new = NewTool { name: name.clone(), owner, toolset, enabled, version };
        let entry = deed(caller, "tool.create", name.as_str(), json!({}));
        let write = move |store: Store| async move { store.create_tool(&new).await };
        let (tool, version) = self.write(entry, write, |entry, (_, version)| made(entry, version)).await?;
        Ok(Saved { tool, version, verb: "Created", unchanged: false, warnings, before: None })
    }

    pub(super) async fn builtin_update(&self, call: BuiltinCall) -> Handled {
        let Update { name, draft } = parse(&call.arguments)?;
        let tool = self.owned(&call.caller, &name).await?;
        let work = |tool: Tool| async {
            call.expects(Some((tool.latest_version, tool.enabled)))?;
            self.change_newest(&call.caller, tool, draft.clone(), "update").await
        };
        let saved = self.in_turn(&tool.id, work).await?;
        self.saved(&call, saved).await
    }

    async fn change(&self, caller: &Caller, tool: &ToolId, draft: &Draft, note: &'static str) -> Result<Saved, Failed> {
        self.in_turn(tool, |tool| self.change_newest(caller, tool, draft.clone(), note)).await
    }

    /// Works on a tool as it stands when its turn has come, and again when another process was faster: what a draft
    /// doesn't name is then kept of what that process saved.
    async fn in_turn<F>(&self, id: &ToolId, work: impl Fn(Tool) -> F) -> Result<Saved, Failed>
    where
        F: Future<Output = Result<Saved, Failed>>,
    {
        let _turn = self.turns.take(id).await;
        for _ in 0..ATTEMPTS {
            let tool = self.store.get_tool(id).await?.ok_or(StoreError::NoSuchTool)?;
            let name = tool.name.clone();
            match work(tool).await {
                Err(Failed::Overtaken(StoreError::VersionConflict { .. })) => {
                    tracing::debug!(tool.name = %name, "Another process saved `{name}` meanwhile; trying again");
                }
                done => return done,
            }
        }
        Err(busy("the tool"))
    }

    /// Saves the next version of a tool, unless the latest one says the same, and its switch where the draft names one.
    pub(in crate::tools) async fn change_newest(
        &self,
        caller: &Caller,
        tool: Tool,
        draft: Draft,
        note: &'static str,
    ) -> Result<Saved, Failed> {
        let latest = self.version(&tool.id, tool.latest_version).await?;
        let before = latest.definition.clone();
        let enabled = draft.enabled;
        // A replacement forgets what stood before; an update keeps what it doesn't name.
        let kept = (note == "update").then_some(&before);
        let Understood { definition, warnings } =
            self.understand(tool.name.as_str(), draft, (kept, Some(&before))).await?;
        self.check_tags(caller, &definition.tags, &before.tags).await?;
        let version = self.new_version(caller, definition, note.into(), Some(&tool)).await?;
        let id = tool.id.clone();
        let unchanged = text_of(&before)? == text_of(&version.definition)?;
        let (mut tool, version) = if unchanged {
            (self.serve_unchanged(caller, tool, version.serving).await?, latest)
        } else {
            let entry = deed(caller, format!("tool.{note}"), tool.name.as_str(), json!({}));
            let entry = AuditEntry { before: Some(latest.fingerprint), ..entry };
            let write = move |store: Store| async move { store.add_version(&id, latest.number, &version).await };
            self.write(entry, write, |entry, (_, version)| made(entry, version)).await?
        };
        if let Some(enabled) = enabled.filter(|enabled| *enabled != tool.enabled) {
            tool = self.switch(caller, tool, enabled).await?;
        }
        let verb = if unchanged { "Unchanged:" } else { "Saved" };
        Ok(Saved { tool, version, verb, unchanged, warnings, before: Some(before) })
    }

    /// Lets the latest version serve where a new one like it would: nothing may wait for approval any more, or an
    /// environment that failed be tried again.
    async fn serve_unchanged(&self, caller: &Caller, tool: Tool, serving: Serving) -> Result<Tool, Failed> {
        let (id, latest) = (tool.id.clone(), tool.latest_version);
        if tool.serving_version == Some(latest) {
            return Ok(tool);
        }
        match serving {
            Serving::NotYet => {}
            Serving::Now => {
                let entry = deed(caller, "tool.serve", tool.name.as_str(), json!({"version": latest}));
                let write = move |store: Store| async move { store.set_serving(&id, Some(latest)).await };
                return self.write(entry, write, |entry, _| Some(entry)).await;
            }
            Serving::OnceInstalled => self.store.serve_once_installed(&id, latest).await?,
        }
        Ok(tool)
    }

    pub(super) async fn builtin_rollback(&self, call: BuiltinCall) -> Handled {
        let Rollback { name, version } = parse(&call.arguments)?;
        let tool = self.owned(&call.caller, &name).await?;
        let work = |tool: Tool| async {
            call.expects(Some((tool.latest_version, tool.enabled)))?;
            self.roll_back(&call.caller, tool, version).await
        };
        let saved = self.in_turn(&tool.id, work).await?;
        self.saved(&call, saved).await
    }

    pub(in crate::tools) async fn roll_back(
        &self,
        caller: &Caller,
        tool: Tool,
        number: VersionNumber,
    ) -> Result<Saved, Failed> {
        let (target, latest) = (self.version(&tool.id, number).await?, tool.latest_version);
        let before = self.version(&tool.id, latest).await?;
        self.check_tags(caller, &target.definition.tags, &before.definition.tags).await?;
        let version = self.new_version(caller, target.definition, format!("rollback to {number}"), Some(&tool)).await?;
        let entry = deed(caller, "tool.rollback", tool.name.as_str(), json!({}));
        let entry = AuditEntry { before: Some(before.fingerprint), ..entry };
        let write = move |store: Store| async move { store.add_version(&tool.id, latest, &version).await };
        let (tool, version) = self.write(entry, write, |entry, (_, version)| made(entry, version)).await?;
        let (warnings, before) = (Vec::new(), Some(before.definition));
        Ok(Saved { tool, version, verb: "Rolled back", unchanged: false, warnings, before })
    }

    /// What this draft would be as a version: the code inspected, the definition put together, its schemas checked, its
    /// dependencies locked. `latest` is the version whose lock is kept where the requirements are still the same.
    pub(in crate::tools) async fn understand(
        &self,
        name: &str,
        draft: Draft,
        (before, latest): (Option<&ToolDefinition>, Option<&ToolDefinition>),
    ) -> Result<Understood, Failed> {
        let Understood { mut definition, warnings } = self.look_at(name, draft, before).await?;
        definition.lock = self.lock(&definition, latest).await.map_err(Failed::Refused)?;
        Ok(Understood { definition, warnings })
    }

    /// The same without its dependencies: what takes no installer.
    pub(in crate::tools) async fn look_at(
        &self,
        name: &str,
        draft: Draft,
        before: Option<&ToolDefinition>,
    ) -> Result<Understood, Failed> {
        let draft = draft.checked(&self.options.ceilings)?;
        let language = draft.language()?.or(before.map(|before| before.language)).unwrap_or(Language::Python);
        if self.runner.runtime(language).is_none() {
            let installed: Vec<&str> = self.runner.runtimes().iter().map(|runtime| runtime.language.as_str()).collect();
            let problem =
                format!("no runtime for {} is installed here; installed: {}", language.as_str(), installed.join(", "));
            return Err(Failed::Refused(format!("`language`: {problem}")));
        }
        let code = draft.code.as_deref().or(before.map(|before| before.code.as_str())).unwrap_or_default();
        let inspected = self.runner.inspect(language, code).await;
        let inspected = inspected.map_err(|error| Failed::Broken(internal("code could not be inspected", &error)))?;
        let inspection = inspected.map_err(Failed::Fault)?;
        let parts = Parts { name, draft: &draft, before, code, language, inspection: &inspection };
        let Assembled { definition, warnings } = parts.assemble();
        authoring::check_mode(&definition)?;
        let compiled = catalog::compile(definition.input_schema.clone(), definition.output_schema.clone()).await;
        compiled.map_err(|error| Failed::Refused(error.to_string()))?;
        schema::check_headers(&definition.input_schema).map_err(|error| Failed::Refused(error.to_string()))?;
        Ok(Understood { definition, warnings })
    }

    async fn new_version(
        &self,
        caller: &Caller,
        definition: ToolDefinition,
        note: String,
        tool: Option<&Tool>,
    ) -> Result<NewVersion, Failed> {
        let fingerprint = trust::fingerprint(&definition)
            .map_err(|error| Failed::Broken(internal("a fingerprint could not be taken", &error)))?;
        let serving = self.serving(caller, &definition, tool).await?;
        Ok(NewVersion { definition, fingerprint, created_by: caller.principal.clone(), note, serving })
    }

    /// When a new version may serve.
    async fn serving(
        &self,
        caller: &Caller,
        definition: &ToolDefinition,
        tool: Option<&Tool>,
    ) -> Result<Serving, Failed> {
        let id = tool.map(|tool| &tool.id);
        let mut waits = !self.approvals.tool_waits(id, definition).await?.is_empty();
        if let Some(id) = id.filter(|_| waits) {
            waits = !self.approvals.return_to(caller, id, definition).await?;
        }
        Ok(if waits { Serving::NotYet } else { self.serving_if_approved(definition, tool) })
    }

    /// Starts the environment, and says what was understood and what comes next.
    async fn saved(&self, call: &BuiltinCall, saved: Saved) -> Handled {
        let Saved { tool, version, verb, unchanged, mut warnings, before } = saved;
        let definition = &version.definition;
        warnings.extend(authoring::schema_warnings(&definition.input_schema));
        if call.caller.toolset.is_none() {
            let others = self.store.folded_names(&call.caller.principal).await?;
            warnings.extend(authoring::fold_warning(&tool.name, &others));
        }
        warnings.extend(self.cap_warnings(&call.caller).await);
        if let Some(before) = &before {
            warnings.extend(authoring::breaking_changes(&before.input_schema, &definition.input_schema));
        }
        let mut text = format!("{verb} `{}`, version {}.\n", tool.name, version.number);
        let _ = writeln!(text, "Understood: {} in {} style.", definition.language.as_str(), definition.style.as_str());
        let how = if definition.inferred.input_schema { "read from the code" } else { "as given" };
        let _ = writeln!(text, "Input schema ({how}): {}", definition.input_schema);
        let requirements = authoring::requirements(definition);
        if !requirements.is_empty() {
            let _ = writeln!(text, "Dependencies: {}", requirements.join(", "));
        }
        let waits = self.waits(&version).await?;
        let tool = self.installed(tool, (&version, !waits.is_empty()), &call.lines.events).await?;
        self.next_steps(&mut text, &tool, (&version, &waits));
        for warning in warnings {
            let _ = writeln!(text, "Warning: {warning}");
        }
        let fact = json!({"version": version.number, "unchanged": unchanged});
        let meta = [(SAVED.to_owned(), fact)].into_iter().collect();
        Ok(CallReply { meta: Some(meta), ..CallReply::text(text.trim_end()) })
    }

    fn next_steps(&self, text: &mut String, tool: &Tool, (version, waits): (&ToolVersion, &[String])) {
        if !waits.is_empty() {
            let serving =
                tool.serving_version.map_or("no version serves".to_owned(), |n| format!("version {n} serves"));
            let (asks, place) = (waits.join("; "), self.where_to_approve(&tool.id.0));
            let _ = writeln!(text, "Needs approval by a person: {asks}. {place} Until then {serving}.");
            if !self.approvals.policy().stops_all_code() {
                let _ = writeln!(text, "omniforge_test_tool runs it meanwhile, without its reach.");
            }
        }
        if let Some(lock) = &version.definition.lock {
            let _ = writeln!(text, "Environment: {}.", self.environment_status(lock));
            if let Some(older) = tool.serving_version.filter(|older| *older != version.number && waits.is_empty()) {
                let _ = match self.environments.state(lock) {
                    EnvironmentState::Failed(_) => {
                        writeln!(text, "Version {older} serves on; save this again to have it tried again.")
                    }
                    _ => writeln!(text, "Version {older} serves until it is ready."),
                };
            }
        }
        if tool.enabled && tool.serving_version.is_some() {
            let _ = writeln!(
                text,
                "Call it as `{}`, or through omniforge_call_tool where your tool list is fixed.",
                tool.name
            );
        } else if !tool.enabled {
            let _ = writeln!(text, "It is switched off: omniforge_set_enabled switches it on.");
        }
    }
}

/// Everything that a definition says, in its order: clients see the order of a schema's properties.
fn text_of(definition: &ToolDefinition) -> Result<String, Failed> {
    serde_json::to_string(definition)
        .map_err(|error| Failed::Broken(internal("a definition can't be written as JSON", &error)))
}

fn busy(what: &str) -> Failed {
    Failed::Refused(format!("{what} is changed by others all the time; nothing was saved, try again in a moment"))
}

fn taken(name: &ToolName, mine: bool) -> Failed {
    Failed::Faulty(
        Fault::Taken,
        if mine {
            format!(
                "a tool `{name}` exists already; give `replace: true` to overwrite it, or use omniforge_update_tool"
            )
        } else {
            format!("the name `{name}` is taken by a tool of somebody else, or outside your toolset; choose another")
        },
    )
}
