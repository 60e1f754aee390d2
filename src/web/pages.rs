//! What the pages need to know of the product; `app` answers it from the catalogue.

use async_trait::async_trait;

use crate::model::{Caller, Language, Timestamp, VersionNumber};
use crate::tools::ToolState;
use crate::trust::{ApprovalError, ApproveRequest, Review, SecretError, SecretSummary, Waiting};

/// What the pages need of the product.
#[async_trait]
pub trait Pages: Send + Sync + 'static {
    /// The saved tools that this caller may see, most recently changed first, at most `limit` of them.
    ///
    /// # Errors
    /// [`PagesError`] when they can't be read.
    async fn tools(&self, caller: &Caller, limit: usize) -> Result<ToolListing, PagesError>;

    /// What waits for a person.
    ///
    /// # Errors
    /// [`ApprovalError`].
    async fn waiting(&self, caller: &Caller) -> Result<Vec<Waiting>, ApprovalError>;

    /// What a person should see before they approve of the newest version of something.
    ///
    /// # Errors
    /// [`ApprovalError`].
    async fn review(&self, caller: &Caller, id: &str) -> Result<Review, ApprovalError>;

    /// Approves of the newest version, if it is the one that was shown.
    ///
    /// # Errors
    /// [`ApprovalError`].
    async fn approve(&self, caller: &Caller, id: &str, request: ApproveRequest) -> Result<(), ApprovalError>;

    /// The secrets, without values.
    ///
    /// # Errors
    /// [`SecretError`].
    async fn secrets(&self, caller: &Caller) -> Result<Vec<SecretSummary>, SecretError>;

    /// Sets a secret.
    ///
    /// # Errors
    /// [`SecretError`].
    async fn set_secret(&self, caller: &Caller, name: &str, value: &str, hosts: &[String]) -> Result<(), SecretError>;

    /// Deletes a secret, where there is one.
    ///
    /// # Errors
    /// [`SecretError`].
    async fn delete_secret(&self, caller: &Caller, name: &str) -> Result<(), SecretError>;

    /// Takes an approval back, where there is one.
    ///
    /// # Errors
    /// [`ApprovalError`].
    async fn revoke_approval(&self, caller: &Caller, id: &str) -> Result<(), ApprovalError>;
}

/// The product can't answer; the log says why, the page does not.
#[derive(Debug, thiserror::Error)]
#[error("the page's content cannot be read")]
pub struct PagesError(#[source] pub Box<dyn std::error::Error + Send + Sync>);

/// The first tools of a list, and how many there are.
#[derive(Clone, Debug, Default)]
pub struct ToolListing {
    /// As many as were asked for.
    pub tools: Vec<ToolSummary>,
    /// How many there are in all.
    pub total: usize,
}

/// A tool in a list.
#[derive(Clone, Debug)]
pub struct ToolSummary {
    /// The name to call it by.
    pub name: String,
    /// A name for people.
    pub title: Option<String>,
    /// What it does.
    pub description: String,
    /// What it is written in.
    pub language: Language,
    /// Whether it can be called.
    pub status: ToolState,
    /// The version that calls run; `None` while none may serve.
    pub serving_version: Option<VersionNumber>,
    /// The newest version.
    pub latest_version: VersionNumber,
    /// When the serving version or the switch changed last.
    pub updated_at: Timestamp,
}
