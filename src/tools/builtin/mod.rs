//! The built-in tools: authoring, calling and looking at runs.

mod descriptors;
mod instructions;

pub use descriptors::Builtin;
pub use instructions::{Facts, guide};
