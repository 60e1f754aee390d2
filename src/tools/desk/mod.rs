//! What a person does at a page with tools and runs: look, check, save, try, compare, return to a version.
//!
//! The rules are those of the built-in tools, whose parts it uses; it answers with facts instead of texts.

mod glance;
mod runs;
mod save;
mod view;

use crate::model::{Scope, VersionNumber};
use crate::runner::CodeError;
use crate::store::StoreError;
use crate::trust::ApprovalError;

use super::builtin::Failed;
use super::domain::CallError;
use super::internal;

pub use glance::{Glance, Spell};
pub use runs::{Follow, RunQuery, RunView, Tried, Try};
pub use save::{Checked, Saved};
pub use view::{ToolQuery, ToolView};

/// Why what was asked for was not done.
#[derive(Debug, thiserror::Error)]
pub enum DeskError {
    /// The text says what was wrong and what would be right.
    #[error("{0}")]
    Refused(String),
    /// The code has a fault.
    #[error("the code has a fault: {0}")]
    Fault(CodeError),
    /// Somebody else saved a newer version since.
    #[error("version {latest} was saved meanwhile, after version {seen} that you started from")]
    Overtaken {
        /// The version that was changed.
        seen: VersionNumber,
        /// The newest version.
        latest: VersionNumber,
    },
    /// There is no such tool or run, or it is somebody else's.
    #[error("there is no {what} `{name}`")]
    NotFound {
        /// What was looked for.
        what: &'static str,
        /// By which name.
        name: String,
    },
    /// The caller may not.
    #[error("this needs the scope `{}`", .0.as_str())]
    Forbidden(Scope),
    /// Our own failure; the log says more under its id.
    #[error(transparent)]
    Broken(CallError),
}

impl From<Failed> for DeskError {
    fn from(failed: Failed) -> Self {
        match failed {
            Failed::Refused(text) | Failed::Faulty(_, text) => Self::Refused(text),
            Failed::Fault(fault) => Self::Fault(fault),
            Failed::Overtaken(StoreError::VersionConflict { expected, latest }) => {
                Self::Overtaken { seen: expected, latest }
            }
            Failed::Overtaken(StoreError::NameTaken { .. }) => {
                Self::Refused("`name`: a tool of this name exists already; choose another name".to_owned())
            }
            Failed::Overtaken(error) => Self::Refused(error.to_string()),
            Failed::Broken(error) => Self::Broken(error),
        }
    }
}

impl From<CallError> for DeskError {
    fn from(error: CallError) -> Self {
        Self::Broken(error)
    }
}

impl From<StoreError> for DeskError {
    fn from(error: StoreError) -> Self {
        Self::Broken(internal("the store failed", &error))
    }
}

impl From<ApprovalError> for DeskError {
    fn from(error: ApprovalError) -> Self {
        Self::Broken(internal("an approval can't be looked up", &error))
    }
}

/// Whoever changes tools needs the scope for it.
fn may_author(caller: &crate::model::Caller) -> Result<(), DeskError> {
    if caller.scopes.has(Scope::Author) { Ok(()) } else { Err(DeskError::Forbidden(Scope::Author)) }
}
