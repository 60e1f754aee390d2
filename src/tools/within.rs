//! What acting within a toolset means for lists, saves and instructions; and the changes of toolsets.

use super::builtin::{Builtin, Failed};
use super::toolsets::{ToolsetDraft, ToolsetError, ToolsetView, Toolsets, cap_warnings, foreign_tag};
use super::{CallError, Tools, internal};
use crate::model::{Caller, Tool};
use crate::store::StoreError;
use crate::trust::Refusal;

/// What every client is told that connects.
const INSTRUCTIONS: &str = "OmniForge turns scripts into tools. To make one, read omniforge_instructions, then save it with \
     omniforge_create_tool; it can be called at once, by its own name or through omniforge_call_tool.";

/// What a client of a `search` toolset is told.
const SEARCH_INSTRUCTIONS: &str = "This server has many tools and lists two. Find one with omniforge_list_tools by words of what it is to do (the answer \
     holds its input schema), then call it with omniforge_call_tool, which calls the built-in tools too, such as \
     omniforge_instructions and omniforge_create_tool where you may make tools.";

impl Tools {
    /// A tool that this caller sees: its own, or anybody's for an administrator; inside the toolset that it acts within.
    pub(super) async fn tool_of(&self, caller: &Caller, name: &str) -> Result<Option<Tool>, StoreError> {
        let tool = self.store.get_tool_by_name(name).await?;
        let Some(tool) = tool.filter(|tool| caller.sees(&tool.owner)) else { return Ok(None) };
        Ok(self.is_inside(caller, &tool).await?.then_some(tool))
    }

    /// Whether a tool is inside the toolset that its caller acts within.
    pub(super) async fn is_inside(&self, caller: &Caller, tool: &Tool) -> Result<bool, StoreError> {
        match &caller.toolset {
            None => Ok(true),
            Some(toolset) => self.store.toolset_holds_tool(toolset, &tool.id).await,
        }
    }

    /// The toolsets, to look at.
    pub fn toolsets(&self) -> Toolsets {
        Toolsets::new(self.store.clone())
    }

    /// Makes a toolset.
    ///
    /// # Errors
    /// [`ToolsetError`].
    pub async fn create_toolset(
        &self,
        caller: &Caller,
        name: &str,
        draft: ToolsetDraft,
    ) -> Result<ToolsetView, ToolsetError> {
        let (toolsets, by, of) = (self.toolsets(), caller.clone(), name.to_owned());
        self.change_toolset(caller, name, async move { toolsets.create(&by, &of, draft).await }).await
    }

    /// Changes a toolset, if `revision` (where one is given) still is its.
    ///
    /// # Errors
    /// [`ToolsetError`].
    pub async fn update_toolset(
        &self,
        caller: &Caller,
        (name, revision): (&str, Option<i64>),
        draft: ToolsetDraft,
    ) -> Result<ToolsetView, ToolsetError> {
        let (toolsets, by, of) = (self.toolsets(), caller.clone(), name.to_owned());
        self.change_toolset(caller, name, async move { toolsets.update(&by, (&of, revision), draft).await }).await
    }

    /// Deletes a toolset, if `revision` (where one is given) still is its.
    ///
    /// # Errors
    /// [`ToolsetError`].
    pub async fn delete_toolset(&self, caller: &Caller, name: &str, revision: Option<i64>) -> Result<(), ToolsetError> {
        let (toolsets, by, of) = (self.toolsets(), caller.clone(), name.to_owned());
        self.change_toolset(caller, name, async move { toolsets.delete(&by, &of, revision).await }).await
    }

    /// Changes in a task that a dropped request can't stop halfway, then clears the caches and tells everybody. A refusal
    /// for want of a right is noted.
    async fn change_toolset<T: Send + 'static>(
        &self,
        caller: &Caller,
        name: &str,
        change: impl Future<Output = Result<T, ToolsetError>> + Send + 'static,
    ) -> Result<T, ToolsetError> {
        let tools = self.clone();
        let task = self.lifecycle.tasks.spawn(async move {
            let changed = change.await?;
            tools.catalog.refresh().await?;
            tools.contents.refresh().await?;
            Ok::<T, ToolsetError>(changed)
        });
        let done = task.await.expect("changing a toolset does not panic");
        if let Err(refused @ (ToolsetError::Forbidden(_) | ToolsetError::Limited)) = &done {
            self.refusals.note(Refusal::of(caller, "toolset.refused", name, refused.to_string()));
        }
        done
    }

    pub(super) async fn instructions_for(&self, caller: &Caller) -> Result<String, CallError> {
        let Some(id) = &caller.toolset else { return Ok(INSTRUCTIONS.to_owned()) };
        let toolset = self.store.get_toolset(id).await;
        let toolset = toolset.map_err(|error| internal("a toolset can't be read", &error))?;
        Ok(match toolset {
            Some(toolset) if !toolset.settings.instructions.is_empty() => toolset.settings.instructions,
            Some(toolset) if toolset.settings.search => SEARCH_INSTRUCTIONS.to_owned(),
            _ => INSTRUCTIONS.to_owned(),
        })
    }

    pub(super) async fn caller_within(&self, caller: &Caller, name: &str) -> Result<Option<Caller>, CallError> {
        let within = self.toolsets().within(caller, name).await;
        let within = within.map_err(|error| internal("a toolset can't be read", &error))?;
        if within.is_none() && caller.toolset.is_some() {
            let reason = "the token is limited to another toolset";
            self.refusals.note(Refusal::of(caller, "toolset.refused", name, reason));
        }
        Ok(within)
    }

    /// Refuses tags with which a caller within a toolset would put something into another one.
    pub(super) async fn check_tags(&self, caller: &Caller, tags: &[String], kept: &[String]) -> Result<(), Failed> {
        let Some(within) = &caller.toolset else { return Ok(()) };
        match foreign_tag(&self.store, (&caller.principal, within), tags, kept).await? {
            None => Ok(()),
            Some(tag) => Err(Failed::Refused(format!(
                "`tags`: `{tag}` would put it into another toolset, which is not for a caller within this one"
            ))),
        }
    }

    /// The warning where more tools are listed to this caller than some clients take.
    pub(super) async fn cap_warnings(&self, caller: &Caller) -> Vec<String> {
        let built_in = Builtin::ALL.into_iter().filter(|builtin| caller.scopes.has(builtin.scope())).count();
        match self.store.count_visible_tools(&caller.principal, caller.toolset.as_ref()).await {
            Ok(saved) => cap_warnings(built_in + usize::try_from(saved).unwrap_or(usize::MAX), false),
            Err(error) => {
                tracing::warn!(%error, "The listed tools can't be counted");
                Vec::new()
            }
        }
    }

    /// Whether this caller's toolset lists two tools alone.
    pub(super) async fn searches(&self, caller: &Caller) -> Result<bool, Failed> {
        let Some(id) = &caller.toolset else { return Ok(false) };
        let toolset = self.store.get_toolset(id).await.map_err(|error: StoreError| Failed::from(error))?;
        Ok(toolset.is_some_and(|toolset| toolset.settings.search))
    }
}
