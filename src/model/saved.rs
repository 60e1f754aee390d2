//! Saved content besides tools: resources, prompts and skills, and their immutable versions.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{Content, PrincipalId, Timestamp, ToolDefinition, VersionNumber};

/// A content item's id (UUIDv7 text).
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ContentId(pub String);

/// What a content item is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ContentKind {
    /// Something to read, by its URI.
    Resource,
    /// Messages to begin with, by a name.
    Prompt,
    /// A `SKILL.md` with its files, by its name.
    Skill,
}

impl ContentKind {
    /// Every kind.
    pub const ALL: [Self; 3] = [Self::Resource, Self::Prompt, Self::Skill];

    /// The name used in JSON, SQL and texts.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Resource => "resource",
            Self::Prompt => "prompt",
            Self::Skill => "skill",
        }
    }

    /// The kind of that name.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == text)
    }
}

/// What every kind may say of itself.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct About {
    /// A name for people.
    #[serde(default)]
    pub title: Option<String>,
    /// What it is and when to use it.
    #[serde(default)]
    pub description: Option<String>,
    /// Icons (MCP shape).
    #[serde(default)]
    pub icons: Vec<Value>,
    /// Free words to search by.
    #[serde(default)]
    pub tags: Vec<String>,
    /// `_meta` of the listed entry.
    #[serde(default)]
    pub meta: Option<Map<String, Value>>,
}

/// Suggestions for the values of arguments or template variables.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Completions {
    /// Fixed values, by the argument's name.
    #[serde(default)]
    pub values: BTreeMap<String, Vec<String>>,
    /// A script that is asked for the others: `main(argument, value, arguments)` returns a list.
    #[serde(default)]
    pub script: Option<ToolDefinition>,
}

/// What stands on a version of a resource. Without a script, its bytes are the version's file with an empty path.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ResourceDefinition {
    /// What it says of itself.
    #[serde(flatten)]
    pub about: About,
    /// Its name for programs.
    pub name: String,
    /// Such as `text/plain`.
    pub mime_type: Option<String>,
    /// `audience`, `priority`, `lastModified`.
    #[serde(default)]
    pub annotations: Map<String, Value>,
    /// What makes its contents at each read.
    #[serde(default)]
    pub script: Option<ToolDefinition>,
    /// Suggestions for the variables of its URI template.
    #[serde(default)]
    pub completions: Completions,
}

/// An argument of a prompt.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PromptArgument {
    /// Its name.
    pub name: String,
    /// A name for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// What it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Whether it must be given.
    #[serde(default)]
    pub required: bool,
}

/// Who speaks a message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// The person.
    #[default]
    User,
    /// The model.
    Assistant,
}

/// A message of a prompt.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PromptMessage {
    /// Who speaks.
    pub role: Role,
    /// What.
    pub content: Content,
}

/// What stands on a version of a prompt.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PromptDefinition {
    /// What it says of itself.
    #[serde(flatten)]
    pub about: About,
    /// Its arguments, in order.
    #[serde(default)]
    pub arguments: Vec<PromptArgument>,
    /// The messages, with `{argument}` where values go; empty when a script makes them.
    #[serde(default)]
    pub messages: Vec<PromptMessage>,
    /// What makes the messages.
    #[serde(default)]
    pub script: Option<ToolDefinition>,
    /// Suggestions for the arguments.
    #[serde(default)]
    pub completions: Completions,
}

/// What stands on a version of a skill; its documents are the version's files, `SKILL.md` among them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SkillDefinition {
    /// What it says of itself.
    #[serde(flatten)]
    pub about: About,
    /// The front matter of `SKILL.md`, as JSON.
    pub frontmatter: Map<String, Value>,
}

/// Everything that stands on a version, but the bytes of its files.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum ContentDefinition {
    /// A resource.
    Resource(ResourceDefinition),
    /// A prompt.
    Prompt(PromptDefinition),
    /// A skill.
    Skill(SkillDefinition),
}

impl ContentDefinition {
    /// What it is.
    pub fn kind(&self) -> ContentKind {
        match self {
            Self::Resource(_) => ContentKind::Resource,
            Self::Prompt(_) => ContentKind::Prompt,
            Self::Skill(_) => ContentKind::Skill,
        }
    }

    /// What it says of itself.
    pub fn about(&self) -> &About {
        match self {
            Self::Resource(resource) => &resource.about,
            Self::Prompt(prompt) => &prompt.about,
            Self::Skill(skill) => &skill.about,
        }
    }

    /// The script that makes its contents.
    pub fn script(&self) -> Option<&ToolDefinition> {
        match self {
            Self::Resource(resource) => resource.script.as_ref(),
            Self::Prompt(prompt) => prompt.script.as_ref(),
            Self::Skill(_) => None,
        }
    }

    /// The suggestions for its arguments.
    pub fn completions(&self) -> Option<&Completions> {
        match self {
            Self::Resource(resource) => Some(&resource.completions),
            Self::Prompt(prompt) => Some(&prompt.completions),
            Self::Skill(_) => None,
        }
    }

    /// Every script on it.
    pub fn scripts(&self) -> impl Iterator<Item = &ToolDefinition> {
        self.script().into_iter().chain(self.completions().and_then(|completions| completions.script.as_ref()))
    }

    /// The same, to be changed.
    pub fn scripts_mut(&mut self) -> impl Iterator<Item = &mut ToolDefinition> {
        let (script, completions) = match self {
            Self::Resource(resource) => (resource.script.as_mut(), resource.completions.script.as_mut()),
            Self::Prompt(prompt) => (prompt.script.as_mut(), prompt.completions.script.as_mut()),
            Self::Skill(_) => (None, None),
        };
        script.into_iter().chain(completions)
    }
}

/// A file of a version, without its bytes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContentFile {
    /// Where it is within its content; empty for a resource's own bytes.
    pub path: String,
    /// Such as `text/markdown`.
    pub mime_type: Option<String>,
    /// How many bytes.
    pub size: u64,
    /// `sha256:` and 64 hexadecimal digits.
    pub digest: String,
}

/// A content item's row: what may change about it.
#[derive(Clone, Debug, PartialEq)]
pub struct ContentItem {
    /// Its id.
    pub id: ContentId,
    /// What it is.
    pub kind: ContentKind,
    /// A resource's URI or URI template; a prompt's or skill's name.
    pub name: String,
    /// Whose it is.
    pub owner: PrincipalId,
    /// Whether it is listed and served.
    pub enabled: bool,
    /// The version that is served; `None` while none may be.
    pub serving_version: Option<VersionNumber>,
    /// The newest version.
    pub latest_version: VersionNumber,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it changed last.
    pub updated_at: Timestamp,
}

/// One immutable version.
#[derive(Clone, Debug, PartialEq)]
pub struct ContentVersion {
    /// The item it belongs to.
    pub content: ContentId,
    /// Its number.
    pub number: VersionNumber,
    /// What it says.
    pub definition: ContentDefinition,
    /// Its files, by path.
    pub files: Vec<ContentFile>,
    /// BLAKE3 over the canonical JSON of definition and files, hex.
    pub fingerprint: String,
    /// When it was saved.
    pub created_at: Timestamp,
    /// By whom.
    pub created_by: PrincipalId,
    /// What happened: `create`, `update`, `rollback to 3`.
    pub note: String,
}

impl ContentItem {
    /// The URI that clients read it under, where it has one: templates and prompts have none.
    pub fn uri(&self) -> Option<String> {
        match self.kind {
            ContentKind::Resource => (!self.name.contains('{')).then(|| self.name.clone()),
            ContentKind::Prompt => None,
            ContentKind::Skill => Some(skill_uri(&self.name, "SKILL.md")),
        }
    }
}

/// The URI of a skill's file.
pub fn skill_uri(skill: &str, path: &str) -> String {
    format!("skill://{skill}/{path}")
}
