//! Small adapters: what the doors ask for, answered by the parts.

use std::net::IpAddr;

use async_trait::async_trait;
use http::HeaderValue;
use tokio_util::sync::CancellationToken;

use crate::auth::{Auth, AuthError, shown_id};
use crate::http::{Identify, IdentifyError, Ready, Refused};
use crate::model::Caller;
use crate::store::Store;
use crate::trust::{Refusal, Refusals};

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
            subject: refused.subject.or_else(|| refused.token.clone()).unwrap_or_default(),
            reason: refused.reason,
            principal: refused.principal,
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
