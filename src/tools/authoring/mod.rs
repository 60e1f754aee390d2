//! Saving: from what an author gave to a version, or to an error that says what to mend.

mod draft;
mod warnings;

pub use draft::{Draft, FieldError, clean};
