//! The tokens' text, `ofk_ID_SECRET`: made here, and taken apart.

use super::AuthError;
use super::secret::{CredentialKey, SECRET_LENGTH, TokenGrants, is_random_text, random_text};
use crate::model::{PrincipalId, Scopes, Timestamp, ToolsetId};
use crate::store::{NewToken, Token};

const PREFIX: &str = "ofk_";
const ID_LENGTH: usize = 16;

/// How long a token is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lifetime {
    /// In the store, until it expires or is revoked.
    Stored,
    /// In memory: it dies with the process.
    Process,
}

/// A token that somebody wants.
#[derive(Clone, Debug)]
pub struct TokenRequest {
    /// Whose it is to be.
    pub principal: PrincipalId,
    /// A name for people.
    pub name: String,
    /// What it is to allow.
    pub scopes: Scopes,
    /// From when on it is refused.
    pub expires_at: Option<Timestamp>,
    /// How long it is kept.
    pub lifetime: Lifetime,
    /// The name of the toolset that it is limited to.
    pub toolset: Option<String>,
}

/// Makes the token that was asked for, and its text.
pub(super) fn make(request: &TokenRequest, toolset: Option<ToolsetId>, key: &CredentialKey) -> (NewToken, String) {
    let (id, secret) = (random_text(ID_LENGTH), random_text(SECRET_LENGTH));
    let text = format!("{PREFIX}{id}_{secret}");
    let grants = TokenGrants {
        id: &id,
        principal: &request.principal,
        scopes: request.scopes,
        expires_at: request.expires_at,
        toolset: toolset.as_ref(),
    };
    let secret_hash = key.of_token(&secret, &grants);
    let token = NewToken {
        id,
        principal: request.principal.clone(),
        name: request.name.trim().to_owned(),
        scopes: request.scopes,
        secret_hash,
        expires_at: request.expires_at,
        toolset,
    };
    (token, text)
}

/// The token that the store would have made.
pub(super) fn unstored(new: &NewToken, created_at: Timestamp) -> Token {
    Token {
        id: new.id.clone(),
        principal: new.principal.clone(),
        name: new.name.clone(),
        scopes: new.scopes,
        created_at,
        expires_at: new.expires_at,
        revoked_at: None,
        last_used_at: None,
        toolset: new.toolset.clone(),
    }
}

/// What the store says that a token allows.
pub(super) fn grants(token: &Token) -> TokenGrants<'_> {
    TokenGrants {
        id: &token.id,
        principal: &token.principal,
        scopes: token.scopes,
        expires_at: token.expires_at,
        toolset: token.toolset.as_ref(),
    }
}

/// The id of the token in an `Authorization` header, if it holds one. Nothing says that it is genuine.
pub fn shown_id(header: &str) -> Option<&str> {
    parse_header(header).ok().map(|(id, _)| id)
}

/// The id and the secret in an `Authorization` header.
pub(super) fn parse_header(header: &str) -> Result<(&str, &str), AuthError> {
    let (scheme, token) = header.trim().split_once(' ').ok_or(AuthError::Malformed)?;
    if !scheme.eq_ignore_ascii_case("bearer") {
        return Err(AuthError::Malformed);
    }
    let (id, secret) =
        token.trim().strip_prefix(PREFIX).and_then(|rest| rest.split_once('_')).ok_or(AuthError::Invalid)?;
    if is_random_text(id, ID_LENGTH) && is_random_text(secret, SECRET_LENGTH) {
        Ok((id, secret))
    } else {
        Err(AuthError::Invalid)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_is_taken_apart() {
        let (id, secret) = ("a".repeat(16), "Z".repeat(43));
        for scheme in ["Bearer ", "bearer  ", " BEARER "] {
            assert_eq!(parse_header(&format!("{scheme}ofk_{id}_{secret} ")).unwrap(), (id.as_str(), secret.as_str()));
        }
    }

    #[test]
    fn what_is_no_token_is_refused() {
        let secret = "Z".repeat(43);
        for header in ["", "Bearer", "Basic b2s6", "ofk_a_b"] {
            assert!(matches!(parse_header(header), Err(AuthError::Malformed)), "{header}");
        }
        let mangled = [
            "Bearer ".to_owned() + "x",
            format!("Bearer ofk_{}_{secret}", "a".repeat(15)),
            format!("Bearer ofk_{}_{secret}x", "a".repeat(16)),
            format!("Bearer ofk_{}_{}-", "a".repeat(16), "Z".repeat(42)),
            format!("Bearer sk_{}_{secret}", "a".repeat(16)),
            format!("Bearer ofk_{}{secret}", "a".repeat(16)),
        ];
        for header in mangled {
            assert!(matches!(parse_header(&header), Err(AuthError::Invalid)), "{header}");
        }
    }
}
