//! Saving at a page: the save knows which version it started from, and says when another came first.

use super::{DeskError, may_author};
use crate::model::{Caller, Tool, ToolDefinition, ToolVersion, VersionNumber};
use crate::store::{AuditEntry, Store};
use crate::tools::Tools;
use crate::tools::authoring::{self, Draft};
use crate::tools::builtin::Failed;
use crate::tools::builtin::save::Understood;
use crate::tools::builtin::written::deed;

/// What code would be understood as.
#[derive(Clone, Debug)]
pub struct Checked {
    /// The definition, without a lock.
    pub definition: ToolDefinition,
    /// What its author should know.
    pub warnings: Vec<String>,
}

/// What was saved.
#[derive(Clone, Debug)]
pub struct Saved {
    /// The tool.
    pub tool: Tool,
    /// Its newest version.
    pub version: ToolVersion,
    /// What its author should know.
    pub warnings: Vec<String>,
}

impl Tools {
    /// Looks at what would be saved, without saving or installing anything. `name` may be one that is still to be chosen;
    /// what the draft leaves out is kept of the newest version of the tool of that name, where the caller has one.
    ///
    /// # Errors
    /// [`DeskError::Fault`], [`DeskError::Refused`].
    pub async fn check_draft(&self, caller: &Caller, name: &str, draft: Draft) -> Result<Checked, DeskError> {
        may_author(caller)?;
        let tool = self.tool_of(caller, name).await?;
        let before = match tool {
            Some(tool) => Some(self.version(&tool.id, tool.latest_version).await?.definition),
            None => None,
        };
        let Understood { definition, mut warnings } = self.look_at(name, draft, before.as_ref()).await?;
        warnings.extend(authoring::schema_warnings(&definition.input_schema));
        if let Some(before) = &before {
            warnings.extend(authoring::breaking_changes(&before.input_schema, &definition.input_schema));
        }
        Ok(Checked { definition, warnings })
    }

    /// Makes a tool.
    ///
    /// # Errors
    /// [`DeskError`].
    pub async fn make_tool(&self, caller: &Caller, name: &str, draft: Draft) -> Result<Saved, DeskError> {
        may_author(caller)?;
        let name = authoring::tool_name(name).map_err(Failed::from)?;
        if self.store.get_tool_by_name(name.as_str()).await?.is_some() {
            let text = format!("`name`: there is a tool `{name}` already; choose another name, or open that one");
            return Err(DeskError::Refused(text));
        }
        let saved = self.create(caller, &name, draft).await?;
        self.finished(caller, saved).await
    }

    /// Saves a version of a tool, if `seen` still is its newest one.
    ///
    /// # Errors
    /// [`DeskError::Overtaken`] when it isn't; [`DeskError`].
    pub async fn save_tool(
        &self,
        caller: &Caller,
        name: &str,
        seen: VersionNumber,
        draft: Draft,
    ) -> Result<Saved, DeskError> {
        may_author(caller)?;
        let tool = self.owned_tool(caller, name).await?;
        let _turn = self.turns.take(&tool.id).await;
        // Again: it may have changed while this one waited for its turn.
        let tool = self.store.get_tool(&tool.id).await?.ok_or_else(|| gone(name))?;
        if tool.latest_version != seen {
            return Err(DeskError::Overtaken { seen, latest: tool.latest_version });
        }
        let saved = self.change_newest(caller, tool, draft, "update").await?;
        self.finished(caller, saved).await
    }

    /// Returns to a version: its content becomes the newest one.
    ///
    /// # Errors
    /// [`DeskError`].
    pub async fn return_to(&self, caller: &Caller, name: &str, number: VersionNumber) -> Result<Saved, DeskError> {
        may_author(caller)?;
        let tool = self.owned_tool(caller, name).await?;
        let _turn = self.turns.take(&tool.id).await;
        let tool = self.store.get_tool(&tool.id).await?.ok_or_else(|| gone(name))?;
        let saved = self.roll_back(caller, tool, number).await?;
        self.finished(caller, saved).await
    }

    /// Switches a tool on or off.
    ///
    /// # Errors
    /// [`DeskError`].
    pub async fn switch_tool(&self, caller: &Caller, name: &str, enabled: bool) -> Result<Tool, DeskError> {
        may_author(caller)?;
        let tool = self.owned_tool(caller, name).await?;
        Ok(self.switch(caller, tool, enabled).await?)
    }

    /// Deletes a tool with all its versions; its runs stay.
    ///
    /// # Errors
    /// [`DeskError`].
    pub async fn delete_tool(&self, caller: &Caller, name: &str) -> Result<(), DeskError> {
        may_author(caller)?;
        let tool = self.owned_tool(caller, name).await?;
        let latest = self.store.get_version(&tool.id, tool.latest_version).await?;
        let detail = serde_json::json!({"latest_version": tool.latest_version});
        let entry = deed(caller, "tool.delete", name, detail);
        let entry = AuditEntry { before: latest.map(|version| version.fingerprint), ..entry };
        let id = tool.id.clone();
        let write = move |store: Store| async move { store.delete_tool(&id).await };
        self.write(entry, write, |entry, deleted| deleted.then_some(entry)).await?;
        Ok(())
    }

    async fn finished(&self, caller: &Caller, saved: crate::tools::builtin::save::Saved) -> Result<Saved, DeskError> {
        let crate::tools::builtin::save::Saved { tool, version, mut warnings, .. } = saved;
        warnings.extend(authoring::schema_warnings(&version.definition.input_schema));
        let others = self.store.folded_names(&caller.principal).await?;
        warnings.extend(authoring::fold_warning(&tool.name, &others));
        if version.definition.lock.is_some() {
            // In the background: the page shows how far it is.
            drop(self.install(&version));
        }
        Ok(Saved { tool, version, warnings })
    }

    async fn owned_tool(&self, caller: &Caller, name: &str) -> Result<Tool, DeskError> {
        let tool = self.tool_of(caller, name).await?;
        tool.ok_or_else(|| gone(name))
    }
}

fn gone(name: &str) -> DeskError {
    DeskError::NotFound { what: "tool", name: name.to_owned() }
}
