//! What a person has to approve, as calls, saves and doors ask for it.

use super::domain::CallError;
use super::invoke::Invocation;
use super::{Tools, internal};
use crate::model::{Approval, Caller, ToolDefinition, ToolId, ToolVersion};
use crate::store::{Serving, StoreError};
use crate::trust::{ApprovalError, ApproveRequest, Refusal, Review, Reviewed, Waiting};

impl Tools {
    /// Why this may not run yet, if so, and where a person approves of it.
    pub(super) async fn unapproved(&self, invocation: &Invocation) -> Result<Option<String>, CallError> {
        let failed = |error: ApprovalError| internal("an approval can't be looked up", &error);
        let (waits, id) = match (&invocation.content, &invocation.version) {
            (Some(content), _) => {
                let waits = self.approvals.content_waits(&content.version).await.map_err(failed)?;
                (waits, Some(content.version.content.0.as_str()))
            }
            (None, version) => {
                let tool = version.as_ref().map(|(tool, _)| tool);
                let waits = self.approvals.tool_waits(tool, &invocation.definition).await.map_err(failed)?;
                (waits, tool.map(|tool| tool.0.as_str()))
            }
        };
        if waits.is_empty() {
            return Ok(None);
        }
        Ok(Some(match id {
            Some(id) => self.cannot_run(&invocation.name, &waits, id),
            None => {
                let waits = waits.join("; ");
                format!("this code can't run unapproved: {waits}. Save it, then a person can approve of it.")
            }
        }))
    }

    /// Why a tool of which no version serves yet may not run, and where a person approves of it. `None` where this caller
    /// sees no such tool, where it is off, or waits for nobody.
    pub(super) async fn waits_unserved(&self, caller: &Caller, name: &str) -> Result<Option<String>, CallError> {
        let failed = |error: StoreError| internal("a tool can't be looked up", &error);
        let tool = self.tool_of(caller, name).await.map_err(failed)?;
        let Some(tool) = tool.filter(|tool| tool.enabled) else { return Ok(None) };
        let version = self.store.get_version(&tool.id, tool.latest_version).await.map_err(failed)?;
        let Some(version) = version else { return Ok(None) };
        let waits = self.waits(&version).await;
        let waits = waits.map_err(|error| internal("an approval can't be looked up", &error))?;
        if waits.is_empty() {
            return Ok(None);
        }
        let refusal = self.cannot_run(name, &waits, &tool.id.0);
        self.refusals.note(Refusal::of(caller, "run.refused", name, refusal.clone()));
        Ok(Some(refusal))
    }

    fn cannot_run(&self, name: &str, waits: &[String], id: &str) -> String {
        let (waits, place) = (waits.join("; "), self.where_to_approve(id));
        format!("`{name}` can't run before a person approves of this: {waits}. {place}")
    }

    /// Where and how a person approves of what has this id.
    pub(super) fn where_to_approve(&self, id: &str) -> String {
        let command = format!("`omniforge approval approve {id}` on the server's machine");
        match &self.options.approvals_url {
            Some(url) => format!("They do so at {url}/{id}, or with {command}."),
            None => format!("They do so with {command}."),
        }
    }

    /// What a test may run of a version: all of it where it is approved or needs no approval, else what remains of it
    /// without its reach; and what it goes without.
    pub(super) async fn testable(
        &self,
        tool: Option<&ToolId>,
        definition: ToolDefinition,
    ) -> Result<(ToolDefinition, Vec<String>), CallError> {
        let waits = self.approvals.tool_waits(tool, &definition).await;
        let waits = waits.map_err(|error| internal("an approval can't be looked up", &error))?;
        let policy = self.approvals.policy();
        if waits.is_empty() || policy.stops_all_code() {
            return Ok((definition, Vec::new()));
        }
        Ok((policy.without_reach(definition), waits))
    }

    /// Whether the latest version of a tool waits for a person, and for what.
    pub(super) async fn waits(&self, version: &ToolVersion) -> Result<Vec<String>, ApprovalError> {
        self.approvals.tool_waits(Some(&version.tool), &version.definition).await
    }

    /// What waits for a person: for those who may approve.
    ///
    /// # Errors
    /// [`ApprovalError`].
    pub async fn waiting(&self, caller: &Caller) -> Result<Vec<Waiting>, ApprovalError> {
        may_look(caller)?;
        self.approvals.waiting().await
    }

    /// What a person should see before they approve of the newest version of something.
    ///
    /// # Errors
    /// [`ApprovalError`].
    pub async fn review(&self, caller: &Caller, wanted: &str) -> Result<Review, ApprovalError> {
        may_look(caller)?;
        self.approvals.review(&self.approvals.find(wanted).await?).await
    }

    /// Approves of the newest version of something, if it is the one that was shown; it serves from then on, or once its
    /// environment is there.
    ///
    /// # Errors
    /// [`ApprovalError`]; a refusal is recorded.
    pub async fn approve(
        &self,
        caller: &Caller,
        wanted: &str,
        request: ApproveRequest,
    ) -> Result<Approval, ApprovalError> {
        let reviewed = self.approvals.find(wanted).await?;
        let serving = match &reviewed {
            Reviewed::Tool(tool, version) => self.serving_if_approved(&version.definition, Some(tool)),
            Reviewed::Content(..) => Serving::Now,
        };
        let approval = self.approvals.approve(caller, &reviewed, request, serving).await;
        // Also where that failed after it was written.
        self.refresh_all().await?;
        let approval = approval?;
        if let Reviewed::Tool(_, version) = reviewed {
            self.install(&version);
        }
        Ok(approval)
    }

    /// Takes the approval of something back; it doesn't serve any more. `None` where it had none.
    ///
    /// # Errors
    /// [`ApprovalError`]; a refusal is recorded.
    pub async fn revoke_approval(&self, caller: &Caller, wanted: &str) -> Result<Option<Approval>, ApprovalError> {
        let reviewed = self.approvals.find(wanted).await?;
        let revoked = self.approvals.revoke(caller, &reviewed.of(), reviewed.name()).await;
        self.refresh_all().await?;
        revoked
    }

    async fn refresh_all(&self) -> Result<(), ApprovalError> {
        self.catalog.refresh().await?;
        self.contents.refresh().await?;
        Ok(())
    }
}

/// Who may not approve is not shown what waits of others.
fn may_look(caller: &Caller) -> Result<(), ApprovalError> {
    let allowed = caller.scopes.has(crate::model::Scope::Approve) || caller.scopes.has(crate::model::Scope::Admin);
    if allowed { Ok(()) } else { Err(ApprovalError::Forbidden) }
}
