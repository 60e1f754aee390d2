//! Small adapters: what the doors ask for, answered by the parts.

use async_trait::async_trait;
use http::HeaderValue;

use crate::auth::{Auth, AuthError};
use crate::http::{Identify, IdentifyError, Ready};
use crate::model::Caller;
use crate::store::Store;

/// Tells who calls from the `Authorization` header.
pub struct Bearer(pub Auth);

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
            Err(refused) => Err(IdentifyError::Refused { reason: refused.to_string() }),
        }
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
