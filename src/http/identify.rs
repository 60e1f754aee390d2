//! Who calls: the door's view of authentication, and the answer to those whom it doesn't know.

use async_trait::async_trait;
use axum::response::Response;
use http::header::WWW_AUTHENTICATE;
use http::{HeaderValue, StatusCode};

use super::problem::problem;
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
}

/// Why nobody is let in.
#[derive(Debug, thiserror::Error)]
pub enum IdentifyError {
    /// The credential is missing or not accepted; the reason is for the caller.
    #[error("{reason}")]
    Refused {
        /// Why, without a secret in it.
        reason: String,
    },
    /// Credentials can't be checked now.
    #[error("credentials can't be checked at the moment")]
    Unavailable,
}

/// 401 (or 503), with what a person needs to repair it.
pub fn refused(error: &IdentifyError, authorization: Option<&HeaderValue>) -> Response {
    let reason = match error {
        IdentifyError::Unavailable => return problem(StatusCode::SERVICE_UNAVAILABLE, error.to_string()),
        IdentifyError::Refused { reason } => reason,
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
    response
}
