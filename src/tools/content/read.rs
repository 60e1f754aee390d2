//! Reading a resource: its own bytes, a skill's file, what a script makes, or the output of a run.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::catalog::{Entry, Seen};
use super::domain::{Asked, ContentError, Step};
use super::fill;
use super::script::{Made, Purpose, ScriptCall};
use crate::model::{Caller, ContentDefinition, ContentFile, Resource, ResourceDefinition, RunId};
use crate::tools::attend::Lines;
use crate::tools::{Tools, internal};

/// A part as a script returns it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Part {
    uri: Option<String>,
    #[serde(rename = "mimeType")]
    mime_type: Option<String>,
    text: Option<String>,
    blob: Option<String>,
    #[serde(rename = "_meta")]
    meta: Option<Map<String, Value>>,
}

impl Seen {
    /// The entry that serves this URI, and the values that its template takes from it.
    pub fn resource(&self, uri: &str) -> Option<(&Entry, Map<String, Value>)> {
        if let Some(entry) = self.resources.get(uri) {
            return Some((entry, Map::new()));
        }
        self.templates.iter().find_map(|(template, entry)| template.matches(uri).map(|values| (entry, values)))
    }

    /// The skill and the file of it that this URI names.
    pub fn skill_file(&self, uri: &str) -> Option<(&Entry, &ContentFile)> {
        let (name, path) = uri.strip_prefix("skill://")?.split_once('/')?;
        let entry = self.skills.get(name)?;
        let file = entry.version.files.iter().find(|file| super::skills::encoded(&file.path) == path)?;
        Some((entry, file))
    }
}

impl Tools {
    pub(super) async fn read(
        &self,
        caller: &Caller,
        (uri, asked): (String, Asked),
        lines: Lines,
    ) -> Result<Step<Vec<Resource>>, ContentError> {
        let seen = self.seen_content(caller).await?;
        if let Some((_, file)) = seen.skill_file(&uri) {
            return Ok(Step::Done(vec![self.read_file(uri, file).await?]));
        }
        let Some((entry, values)) = seen.resource(&uri) else {
            let output = self.read_output(caller, &uri).await?;
            return output.map(|part| Step::Done(vec![part])).ok_or(ContentError::NoResource { uri });
        };
        match &entry.version.definition {
            ContentDefinition::Resource(resource) if resource.script.is_some() => {
                self.read_script(caller, (uri, asked), (entry, resource, values), lines).await
            }
            _ => self.read_static(uri, entry, &values).await.map(|part| Step::Done(vec![part])),
        }
    }

    /// The bytes of a file of this entry, as a part under this URI.
    async fn read_file(&self, uri: String, file: &ContentFile) -> Result<Resource, ContentError> {
        let bytes = self.store.content_bytes(&file.digest).await;
        let bytes = bytes.map_err(|error| internal("a file can't be read", &error))?;
        // It went between the list and here.
        let bytes = bytes.ok_or_else(|| ContentError::NoResource { uri: uri.clone() })?;
        Ok(part(uri, file.mime_type.clone(), bytes))
    }

    /// The static contents of a resource; those of a template have the values put in.
    async fn read_static(
        &self,
        uri: String,
        entry: &Entry,
        values: &Map<String, Value>,
    ) -> Result<Resource, ContentError> {
        let Some(file) = entry.version.files.first() else { return Err(ContentError::NoResource { uri }) };
        let mut part = self.read_file(uri, file).await?;
        if let (Some(text), None) = (&part.text, entry.item.uri()) {
            part.text = Some(fill::fill(text, &|name| values.get(name).map(fill::text_of)));
        }
        Ok(part)
    }

    async fn read_script(
        &self,
        caller: &Caller,
        (uri, asked): (String, Asked),
        (entry, resource, values): (&Entry, &ResourceDefinition, Map<String, Value>),
        lines: Lines,
    ) -> Result<Step<Vec<Resource>>, ContentError> {
        let Some(script) = &resource.script else { return Err(ContentError::NoResource { uri }) };
        let purpose = Purpose::Resource(uri.clone());
        let call = ScriptCall { entry, script, purpose, arguments: values, asked };
        let made = match self.run_script::<Vec<Part>>(caller, call, lines).await? {
            Step::Done(made) => made,
            Step::Asking(asking) => return Ok(Step::Asking(asking)),
        };
        let mime_type = resource.mime_type.as_deref();
        match made {
            Made::Printed(text, run) => printed(uri, mime_type, text, run).map(|part| Step::Done(vec![part])),
            Made::Returned(parts, run) if parts.is_empty() => Err(unusable("the script returned an empty list", run)),
            Made::Returned(parts, run) => {
                let parts = parts.into_iter().map(|part| returned(&uri, mime_type, part, run));
                parts.collect::<Result<_, _>>().map(Step::Done)
            }
        }
    }
}

fn unusable(text: &str, run: RunId) -> ContentError {
    ContentError::Failed { text: format!("{text} (run {run})"), run: Some(run) }
}

/// What a program printed: text, or base64 where the resource is of a binary type.
fn printed(uri: String, mime_type: Option<&str>, text: String, run: RunId) -> Result<Resource, ContentError> {
    let mime_type = mime_type.unwrap_or("text/plain").to_owned();
    if is_text(&mime_type) {
        return Ok(Resource { uri, mime_type: Some(mime_type), text: Some(text), blob: None, meta: None });
    }
    let base64: String = text.split_whitespace().collect();
    match STANDARD.decode(&base64) {
        Ok(_) => Ok(Resource { uri, mime_type: Some(mime_type), text: None, blob: Some(base64), meta: None }),
        Err(error) => {
            let text = format!("what a script prints for {mime_type} must be base64; {error}");
            Err(unusable(&text, run))
        }
    }
}

fn returned(uri: &str, mime_type: Option<&str>, part: Part, run: RunId) -> Result<Resource, ContentError> {
    if part.text.is_some() == part.blob.is_some() {
        return Err(unusable("each part has either `text` or `blob`", run));
    }
    // What the author said of the resource holds, unless the part says it of itself.
    let own = part.mime_type.or(mime_type.map(str::to_owned));
    let default = if part.text.is_some() { "text/plain" } else { "application/octet-stream" };
    let uri = part.uri.unwrap_or_else(|| uri.to_owned());
    Ok(Resource { uri, mime_type: own.or(Some(default.to_owned())), text: part.text, blob: part.blob, meta: part.meta })
}

/// Bytes as text where they are that and the type doesn't say otherwise, else as base64.
pub fn part(uri: String, mime_type: Option<String>, bytes: Vec<u8>) -> Resource {
    let binary = mime_type.as_deref().is_some_and(|kind| !is_text(kind));
    let (text, blob) = match String::from_utf8(bytes) {
        Ok(text) if !binary => (Some(text), None),
        Ok(text) => (None, Some(STANDARD.encode(text))),
        Err(error) => (None, Some(STANDARD.encode(error.as_bytes()))),
    };
    Resource { uri, mime_type, text, blob, meta: None }
}

/// Whether things of this type are text.
pub fn is_text(mime_type: &str) -> bool {
    let essence = mime_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let known = ["json", "xml", "yaml", "toml", "javascript", "typescript", "sql", "graphql", "x-sh", "x-ndjson"];
    let in_known = |kind: &str| {
        known
            .iter()
            .any(|known| kind == *known || kind.strip_suffix(known).is_some_and(|rest| rest.ends_with(['+', '-'])))
    };
    essence.starts_with("text/")
        || essence == "image/svg+xml"
        || essence.strip_prefix("application/").is_some_and(in_known)
}

/// The digest of a file: `sha256:` and 64 hexadecimal digits.
pub fn sha256(bytes: &[u8]) -> String {
    use std::fmt::Write as _;

    use sha2::Digest as _;

    let mut text = String::from("sha256:");
    for byte in sha2::Sha256::digest(bytes) {
        write!(text, "{byte:02x}").expect("writing to a String cannot fail");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_told_from_bytes_by_type_and_contents() {
        for (mime_type, bytes, is_blob) in [
            (Some("text/plain"), "é".as_bytes(), false),
            (Some("text/plain; charset=utf-8"), b"a", false),
            (Some("application/json"), b"{}", false),
            (Some("application/ld+json"), b"{}", false),
            (Some("image/svg+xml"), b"<svg/>", false),
            (Some("application/pdf"), b"%PDF", true),
            (Some("image/png"), b"a", true),
            (Some("text/plain"), b"\xff", true),
            (None, b"a", false),
            (None, b"\xff", true),
        ] {
            let part = part("a://b".into(), mime_type.map(str::to_owned), bytes.to_vec());
            assert_eq!((part.blob.is_some(), part.text.is_none()), (is_blob, is_blob), "{mime_type:?}");
        }
    }

    #[test]
    fn what_a_program_prints_for_a_binary_type_is_base64() {
        let run = RunId(uuid::Uuid::nil());
        let printed = |mime_type, text: &str| printed("a://b".into(), Some(mime_type), text.to_owned(), run);
        assert_eq!(printed("image/png", "iVBO\nRw==\n").unwrap().blob.unwrap(), "iVBORw==");
        assert_eq!(printed("text/x", "a\n").unwrap().text.unwrap(), "a\n");
        assert!(printed("image/png", "not base64!").unwrap_err().to_string().contains("must be base64"));
    }

    #[test]
    fn a_digest_is_that_of_the_standard() {
        let expected = "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(sha256(b"abc"), expected);
    }
}
