//! What a call answers: content blocks as MCP writes them, structured content, and the error flag.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{Json, RunId};

/// What a content block holds, with the field names of the MCP schema.
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
        /// A name for people.
        #[serde(skip_serializing_if = "Option::is_none")]
        title: Option<String>,
        /// What it is.
        #[serde(skip_serializing_if = "Option::is_none")]
        description: Option<String>,
        /// Such as `text/plain`.
        #[serde(rename = "mimeType", skip_serializing_if = "Option::is_none")]
        mime_type: Option<String>,
        /// How many bytes it has.
        #[serde(skip_serializing_if = "Option::is_none")]
        size: Option<u64>,
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
    /// `_meta`.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Map<String, Value>>,
}

impl Content {
    /// A text block.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text { text: text.into() }
    }
}

/// A content block: what it holds, and what is said about it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Block {
    /// What it holds.
    #[serde(flatten)]
    pub content: Content,
    /// Hints for the client.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub annotations: Option<Annotations>,
    /// `_meta` of the block.
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Map<String, Value>>,
}

/// Hints about a block: for whom it is, how much it matters, when what it shows has changed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Annotations {
    /// For whom; `None`: not said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub audience: Option<Vec<Audience>>,
    /// From 0 (may be left out) to 1 (needed).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority: Option<f64>,
    /// A moment as ISO 8601 text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_modified: Option<String>,
}

/// For whom a block is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Audience {
    /// The person.
    User,
    /// The model.
    Assistant,
}

impl Block {
    /// A text block.
    pub fn text(text: impl Into<String>) -> Self {
        Content::text(text).into()
    }
}

impl From<Content> for Block {
    fn from(content: Content) -> Self {
        Self { content, annotations: None, meta: None }
    }
}

/// Why a reply is an error, where that is not for the tool to say: doors with words of their own for it use them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The arguments are not those that are taken.
    Arguments,
    /// What was named does not exist.
    Missing,
    /// The name is another's, or something stands in the way.
    Taken,
    /// It has changed since it was read.
    Stale,
    /// The change does not say what it is a change of.
    Unconditional,
    /// Too much is going on.
    Busy,
    /// The time was over.
    Timeout,
}

/// The answer to a tool call, the same for every door.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CallReply {
    /// At least one block, a text block among them.
    pub content: Vec<Block>,
    /// The structured value, where there is one.
    pub structured: Option<Json>,
    /// Whether the tool failed in a way its caller can mend.
    pub is_error: bool,
    /// `_meta` of the result.
    pub meta: Option<Map<String, Value>>,
    /// The run, where the call was one.
    pub run: Option<RunId>,
    /// What kind of error it is, where it is none of the tool's own.
    pub fault: Option<Fault>,
}

impl CallReply {
    /// A reply of one text block.
    pub fn text(text: impl Into<String>) -> Self {
        Self { content: vec![Block::text(text)], ..Self::default() }
    }

    /// A failed reply of one text block.
    pub fn error(text: impl Into<String>) -> Self {
        Self { is_error: true, ..Self::text(text) }
    }

    /// A failed reply that says what kind of error it is.
    pub fn fault(fault: Fault, text: impl Into<String>) -> Self {
        Self { fault: Some(fault), ..Self::error(text) }
    }

    /// A reply with a value: structured, and its JSON as text.
    pub fn value(value: Value) -> Self {
        Self::json(Json::from(&value))
    }

    /// The same of a value that is JSON already; its text stays as it is written.
    pub fn json(json: Json) -> Self {
        Self { content: vec![Block::text(json.get())], structured: Some(json), ..Self::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_is_written_flat_and_read_back() {
        let text = r#"{"type":"text","text":"a","annotations":{"audience":["user"],"priority":0.5,"lastModified":"2026-01-02T03:04:05Z"},"_meta":{"com.example/a":1}}"#;
        let block: Block = serde_json::from_str(text).unwrap();
        assert_eq!(block.content, Content::text("a"));
        assert_eq!(serde_json::to_string(&block).unwrap(), text);
        assert_eq!(serde_json::to_string(&Block::text("b")).unwrap(), r#"{"type":"text","text":"b"}"#);
        let link = r#"{"type":"resource_link","uri":"a://b","name":"b","title":"B","size":3}"#;
        assert_eq!(serde_json::to_string(&serde_json::from_str::<Block>(link).unwrap()).unwrap(), link);
    }
}
