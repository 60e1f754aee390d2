//! Trust: the server's key, fingerprints of versions, which of them wait for a person, and what that person approved
//! (DESIGN §3).

mod approvals;
mod fingerprint;
mod key;
mod policy;
mod review;

pub use approvals::{ApprovalError, Approvals, ApproveRequest};
pub use fingerprint::{content_fingerprint, fingerprint};
pub use key::{KeyError, Sealer, ServerKey};
pub use policy::Policy;
pub use review::{Asked, Review, Reviewed, Waiting};
