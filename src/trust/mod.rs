//! Trust: the server's key, fingerprints of versions, which of them wait for a person, and what that person approved
//! (DESIGN §3).

mod approvals;
mod fingerprint;
mod key;
mod operator_key;
mod policy;
mod refusals;
mod review;
mod secrets;

pub use approvals::{ApprovalError, Approvals, ApproveRequest};
pub use fingerprint::{content_fingerprint, fingerprint};
pub use key::{CREDENTIALS, Sealer, ServerKey, ServerKeyError};
pub use operator_key::{KeyError, NextKey, OperatorKey};
pub use policy::Policy;
pub use refusals::{Refusal, RefusalWriter, Refusals};
pub use review::{Asked, Review, Reviewed, Waiting};
pub use secrets::{SecretError, SecretSummary, Secrets};
