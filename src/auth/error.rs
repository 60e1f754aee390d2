//! Why somebody is not let in. No message tells which part of a credential was wrong.

use crate::model::Scope;
use crate::store::StoreError;

/// Why a credential was not accepted or made.
#[derive(Debug, thiserror::Error)]
pub enum AuthError {
    /// There is no credential.
    #[error("a bearer token is needed: send the header `Authorization: Bearer ofk_…`")]
    Missing,
    /// The header is of another kind.
    #[error("the Authorization header is not understood; a bearer token is needed: `Authorization: Bearer ofk_…`")]
    Malformed,
    /// The token is none of ours.
    #[error("the bearer token is not valid; make a new one under Tokens, or with `omniforge token create`")]
    Invalid,
    /// The token's time is over.
    #[error("the bearer token has expired; make a new one under Tokens, or with `omniforge token create`")]
    Expired,
    /// The token was revoked.
    #[error("the bearer token was revoked; make a new one under Tokens, or with `omniforge token create`")]
    Revoked,
    /// The sign-in link leads nowhere (any more).
    #[error("this sign-in link was used already or is too old; a restart of the server prints a new one")]
    BadSignInCode,
    /// One peer tried too often.
    #[error("too many sign-in attempts from this address failed; try again in {seconds} s")]
    TooManyAttempts {
        /// In how many seconds it may try again.
        seconds: u64,
    },
    /// A token can't be made like this.
    #[error("{0}")]
    BadRequest(&'static str),
    /// A token can't allow what its maker may not do.
    #[error("a token can't carry the scope `{}`, which you don't have yourself", .0.as_str())]
    Beyond(Scope),
    /// The store failed.
    #[error("credentials cannot be checked now")]
    Store(#[from] StoreError),
}
