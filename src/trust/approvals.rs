//! Approvals: bound to the fingerprint that a person was shown, and sealed with the server's key.

use http::StatusCode;
use serde_json::json;
use subtle::ConstantTimeEq;

use super::review::{self, Reviewed};
use super::{Policy, ServerKey, fingerprint};
use crate::model::{
    Approval, ApprovalState, Caller, ContentVersion, Scope, ToolDefinition, ToolId, ToolVersion, VersionNumber,
};
use crate::store::{Approved, AuditEntry, NewApproval, Serving, Store, StoreError};

/// The longest note.
const NOTE_BYTES: usize = 2_000;

/// What may serve, by the policy and by what a person has approved.
#[derive(Clone)]
pub struct Approvals {
    store: Store,
    key: [u8; 32],
    policy: Policy,
}

/// A person's decision for a version.
#[derive(Clone, Debug)]
pub struct ApproveRequest {
    /// The number of the version that was shown.
    pub version: VersionNumber,
    /// Its fingerprint, as it was shown.
    pub fingerprint: String,
    /// A note for the history.
    pub note: String,
}

/// Why something is not approved or taken back.
#[derive(Debug, thiserror::Error)]
pub enum ApprovalError {
    /// The caller may not.
    #[error("this needs the scope `approve`, which the credential does not carry")]
    Forbidden,
    /// There is no such thing.
    #[error("there is no tool or saved content `{0}`")]
    NotFound(String),
    /// It is not what was shown.
    #[error("{0}")]
    Changed(String),
    /// The request itself is wrong.
    #[error("{0}")]
    Wrong(String),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A definition can't be written as JSON.
    #[error("a definition cannot be written as JSON: {0}")]
    Encode(#[from] serde_json::Error),
}

impl ApprovalError {
    /// The HTTP status that fits.
    pub fn status(&self) -> StatusCode {
        match self {
            Self::Forbidden => StatusCode::FORBIDDEN,
            Self::NotFound(_) | Self::Store(StoreError::NoSuchTool | StoreError::NoSuchContent) => {
                StatusCode::NOT_FOUND
            }
            Self::Changed(_) => StatusCode::CONFLICT,
            Self::Wrong(_) => StatusCode::BAD_REQUEST,
            Self::Store(_) | Self::Encode(_) => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }
}

impl std::fmt::Debug for Approvals {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Approvals").field("policy", &self.policy).finish_non_exhaustive()
    }
}

impl Approvals {
    /// The approvals in this store, sealed with this key, under this policy.
    pub fn new(store: Store, key: &ServerKey, policy: Policy) -> Self {
        Self { store, key: key.derive("approval"), policy }
    }

    /// What waits and what doesn't.
    pub fn policy(&self) -> &Policy {
        &self.policy
    }

    pub(super) fn store(&self) -> &Store {
        &self.store
    }

    /// What a person must still approve before this definition of a tool may run, in words; empty when it may. `None`:
    /// of no saved tool, so that nothing can have been approved.
    ///
    /// # Errors
    /// [`ApprovalError::Store`], [`ApprovalError::Encode`].
    pub async fn tool_waits(
        &self,
        tool: Option<&ToolId>,
        definition: &ToolDefinition,
    ) -> Result<Vec<String>, ApprovalError> {
        let asks = self.policy.waits_for(definition);
        match tool {
            Some(tool) if !asks.is_empty() => {
                let approved = self.is_approved(&tool.0, &fingerprint(definition)?).await?;
                Ok(if approved { Vec::new() } else { asks })
            }
            _ => Ok(asks),
        }
    }

    /// The same for a version of saved content.
    ///
    /// # Errors
    /// [`ApprovalError::Store`], [`ApprovalError::Encode`].
    pub async fn content_waits(&self, version: &ContentVersion) -> Result<Vec<String>, ApprovalError> {
        let asks = review::content_asks(&self.policy, &version.definition);
        if asks.is_empty() {
            return Ok(asks);
        }
        let approved = self.is_approved(&version.content.0, &review::content_version_fingerprint(version)?).await?;
        Ok(if approved { Vec::new() } else { asks })
    }

    /// Which of these latest versions of tools wait, in the same order.
    ///
    /// # Errors
    /// [`ApprovalError::Store`], [`ApprovalError::Encode`].
    pub async fn which_wait(&self, versions: &[&ToolVersion]) -> Result<Vec<bool>, ApprovalError> {
        let asking: Vec<&str> = versions
            .iter()
            .filter(|version| !self.policy.waits_for(&version.definition).is_empty())
            .map(|version| version.tool.0.as_str())
            .collect();
        if asking.is_empty() {
            return Ok(vec![false; versions.len()]);
        }
        let active = self.store.active_approvals(&asking).await?;
        let waits = |version: &&ToolVersion| {
            if !asking.contains(&version.tool.0.as_str()) {
                return Ok(false);
            }
            let fingerprint = fingerprint(&version.definition)?;
            Ok(!active.iter().any(|approval| {
                approval.subject == version.tool.0 && approval.fingerprint == fingerprint && self.is_sealed(approval)
            }))
        };
        versions.iter().map(waits).collect()
    }

    /// Whether the approval that counts is of this fingerprint.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn is_approved(&self, subject: &str, fingerprint: &str) -> Result<bool, StoreError> {
        let active = self.store.active_approvals(&[subject]).await?;
        Ok(active.iter().any(|approval| approval.fingerprint == fingerprint && self.is_sealed(approval)))
    }

    /// Makes a retired approval of this definition count again, for somebody who may approve: they return to what a person
    /// has looked at. Says whether it did.
    ///
    /// # Errors
    /// [`ApprovalError::Store`], [`ApprovalError::Encode`].
    pub async fn return_to(
        &self,
        caller: &Caller,
        tool: &ToolId,
        definition: &ToolDefinition,
    ) -> Result<bool, ApprovalError> {
        if !caller.scopes.has(Scope::Approve) {
            return Ok(false);
        }
        let fingerprint = fingerprint(definition)?;
        let approvals = self.store.list_approvals(&tool.0).await?;
        // The newest word on it counts: one that was revoked stays so.
        let newest = approvals.into_iter().find(|approval| approval.fingerprint == fingerprint);
        let Some(retired) = newest.filter(|it| it.state == ApprovalState::Retired && self.is_sealed(it)) else {
            return Ok(false);
        };
        self.store.reinstate_approval(&retired, &caller.principal, &|approval| self.seal(approval)).await?;
        let detail = json!({"version": retired.version});
        self.record(caller, "approval.reinstate", &tool.0, (detail, Some(&fingerprint), "ok")).await?;
        Ok(true)
    }

    /// Approves of the newest version, if it is the one that was shown.
    ///
    /// # Errors
    /// [`ApprovalError`]; a refusal is recorded too.
    pub async fn approve(
        &self,
        caller: &Caller,
        reviewed: &Reviewed,
        request: ApproveRequest,
        serving: Serving,
    ) -> Result<Approval, ApprovalError> {
        let approved = self.try_approve(caller, reviewed, &request, serving).await;
        let outcome = match &approved {
            Ok(_) => "ok",
            Err(ApprovalError::Forbidden | ApprovalError::Changed(_) | ApprovalError::Wrong(_)) => "refused",
            Err(_) => "failed",
        };
        let detail = json!({"version": request.version, "note": request.note});
        let about = (detail, Some(request.fingerprint.as_str()), outcome);
        self.record(caller, "approval.approve", reviewed.name(), about).await?;
        approved
    }

    async fn try_approve(
        &self,
        caller: &Caller,
        reviewed: &Reviewed,
        request: &ApproveRequest,
        serving: Serving,
    ) -> Result<Approval, ApprovalError> {
        self.allowed(caller)?;
        if request.note.len() > NOTE_BYTES {
            return Err(ApprovalError::Wrong(format!("`note`: it may have {NOTE_BYTES} bytes")));
        }
        let (version, fingerprint) = (reviewed.version(), reviewed.fingerprint()?);
        if request.version != version {
            return Err(moved_on(request.version, version));
        }
        if request.fingerprint != fingerprint {
            return Err(ApprovalError::Changed(format!(
                "version {version} has the fingerprint {fingerprint}, not the one that was shown; look at it again"
            )));
        }
        let (by, note) = (caller.principal.clone(), request.note.clone());
        let new = NewApproval { of: reviewed.of(), version, fingerprint, by, note, serving };
        match self.store.approve(&new, &|approval| self.seal(approval)).await {
            Err(StoreError::VersionConflict { expected, latest }) => Err(moved_on(expected, latest)),
            Err(StoreError::NoSuchTool | StoreError::NoSuchContent) => {
                Err(ApprovalError::NotFound(reviewed.name().to_owned()))
            }
            done => Ok(done?),
        }
    }

    /// Takes the active approval back; `None` where there was none.
    ///
    /// # Errors
    /// [`ApprovalError`]; a refusal is recorded too.
    pub async fn revoke(&self, caller: &Caller, of: &Approved, name: &str) -> Result<Option<Approval>, ApprovalError> {
        if let Err(refused) = self.allowed(caller) {
            self.record(caller, "approval.revoke", name, (json!({}), None, "refused")).await?;
            return Err(refused);
        }
        let revoked = self.store.revoke_approval(of, &caller.principal, &|approval| self.seal(approval)).await?;
        if let Some(approval) = &revoked {
            let about = (json!({"version": approval.version}), Some(approval.fingerprint.as_str()), "ok");
            self.record(caller, "approval.revoke", name, about).await?;
        }
        Ok(revoked)
    }

    fn allowed(&self, caller: &Caller) -> Result<(), ApprovalError> {
        if caller.scopes.has(Scope::Approve) { Ok(()) } else { Err(ApprovalError::Forbidden) }
    }

    async fn record(
        &self,
        caller: &Caller,
        action: &str,
        subject: &str,
        (detail, fingerprint, outcome): (serde_json::Value, Option<&str>, &str),
    ) -> Result<(), StoreError> {
        let entry = AuditEntry {
            principal: Some(caller.principal.clone()),
            token: caller.token_id.clone(),
            action: action.to_owned(),
            subject: subject.to_owned(),
            detail,
            source: caller.source.clone(),
            fingerprint: fingerprint.map(str::to_owned),
            outcome: outcome.to_owned(),
            ..AuditEntry::default()
        };
        self.store.append_audit(&entry).await.map(drop)
    }

    /// The MAC over everything that a row says.
    fn seal(&self, approval: &Approval) -> String {
        // Every field with its length, so that no two rows have the same text.
        let mut mac = blake3::Hasher::new_keyed(&self.key);
        let ended_at = approval.ended_at.map(|at| at.0.to_string()).unwrap_or_default();
        let ended_by = approval.ended_by.as_ref().map(|by| by.0.as_str()).unwrap_or_default();
        for field in [
            approval.id.as_str(),
            &approval.subject,
            &approval.version.to_string(),
            &approval.fingerprint,
            approval.state.as_str(),
            &approval.approved_at.0.to_string(),
            &approval.approved_by.0,
            &approval.note,
            &ended_at,
            ended_by,
        ] {
            mac.update(&(field.len() as u64).to_be_bytes());
            mac.update(field.as_bytes());
        }
        mac.finalize().to_hex().to_string()
    }

    /// Whether this server sealed the row as it is.
    pub(super) fn is_sealed(&self, approval: &Approval) -> bool {
        approval.seal.as_bytes().ct_eq(self.seal(approval).as_bytes()).into()
    }
}

fn moved_on(shown: VersionNumber, latest: VersionNumber) -> ApprovalError {
    ApprovalError::Changed(format!(
        "version {latest} is the newest now, not {shown}, which was shown; look at it first"
    ))
}
