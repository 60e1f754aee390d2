//! Small adapters: what the doors ask for, answered by the parts.

use std::net::IpAddr;

use async_trait::async_trait;
use http::HeaderValue;
use tokio_util::sync::CancellationToken;

use crate::auth::{Auth, AuthError, shown_id};
use crate::http::{Identify, IdentifyError, Ready, Refused};
use crate::model::Caller;
use crate::store::Store;
use crate::tools::Tools;
use crate::trust::{ApprovalError, ApproveRequest, Refusal, Refusals, Review, SecretError, SecretSummary, Waiting};
use crate::web::{Pages, PagesError, ToolListing, ToolSummary};

/// Tells who calls from the `Authorization` header.
pub struct Bearer(pub Auth, pub Refusals);

#[async_trait]
impl Identify for Bearer {
    async fn identify(&self, authorization: Option<&HeaderValue>) -> Result<Caller, IdentifyError> {
        let text = authorization.map(|value| value.to_str().unwrap_or_default());
        match self.0.authenticate(text).await {
            Ok(caller) => Ok(caller),
            Err(AuthError::Store(error)) => {
                tracing::error!(%error, "Credentials can't be checked: the store failed");
                Err(IdentifyError::Unavailable)
            }
            Err(refused) => {
                // These two are told to nobody who does not have the whole token.
                let genuine = matches!(refused, AuthError::Expired | AuthError::Revoked);
                let token = text.filter(|_| genuine).and_then(shown_id).map(str::to_owned);
                Err(IdentifyError::Refused { reason: refused.to_string(), token })
            }
        }
    }

    fn ended(&self, caller: &Caller) -> CancellationToken {
        self.0.ended(caller)
    }

    fn refused(&self, refused: Refused, peer: Option<IpAddr>) {
        self.1.note(Refusal {
            action: refused.action.to_owned(),
            subject: refused.token.clone().unwrap_or_default(),
            reason: refused.reason,
            principal: None,
            token: refused.token,
            source: peer.map(|peer| peer.to_string()),
        });
    }
}

/// Ready when the store answers; the sandbox was proven at the start.
pub struct StoreReady(pub Store);

#[async_trait]
impl Ready for StoreReady {
    async fn ready(&self) -> bool {
        self.0.catalog_generation().await.is_ok()
    }
}

/// What the pages show of the catalogue.
pub struct Catalogue(pub Tools);

#[async_trait]
impl Pages for Catalogue {
    async fn tools(&self, caller: &Caller, limit: usize) -> Result<ToolListing, PagesError> {
        let failed = |error| PagesError(Box::new(error));
        let (overview, total) = self.0.overview(caller, limit).await.map_err(failed)?;
        let tools = overview
            .into_iter()
            .map(|(found, state)| ToolSummary {
                name: found.tool.name.as_str().to_owned(),
                title: found.latest.title,
                description: found.latest.description,
                language: found.latest.language,
                status: state,
                serving_version: found.tool.serving_version,
                latest_version: found.tool.latest_version,
                updated_at: found.tool.updated_at,
            })
            .collect();
        Ok(ToolListing { tools, total: usize::try_from(total).unwrap_or(usize::MAX) })
    }

    async fn waiting(&self, caller: &Caller) -> Result<Vec<Waiting>, ApprovalError> {
        self.0.waiting(caller).await
    }

    async fn review(&self, caller: &Caller, id: &str) -> Result<Review, ApprovalError> {
        self.0.review(caller, id).await
    }

    async fn approve(&self, caller: &Caller, id: &str, request: ApproveRequest) -> Result<(), ApprovalError> {
        self.0.approve(caller, id, request).await.map(drop)
    }

    async fn secrets(&self, caller: &Caller) -> Result<Vec<SecretSummary>, SecretError> {
        self.0.secrets.list(caller).await
    }

    async fn set_secret(&self, caller: &Caller, name: &str, value: &str, hosts: &[String]) -> Result<(), SecretError> {
        self.0.secrets.set(caller, name, value, hosts).await
    }

    async fn delete_secret(&self, caller: &Caller, name: &str) -> Result<(), SecretError> {
        self.0.secrets.delete(caller, name).await.map(drop)
    }

    async fn revoke_approval(&self, caller: &Caller, id: &str) -> Result<(), ApprovalError> {
        self.0.revoke_approval(caller, id).await.map(drop)
    }
}
