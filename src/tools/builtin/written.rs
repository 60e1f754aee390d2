//! How a change is written: in a task that a dropped request can't stop halfway, together with its audit entry.

use std::future::Future;

use serde_json::{Value, json};

use super::Failed;
use crate::model::{Caller, ContentVersion, ToolVersion};
use crate::store::{AuditEntry, Store, StoreError};
use crate::tools::{Tools, internal};

/// A change that this caller makes.
pub(in crate::tools) fn deed(caller: &Caller, action: impl Into<String>, subject: &str, detail: Value) -> AuditEntry {
    AuditEntry {
        principal: Some(caller.principal.clone()),
        token: caller.token_id.clone(),
        source: caller.source.clone(),
        action: action.into(),
        subject: subject.to_owned(),
        detail,
        outcome: "ok".to_owned(),
        ..AuditEntry::default()
    }
}

/// The entry of a change that made this version.
pub(in crate::tools) fn made(entry: AuditEntry, version: &ToolVersion) -> Option<AuditEntry> {
    let detail = json!({"version": version.number, "note": version.note});
    Some(AuditEntry { detail, fingerprint: Some(version.fingerprint.clone()), ..entry })
}

/// The entry of a change that made this version of saved content.
pub(in crate::tools) fn made_content(entry: AuditEntry, version: &ContentVersion) -> Option<AuditEntry> {
    let detail = json!({"version": version.number, "note": version.note});
    Some(AuditEntry { detail, fingerprint: Some(version.fingerprint.clone()), ..entry })
}

impl Tools {
    /// Writes to the catalogue in a task of its own: commit, record, then clear the cache and tell everybody. `told` is the
    /// entry of what was written; `None` where nothing was.
    pub(in crate::tools) async fn write<T, F>(
        &self,
        entry: AuditEntry,
        write: impl FnOnce(Store) -> F + Send + 'static,
        told: impl FnOnce(AuditEntry, &T) -> Option<AuditEntry> + Send + 'static,
    ) -> Result<T, Failed>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, StoreError>> + Send + 'static,
    {
        let tools = self.clone();
        let task = self.lifecycle.tasks.spawn(async move {
            let written = write(tools.store.clone()).await?;
            if let Some(entry) = told(entry, &written) {
                tools.record(&entry).await;
            }
            tools.catalog.refresh().await?;
            Ok::<T, StoreError>(written)
        });
        let written = task.await.map_err(|error| Failed::Broken(internal("a write's task failed", &error)))?;
        Ok(written?)
    }

    /// The same for saved content.
    pub(in crate::tools) async fn write_content<T, F>(
        &self,
        entry: AuditEntry,
        write: impl FnOnce(Store) -> F + Send + 'static,
        told: impl FnOnce(AuditEntry, &T) -> Option<AuditEntry> + Send + 'static,
    ) -> Result<T, Failed>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, StoreError>> + Send + 'static,
    {
        let contents = self.contents.clone();
        let work = move |store| async move {
            let written = write(store).await?;
            contents.refresh().await?;
            Ok(written)
        };
        self.write(entry, work, told).await
    }

    /// Records a change that was made.
    pub(in crate::tools) async fn record(&self, entry: &AuditEntry) {
        if let Err(error) = self.store.append_audit(entry).await {
            let (action, subject) = (&entry.action, &entry.subject);
            tracing::error!(action, subject, %error, "The audit entry `{action}` of `{subject}` could not be written");
        }
    }
}
