//! What a call answers: content blocks as MCP writes them, structured content, and the error flag.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{Json, RunId};

/// One content block, with the field names of the MCP schema.
/// Source: <https://modelcontextprotocol.io/specification/2025-11-25/schema#contentblock>.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Content {
    /// Plain text.
    Text {
        /// The text.
        text: String,
    },
    /// A picture.
    Image {
        /// Base64.
        data: String,
        /// Such as `image/png`.
        #[serde(rename = "mimeType")]
        mime_type: String,
    },
    /// A sound.
    Audio {
        /// Base64.
        data: String,
        /// Such as `audio/wav`.
        #[serde(rename = "mimeType")]
        mime_type: String,
    },
    /// A reference to a resource.
    ResourceLink {
        /// Where it is.
        uri: String,
        /// Its name.
        name: String,
        /// What it is.
        #[serde(skip_serializing_if = "Option::is_none")]
        description: Option<String>,
        /// Such as `text/plain`.
        #[serde(rename = "mimeType", skip_serializing_if = "Option::is_none")]
        mime_type: Option<String>,
    },
    /// A resource with its contents.
    Resource {
        /// The resource.
        resource: Resource,
    },
}

/// An embedded resource: `text` or `blob` (base64), one of the two.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Resource {
    /// Its URI.
    pub uri: String,
    /// Such as `text/plain`.
    #[serde(rename = "mimeType", skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<String>,
    /// The contents as text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// The contents as base64.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub blob: Option<String>,
}

impl Content {
    /// A text block.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text { text: text.into() }
    }
}

/// The answer to a tool call, the same for every door.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CallReply {
    /// At least one block, a text block among them.
    pub content: Vec<Content>,
    /// The structured value, where there is one.
    pub structured: Option<Json>,
    /// Whether the tool failed in a way its caller can mend.
    pub is_error: bool,
    /// `_meta` of the result.
    pub meta: Option<Map<String, Value>>,
    /// The run, where the call was one.
    pub run: Option<RunId>,
}

impl CallReply {
    /// A reply of one text block.
    pub fn text(text: impl Into<String>) -> Self {
        Self { content: vec![Content::text(text)], ..Self::default() }
    }

    /// A failed reply of one text block.
    pub fn error(text: impl Into<String>) -> Self {
        Self { is_error: true, ..Self::text(text) }
    }

    /// A reply with a value: structured, and its JSON as text.
    pub fn value(value: Value) -> Self {
        Self::json(Json::from(&value))
    }

    /// The same of a value that is JSON already; its text stays as it is written.
    pub fn json(json: Json) -> Self {
        Self { content: vec![Content::text(json.get())], structured: Some(json), ..Self::default() }
    }
}
