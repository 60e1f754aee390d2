//! What a test's pages show, in place of the product.

use async_trait::async_trait;
use omniforge::model::Caller;
use omniforge::trust::{ApprovalError, ApproveRequest, Review, SecretError, SecretSummary, Waiting};
use omniforge::web::{Pages, PagesError, ToolListing, ToolSummary};

/// The tools of a test, in place of the catalogue; `None` stands for a store that fails.
pub struct Catalogue(pub Option<Vec<ToolSummary>>);

#[async_trait]
impl Pages for Catalogue {
    async fn tools(&self, _: &Caller, limit: usize) -> Result<ToolListing, PagesError> {
        let Some(tools) = &self.0 else { return Err(PagesError("the disk at /var/secret is gone".into())) };
        Ok(ToolListing { tools: tools.iter().take(limit).cloned().collect(), total: tools.len() })
    }

    // `approvals.rs` has the real ones.
    async fn waiting(&self, _: &Caller) -> Result<Vec<Waiting>, ApprovalError> {
        Ok(Vec::new())
    }

    async fn review(&self, _: &Caller, id: &str) -> Result<Review, ApprovalError> {
        Err(ApprovalError::NotFound(id.to_owned()))
    }

    async fn approve(&self, _: &Caller, id: &str, _: ApproveRequest) -> Result<(), ApprovalError> {
        Err(ApprovalError::NotFound(id.to_owned()))
    }

    async fn secrets(&self, _: &Caller) -> Result<Vec<SecretSummary>, SecretError> {
        Ok(Vec::new())
    }

    async fn set_secret(&self, _: &Caller, _: &str, _: &str, _: &[String]) -> Result<(), SecretError> {
        Err(SecretError::Forbidden)
    }

    async fn delete_secret(&self, _: &Caller, _: &str) -> Result<(), SecretError> {
        Err(SecretError::Forbidden)
    }

    async fn revoke_approval(&self, _: &Caller, id: &str) -> Result<(), ApprovalError> {
        Err(ApprovalError::NotFound(id.to_owned()))
    }
}
