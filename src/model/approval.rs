//! Approvals: what a person has allowed to serve.

use serde::{Deserialize, Serialize};

use super::{PrincipalId, Timestamp, VersionNumber};

/// Whether an approval lets its definition serve.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ApprovalState {
    /// It does.
    Active,
    /// A later one took its place; only who may approve can return to it.
    Retired,
    /// A person took it back.
    Revoked,
}

impl ApprovalState {
    /// The name used in JSON, SQL and texts.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Retired => "retired",
            Self::Revoked => "revoked",
        }
    }

    /// The state of that name.
    pub fn parse(name: &str) -> Option<Self> {
        [Self::Active, Self::Retired, Self::Revoked].into_iter().find(|state| state.as_str() == name)
    }
}

/// An approval of one definition.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Approval {
    /// Its id (UUIDv7 text).
    pub id: String,
    /// The id of the tool or content.
    pub subject: String,
    /// The version that was looked at.
    pub version: VersionNumber,
    /// The fingerprint that was shown: what is approved.
    pub fingerprint: String,
    /// Whether it still counts.
    pub state: ApprovalState,
    /// When.
    pub approved_at: Timestamp,
    /// By whom.
    pub approved_by: PrincipalId,
    /// What the person noted.
    pub note: String,
    /// When it ceased to be active.
    pub ended_at: Option<Timestamp>,
    /// Who ended it.
    pub ended_by: Option<PrincipalId>,
    /// The MAC over all of this, hex.
    #[serde(skip)]
    pub seal: String,
}
