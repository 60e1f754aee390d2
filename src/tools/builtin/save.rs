//! Built-ins that save versions: create, update, roll back.

use std::fmt::Write as _;
use std::future::Future;

use serde::Deserialize;
use serde_json::{Value, json};

use super::{BuiltinCall, Failed, Handled, parse};
use crate::model::{CallReply, Caller, Language, Tool, ToolDefinition, ToolName, ToolVersion, VersionNumber};
use crate::runner::{Requirement, parse_requirements};
use crate::store::{AuditEntry, NewTool, NewVersion, Store, StoreError};
use crate::tools::authoring::{self, Assembled, Draft, Parts};
use crate::tools::{Tools, catalog, internal};
use crate::trust;

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
pub(super) struct Understood {
    pub(super) definition: ToolDefinition,
    pub(super) warnings: Vec<String>,
}

/// What is saved, under which name, and how the reply begins.
struct Saved {
    tool: Tool,
    version: ToolVersion,
    verb: &'static str,
}

impl Tools {
    pub(super) async fn builtin_create(&self, call: BuiltinCall) -> Handled {
        let Create { name, replace, draft } = parse(call.arguments)?;
        let name = authoring::tool_name(&name)?;
        if let Some(existing) = self.store.get_tool_by_name(name.as_str()).await? {
            if !replace || existing.owner != call.caller.principal {
                return Err(taken(&name, existing.owner == call.caller.principal));
            }
            return self.change(&call.caller, existing, draft, "replace").await;
        }
        if draft.code.is_none() {
            return Err(Failed::Refused("`code`: it is missing".into()));
        }
        let enabled = draft.enabled.unwrap_or(true);
        let understood = self.understand(name.as_str(), draft, None).await?;
        let version = self.new_version(&call.caller, understood.definition, "create".into())?;
        let new = NewTool { name: name.clone(), owner: call.caller.principal.clone(), enabled, version };
        let (tool, version) = match self.write(move |store| async move { store.create_tool(&new).await }).await {
            Err(Failed::Refused(_)) => return Err(taken(&name, false)),
            other => other?,
        };
        self.saved(&call.caller, Saved { tool, version, verb: "Created" }, understood.warnings, None).await
    }

    pub(super) async fn builtin_update(&self, call: BuiltinCall) -> Handled {
        let Update { name, draft } = parse(call.arguments)?;
        let tool = self.owned(&call.caller, &name).await?;
        self.change(&call.caller, tool, draft, "update").await
    }

    /// Saves the next version of a tool, and its switch where the draft names one.
    async fn change(&self, caller: &Caller, tool: Tool, draft: Draft, note: &'static str) -> Handled {
        let latest = self.version(&tool.id, tool.latest_version).await?;
        let before = latest.definition.clone();
        let enabled = draft.enabled;
        // A replacement forgets what stood before; an update keeps what it doesn't name.
        let kept = (note == "update").then_some(&before);
        let understood = self.understand(tool.name.as_str(), draft, kept).await?;
        let version = self.new_version(caller, understood.definition, note.into())?;
        let id = tool.id.clone();
        let unchanged = kept == Some(&version.definition);
        let (mut tool, version) = if unchanged {
            (tool, latest)
        } else {
            self.write(move |store| async move { store.add_version(&id, latest.number, &version).await }).await?
        };
        if let Some(enabled) = enabled.filter(|enabled| *enabled != tool.enabled) {
            let id = tool.id.clone();
            tool = self.write(move |store| async move { store.set_enabled(&id, enabled).await }).await?;
        }
        let verb = if unchanged { "Nothing changed in" } else { "Saved" };
        self.saved(caller, Saved { tool, version, verb }, understood.warnings, Some(&before)).await
    }

    pub(super) async fn builtin_rollback(&self, call: BuiltinCall) -> Handled {
        let Rollback { name, version: number } = parse(call.arguments)?;
        let tool = self.owned(&call.caller, &name).await?;
        let (target, latest) = (self.version(&tool.id, number).await?, tool.latest_version);
        let before = self.version(&tool.id, latest).await?.definition;
        let version = self.new_version(&call.caller, target.definition, format!("rollback to {number}"))?;
        let id = tool.id;
        let (tool, version) =
            self.write(move |store| async move { store.add_version(&id, latest, &version).await }).await?;
        self.saved(&call.caller, Saved { tool, version, verb: "Rolled back" }, Vec::new(), Some(&before)).await
    }

    /// What this draft would be as a version: the code inspected, the definition put together, its schemas checked, its
    /// dependencies locked.
    pub(super) async fn understand(
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
        let inspection = inspected.map_err(|error| Failed::Refused(format!("`code`: {error}")))?;
        let parts = Parts { name, draft: &draft, before, code, language, inspection: &inspection };
        let Assembled { mut definition, warnings } = parts.assemble();
        authoring::check_mode(&definition)?;
        let compiled = catalog::compile(definition.input_schema.clone(), definition.output_schema.clone()).await;
        compiled.map_err(|error| Failed::Refused(error.to_string()))?;
        self.lock(&mut definition).await?;
        Ok(Understood { definition, warnings })
    }

    async fn lock(&self, definition: &mut ToolDefinition) -> Result<(), Failed> {
        let requirements = authoring::requirements(definition);
        let parsed: Vec<Requirement> =
            parse_requirements(&requirements).map_err(|error| Failed::Refused(format!("`dependencies`: {error}")))?;
        if let Some(wanted) = &definition.requires_python {
            self.check_python(definition.language, wanted)?;
        }
        if parsed.is_empty() {
            return Ok(());
        }
        if definition.language != Language::Python {
            let problem = format!("dependencies of {} tools can't be installed yet", definition.language.as_str());
            return Err(Failed::Refused(format!("`dependencies`: {problem}; leave them out")));
        }
        let Some(environments) = &self.environments else {
            return Err(Failed::Refused(
                "`dependencies`: no `uv` program was found on this server, so none can be installed".into(),
            ));
        };
        let lock = environments.lock(&parsed, definition.requires_python.as_deref()).await;
        definition.lock =
            Some(lock.map_err(|error| Failed::Refused(format!("[install] {error}\nNothing was saved.")))?);
        Ok(())
    }

    fn check_python(&self, language: Language, wanted: &str) -> Result<(), Failed> {
        let version = self.runner.runtime(language).map(|runtime| runtime.version.as_str()).unwrap_or_default();
        match crate::runner::check_requires_python(wanted, version) {
            Ok(true) => Ok(()),
            Ok(false) => {
                Err(Failed::Refused(format!("`requires-python` wants {wanted}; this server has Python {version}")))
            }
            Err(error) => Err(Failed::Refused(format!("`requires-python`: {error}"))),
        }
    }

    fn new_version(&self, caller: &Caller, definition: ToolDefinition, note: String) -> Result<NewVersion, Failed> {
        let fingerprint = trust::fingerprint(&definition)
            .map_err(|error| Failed::Broken(internal("a fingerprint could not be taken", &error)))?;
        let serve = self.policy.waits_for(&definition).is_empty();
        Ok(NewVersion { definition, fingerprint, created_by: caller.principal.clone(), note, serve })
    }

    /// Writes to the catalogue in a task that a dropped request can't stop halfway: commit, then clear the cache and
    /// tell everybody.
    pub(super) async fn write<T, F>(&self, write: impl FnOnce(Store) -> F + Send + 'static) -> Result<T, Failed>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, StoreError>> + Send + 'static,
    {
        let tools = self.clone();
        let task = self.lifecycle.tasks.spawn(async move {
            let written = write(tools.store.clone()).await?;
            tools.catalog.refresh().await?;
            Ok::<T, StoreError>(written)
        });
        let written = task.await.map_err(|error| Failed::Broken(internal("a write's task failed", &error)))?;
        Ok(written?)
    }

    /// Records a change that was made.
    pub(super) async fn audit(&self, caller: &Caller, action: &str, subject: &str, about: (Value, Option<&str>)) {
        let (detail, fingerprint) = about;
        let entry = AuditEntry {
            principal: Some(caller.principal.clone()),
            token: caller.token_id.clone(),
            action: action.to_owned(),
            subject: subject.to_owned(),
            detail,
            fingerprint: fingerprint.map(str::to_owned),
            outcome: "ok".to_owned(),
        };
        if let Err(error) = self.store.append_audit(&entry).await {
            tracing::error!(action, subject, %error, "The audit entry `{action}` of `{subject}` could not be written");
        }
    }

    /// Records the save, starts the environment, and says what was understood and what comes next.
    async fn saved(
        &self,
        caller: &Caller,
        saved: Saved,
        mut warnings: Vec<String>,
        before: Option<&ToolDefinition>,
    ) -> Handled {
        let Saved { tool, version, verb } = saved;
        let detail = json!({"version": version.number, "note": version.note});
        self.audit(caller, "tool.save", tool.name.as_str(), (detail, Some(&version.fingerprint))).await;
        let definition = &version.definition;
        warnings.extend(authoring::schema_warnings(&definition.input_schema));
        let others = self.store.folded_names(&caller.principal).await?;
        warnings.extend(authoring::fold_warning(&tool.name, &others));
        if let Some(before) = before {
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
        self.next_steps(&mut text, &tool, &version);
        for warning in warnings {
            let _ = writeln!(text, "Warning: {warning}");
        }
        Ok(CallReply::text(text.trim_end()))
    }

    fn next_steps(&self, text: &mut String, tool: &Tool, version: &ToolVersion) {
        let waits = self.policy.waits_for(&version.definition);
        if !waits.is_empty() {
            let serving =
                tool.serving_version.map_or("no version serves".to_owned(), |n| format!("version {n} serves"));
            let _ = writeln!(text, "Needs approval by a person: {}. Until then {serving}.", waits.join("; "));
        }
        if let Some(lock) = &version.definition.lock {
            self.prepare(lock);
            let _ = writeln!(text, "Environment: {}.", self.environment_status(lock));
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

fn taken(name: &ToolName, mine: bool) -> Failed {
    Failed::Refused(if mine {
        format!("a tool `{name}` exists already; give `replace: true` to overwrite it, or use omniforge_update_tool")
    } else {
        format!("the name `{name}` is taken by a tool of somebody else; choose another")
    })
}
