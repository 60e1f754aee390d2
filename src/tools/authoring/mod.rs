//! Saving: from what an author gave to a definition, or to an error that says what to mend.

mod assemble;
mod draft;
mod grants;
mod listing;
mod warnings;

pub use assemble::{Assembled, Parts, check_mode, requirements, tool_name};
pub use draft::{Draft, FieldError, clean};
pub use warnings::{breaking_changes, fold_warning, schema_warnings};
