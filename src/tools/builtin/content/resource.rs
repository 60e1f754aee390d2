//! What an author gave for a resource, checked and put together.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::scripts::{self, CompletionsDraft, Options, suggester};
use super::{Wanted, about, new_file, wrong};
use crate::model::{Completions, ContentDefinition, ResourceDefinition};
use crate::tools::Tools;
use crate::tools::authoring::Draft;
use crate::tools::builtin::Failed;
use crate::tools::content::{UriTemplate, check_uri, places};

/// The most bytes of a resource's own contents.
const BYTES: usize = 8 << 20;

/// The fields of `omniforge_save_resource`.
#[derive(Deserialize)]
pub(super) struct ResourceDraft {
    pub(super) uri: String,
    name: Option<String>,
    mime_type: Option<String>,
    text: Option<String>,
    blob: Option<String>,
    annotations: Option<Map<String, Value>>,
    #[serde(default)]
    options: Options,
    #[serde(flatten)]
    completions: CompletionsDraft,
    #[serde(flatten)]
    draft: Draft,
}

impl ResourceDraft {
    /// Whether it says what is to be read.
    pub(super) fn has_contents(&self) -> bool {
        self.text.is_some() || self.blob.is_some() || self.draft.code.is_some()
    }
}

impl Tools {
    pub(super) async fn resource_from(
        &self,
        given: ResourceDraft,
        before: Option<&ContentDefinition>,
    ) -> Result<Wanted, Failed> {
        let variables = variables(&given.uri)?;
        let ResourceDraft { uri, name, mime_type, text, blob, annotations, completions, options, draft } = given;
        check_mime_type(mime_type.as_deref())?;
        check_annotations(annotations.as_ref())?;
        if draft.code.is_none() {
            options.check_unscripted(&draft)?;
        }
        let draft = options.complete(draft).checked(&self.options.ceilings)?;
        let language = draft.language.clone();
        let mut definition = ResourceDefinition {
            about: about(&draft),
            name: resource_name(name.as_deref(), &uri)?,
            mime_type,
            annotations: annotations.unwrap_or_default(),
            script: None,
            completions: Completions::default(),
        };
        let mut wanted = match (text, blob, draft.code.is_some()) {
            (None, None, true) => self.scripted((&uri, draft), definition, &variables, before).await?,
            (Some(text), None, false) => {
                definition.mime_type.get_or_insert_with(|| "text/plain".to_owned());
                let warnings = unknown_places(&text, &variables);
                Wanted { warnings, ..fixed(uri, &draft, definition, ("text", text.into_bytes()))? }
            }
            (None, Some(blob), false) => {
                definition.mime_type.get_or_insert_with(|| "application/octet-stream".to_owned());
                let bytes = base64("blob", &blob)?;
                fixed(uri, &draft, definition, ("blob", bytes))?
            }
            _ => return wrong("text", "give exactly one of `text`, `blob` (base64) and `code`"),
        };
        if let ContentDefinition::Resource(resource) = &mut wanted.definition {
            resource.completions =
                self.content_completions(completions, &variables, (language, suggester(before))).await?;
        }
        Ok(wanted)
    }

    async fn scripted(
        &self,
        (uri, draft): (&str, Draft),
        mut resource: ResourceDefinition,
        variables: &[String],
        before: Option<&ContentDefinition>,
    ) -> Result<Wanted, Failed> {
        let enabled = draft.enabled;
        let script =
            self.content_script(uri, draft, Some(variables), before.and_then(ContentDefinition::script)).await?;
        scripts::check_parameters(&script.definition, variables)?;
        if script.definition.inferred.description && script.definition.description != uri {
            resource.about.description = Some(script.definition.description.clone());
        }
        resource.script = Some(script.definition);
        Ok(Wanted {
            name: uri.to_owned(),
            definition: ContentDefinition::Resource(resource),
            files: Vec::new(),
            enabled,
            understood: script.understood,
            warnings: script.warnings,
        })
    }
}

/// A resource whose contents are these bytes, given in this field.
fn fixed(
    uri: String,
    draft: &Draft,
    definition: ResourceDefinition,
    (field, bytes): (&str, Vec<u8>),
) -> Result<Wanted, Failed> {
    if bytes.len() > BYTES {
        return wrong(field, format!("it is {} bytes; at most {BYTES} are allowed", bytes.len()));
    }
    Ok(Wanted {
        name: uri,
        files: vec![new_file("", definition.mime_type.clone(), bytes)],
        definition: ContentDefinition::Resource(definition),
        enabled: draft.enabled,
        understood: Vec::new(),
        warnings: Vec::new(),
    })
}

/// A warning about places that no variable of the template fills.
fn unknown_places(text: &str, variables: &[String]) -> Vec<String> {
    if variables.is_empty() {
        return Vec::new();
    }
    let unknown: Vec<&str> =
        places(text).into_iter().filter(|name| !variables.iter().any(|known| known == name)).collect();
    if unknown.is_empty() {
        return Vec::new();
    }
    vec![format!(
        "the text has {{{}}}, which is no variable of the URI template and stays as it is",
        unknown.join("}, {")
    )]
}

/// The bytes of base64.
pub(super) fn base64(field: &str, text: &str) -> Result<Vec<u8>, Failed> {
    let text: String = text.split_ascii_whitespace().collect();
    STANDARD.decode(text).or_else(|error| wrong(field, format!("it is no base64: {error}")))
}

/// The variables of a URI template; none for a URI.
fn variables(uri: &str) -> Result<Vec<String>, Failed> {
    if !uri.contains(['{', '}']) {
        return check_uri(uri).map(|()| Vec::new()).or_else(|error| wrong("uri", error));
    }
    match UriTemplate::parse(uri) {
        Ok(template) => Ok(template.variables().into_iter().map(str::to_owned).collect()),
        Err(error) => wrong("uri", error),
    }
}

/// The name for programs: as given, else the last part of the URI.
fn resource_name(given: Option<&str>, uri: &str) -> Result<String, Failed> {
    let name = match given {
        Some(given) => given,
        None => uri.trim_end_matches('/').rsplit(['/', ':']).next().unwrap_or(uri),
    };
    let clean = crate::tools::authoring::clean(name);
    if clean.is_empty() || clean != name || name.chars().count() > 200 {
        return wrong("name", "it must be 1 to 200 visible characters");
    }
    Ok(clean)
}

/// `type/subtype`, perhaps with parameters.
pub(super) fn check_mime_type(mime_type: Option<&str>) -> Result<(), Failed> {
    let Some(text) = mime_type else { return Ok(()) };
    let token =
        |text: &str| !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || "!#$&-^_.+".contains(c));
    let essence = text.split(';').next().unwrap_or_default().trim_end();
    let right = essence.split_once('/').is_some_and(|(kind, subtype)| token(kind) && token(subtype));
    let plain = text.len() <= 200 && text.chars().all(|c| c.is_ascii_graphic() || c == ' ');
    if right && plain { Ok(()) } else { wrong("mime_type", format!("`{text}` is none; one looks like text/plain")) }
}

fn check_annotations(annotations: Option<&Map<String, Value>>) -> Result<(), Failed> {
    for (key, value) in annotations.into_iter().flatten() {
        let right = match key.as_str() {
            "audience" => value.as_array().is_some_and(|who| who.iter().all(|who| who == "user" || who == "assistant")),
            "priority" => value.as_f64().is_some_and(|priority| (0.0..=1.0).contains(&priority)),
            "lastModified" => value.as_str().is_some_and(is_moment),
            _ => false,
        };
        if !right {
            let known = "audience (a list of user, assistant), priority (0 to 1), lastModified (an RFC 3339 time)";
            return wrong("annotations", format!("`{key}`: {value} is not usable; known are {known}"));
        }
    }
    Ok(())
}

fn is_moment(text: &str) -> bool {
    time::OffsetDateTime::parse(text, &time::format_description::well_known::Rfc3339).is_ok()
}
