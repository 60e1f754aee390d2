//! Who calls: the door's view of authentication, and the answer to those whom it doesn't know.

use std::net::IpAddr;

use async_trait::async_trait;
use axum::response::Response;
use http::header::WWW_AUTHENTICATE;
use http::{HeaderValue, StatusCode};
use tokio_util::sync::CancellationToken;

use super::problem::{Refused, problem};
use crate::model::Caller;

/// Tells who calls from the `Authorization` header.
#[async_trait]
pub trait Identify: Send + Sync + 'static {
    /// The caller.
    ///
    /// # Errors
    /// [`IdentifyError`] says why there is none.
    async fn identify(&self, authorization: Option<&HeaderValue>) -> Result<Caller, IdentifyError>;

    /// Whether a caller must show a credential; discovery says so.
    fn wants_credential(&self) -> bool {
        true
    }

    /// Cancelled when this caller's credential counts no more: what is open under it ends.
    fn ended(&self, _caller: &Caller) -> CancellationToken {
        CancellationToken::new()
    }

    /// Hears what was refused to that peer, for the audit log.
    fn refused(&self, _refused: Refused, _peer: Option<IpAddr>) {}
}

/// Why nobody is let in.
#[derive(Debug, thiserror::Error)]
pub enum IdentifyError {
    /// The credential is missing or not accepted; the reason is for the caller.
    #[error("{reason}")]
    Refused {
        /// Why, without a secret in it.
        reason: String,
        /// The token that was shown, where it was genuine once.
        token: Option<String>,
    },
    /// Credentials can't be checked now.
    #[error("credentials can't be checked at the moment")]
    Unavailable,
}

/// 401 (or 503), with what a person needs to repair it.
pub fn refused(error: &IdentifyError, authorization: Option<&HeaderValue>) -> Response {
    let (reason, token) = match error {
        IdentifyError::Unavailable => return problem(StatusCode::SERVICE_UNAVAILABLE, error.to_string()),
        IdentifyError::Refused { reason, token } => (reason, token),
    };
    let arrived = match authorization {
        None => "no Authorization header arrived".to_owned(),
        Some(_) => format!("an Authorization header arrived, but {reason}"),
    };
    let detail = format!(
        "This server wants a bearer token: {arrived}. Send the header `Authorization: Bearer ofk_…`; \
         `omniforge token create` makes a token."
    );
    let mut response = problem(StatusCode::UNAUTHORIZED, detail);
    response.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer realm=\"omniforge\""));
    // Whoever shows nothing only asks; that would be noise.
    if authorization.is_some() {
        let refused = Refused {
            action: "auth.refused",
            reason: reason.clone(),
            token: token.clone(),
            principal: None,
            subject: None,
        };
        response.extensions_mut().insert(refused);
    }
    response
}
