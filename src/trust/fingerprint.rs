//! Fingerprints: what an approval is bound to.

use serde_json::json;

use crate::model::{ContentDefinition, ContentFile, canonical_json};

/// BLAKE3, in hex, over the canonical JSON of the whole definition of a tool.
///
/// # Errors
/// When the definition can't be written as JSON.
pub fn fingerprint(definition: &impl serde::Serialize) -> Result<String, serde_json::Error> {
    let value = serde_json::to_value(definition)?;
    Ok(blake3::hash(canonical_json(&value).as_bytes()).to_hex().to_string())
}

/// The same for saved content, over its definition and the digests of its files.
///
/// # Errors
/// When the definition can't be written as JSON.
pub fn content_fingerprint(
    definition: &ContentDefinition,
    files: &[&ContentFile],
) -> Result<String, serde_json::Error> {
    fingerprint(&json!({"definition": definition, "files": files}))
}
