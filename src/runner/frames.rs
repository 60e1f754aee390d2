//! The harness's frames: a big-endian length, then that many bytes of JSON.

use std::borrow::Cow;
use std::sync::Arc;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use tokio::io::{AsyncRead, AsyncReadExt};

use super::mask::Masker;
use crate::model::{Block, Json, Language, ReturnValue, RunEvent, Style, ToolException};

/// What the harness is sent, once.
#[derive(Debug, Serialize)]
pub(super) struct Dispatch<'a> {
    /// The code's language, for harnesses that serve two.
    pub(super) language: Language,
    /// How the code is called.
    pub(super) style: Style,
    /// The code.
    pub(super) code: &'a str,
    /// The arguments, byte for byte.
    pub(super) arguments: &'a Json,
    /// Facts for the script's context.
    pub(super) context: &'a Value,
    /// The most bytes of a result.
    pub(super) result_limit: u64,
    /// Whether the code shall be looked at, not run.
    pub(super) inspect: bool,
}

impl Dispatch<'_> {
    /// The frame's bytes; `None` when they are more than a frame holds.
    pub(super) fn to_frame(&self) -> Option<Vec<u8>> {
        to_frame(self)
    }
}

/// The bytes of a frame; `None` when they are more than a frame holds.
pub(super) fn to_frame(message: &impl Serialize) -> Option<Vec<u8>> {
    let mut frame = vec![0u8; 4];
    serde_json::to_writer(&mut frame, message).expect("frames have string keys only");
    let length = u32::try_from(frame.len() - 4).ok()?;
    frame[..4].copy_from_slice(&length.to_be_bytes());
    Some(frame)
}

/// A frame of the harness's, understood.
#[derive(Debug, PartialEq)]
pub(super) enum Frame {
    /// Something the script says.
    Event(RunEvent),
    /// Something the script asks for and waits for.
    Request {
        /// The script's number for it.
        id: u64,
        /// What it wants.
        method: String,
        /// With what.
        params: Json,
    },
    /// What `main` handed back.
    Return(ReturnValue),
    /// The inspector's answer, whatever its shape.
    Answer(Value),
}

/// Why there is no frame.
#[derive(Debug, thiserror::Error)]
pub(super) enum FrameError {
    /// The length says more than a result may have, but not more than one could.
    #[error("the result has {length} bytes, more than the limit of {limit}")]
    TooLong { length: u64, limit: u64 },
    /// The length is absurd.
    #[error("the tool broke the result protocol: a frame of {length} bytes was announced")]
    Absurd { length: u64 },
    /// The bytes are no frame.
    #[error("the tool broke the result protocol: {reason}")]
    Malformed { reason: String },
}

/// Above this a length is taken for garbage.
const ABSURD: u64 = 1 << 28;
/// What a frame may hold around its value, and the least that any frame may have (log messages).
const ENVELOPE: u64 = 64 << 10;
const LEAST_LIMIT: u64 = 1 << 20;

/// Reads frames; keeps a half-read one when reading is cut short.
pub(super) struct FrameReader {
    buffer: Vec<u8>,
    result_limit: u64,
    masker: Option<Arc<Masker>>,
}

impl FrameReader {
    /// A reader for results of at most so many bytes, and without the secrets that this masker knows.
    pub(super) fn new(result_limit: u64, masker: Option<Arc<Masker>>) -> Self {
        Self { buffer: Vec::new(), result_limit, masker }
    }

    /// The next frame; `None` at the end of the stream.
    ///
    /// # Cancellation
    /// Safe: what has arrived stays in the buffer.
    pub(super) async fn next(&mut self, stream: &mut (impl AsyncRead + Unpin)) -> Result<Option<Frame>, FrameError> {
        loop {
            if let Some(bytes) = self.take()? {
                let bytes = match &self.masker {
                    Some(masker) => masker.json(bytes),
                    None => bytes,
                };
                return parse(&bytes).map(Some);
            }
            self.buffer.reserve(16 << 10);
            // A reset is the end as well: the tool is gone.
            if stream.read_buf(&mut self.buffer).await.unwrap_or(0) == 0 {
                return if self.buffer.is_empty() {
                    Ok(None)
                } else {
                    Err(FrameError::Malformed { reason: "the last frame is incomplete".to_owned() })
                };
            }
        }
    }

    /// Takes a whole frame from the buffer, where one is there.
    fn take(&mut self) -> Result<Option<Vec<u8>>, FrameError> {
        let Some(header) = self.buffer.first_chunk::<4>() else { return Ok(None) };
        let length = u64::from(u32::from_be_bytes(*header));
        let limit = self.result_limit.max(LEAST_LIMIT) + ENVELOPE;
        if length > ABSURD.max(limit) {
            return Err(FrameError::Absurd { length });
        }
        if length > limit {
            return Err(FrameError::TooLong { length, limit: self.result_limit });
        }
        let end = 4 + usize::try_from(length).expect("a length under the limit fits in memory");
        if self.buffer.len() < end {
            return Ok(None);
        }
        let rest = self.buffer.split_off(end);
        let mut frame = std::mem::replace(&mut self.buffer, rest);
        frame.drain(..4);
        Ok(Some(frame))
    }
}

/// A return frame. One flat shape for all kinds: a tagged enum would hold values in between, and round their numbers.
#[derive(Deserialize)]
struct Returned<'a> {
    #[serde(borrow)]
    kind: Cow<'a, str>,
    text: Option<String>,
    #[serde(default, borrow, deserialize_with = "present")]
    value: Option<&'a RawValue>,
    content: Option<Vec<Block>>,
    #[serde(default, borrow, deserialize_with = "present")]
    structured: Option<&'a RawValue>,
    meta: Option<Map<String, Value>>,
    #[serde(borrow)]
    data: Option<&'a RawValue>,
    code: Option<i32>,
    exception: Option<String>,
    message: Option<String>,
    #[serde(default)]
    traceback: String,
}

/// Tells `null` from absent, which `Option` alone does not.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}

impl Returned<'_> {
    fn understand(self) -> Result<ReturnValue, serde_json::Error> {
        let json = |raw: &RawValue| Json::from(raw.to_owned());
        Ok(match &*self.kind {
            "nothing" => ReturnValue::Nothing,
            "text" => ReturnValue::Text(needed(self.text, "text")?),
            "value" => ReturnValue::Value(json(needed(self.value, "value")?)),
            "content" => ReturnValue::Content(needed(self.content, "content")?),
            "result" => {
                let structured = self.structured.map(json);
                ReturnValue::Result { content: self.content, structured, meta: self.meta }
            }
            "tool_error" => ReturnValue::ToolError { text: needed(self.text, "text")?, data: self.data.map(json) },
            "protocol_error" => {
                ReturnValue::ProtocolError { code: needed(self.code, "code")?, text: needed(self.text, "text")? }
            }
            "exception" => ReturnValue::Exception(ToolException {
                kind: needed(self.exception, "exception")?,
                message: needed(self.message, "message")?,
                traceback: self.traceback,
            }),
            other => return Err(serde_json::Error::custom(format!("a result of the unknown kind `{other}`"))),
        })
    }
}

fn needed<T>(member: Option<T>, name: &'static str) -> Result<T, serde_json::Error> {
    member.ok_or_else(|| serde_json::Error::missing_field(name))
}

#[derive(Deserialize)]
struct Asked {
    id: u64,
    method: String,
    #[serde(default = "Json::empty_object")]
    params: Json,
}

fn parse(bytes: &[u8]) -> Result<Frame, FrameError> {
    #[derive(Deserialize)]
    struct Tag {
        r#type: String,
    }
    let malformed = |error: serde_json::Error| FrameError::Malformed { reason: error.to_string() };
    let tag: Tag = serde_json::from_slice(bytes).map_err(malformed)?;
    match tag.r#type.as_str() {
        "log" | "progress" => serde_json::from_slice(bytes).map(Frame::Event),
        "request" => serde_json::from_slice::<Asked>(bytes).map(|Asked { id, method, params }| Frame::Request {
            id,
            method,
            params,
        }),
        "return" => serde_json::from_slice::<Returned<'_>>(bytes).and_then(Returned::understand).map(Frame::Return),
        "inspected" | "code_error" => serde_json::from_slice(bytes).map(Frame::Answer),
        other => {
            let reason = format!("a frame of the unknown type `{other}`");
            return Err(FrameError::Malformed { reason });
        }
    }
    .map_err(malformed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(json: &str) -> Vec<u8> {
        [&(json.len() as u32).to_be_bytes()[..], json.as_bytes()].concat()
    }

    async fn read(bytes: Vec<u8>) -> Result<Option<Frame>, FrameError> {
        FrameReader::new(1000, None).next(&mut bytes.as_slice()).await
    }

    #[tokio::test]
    async fn frames_follow_each_other() {
        let mut bytes = frame(r#"{"type":"progress","progress":1,"total":2}"#);
        bytes.extend(frame(r#"{"type":"return","kind":"value","value":{"a":1.10}}"#));
        let (mut reader, mut stream) = (FrameReader::new(1000, None), bytes.as_slice());
        let first = reader.next(&mut stream).await.unwrap();
        assert_eq!(first, Some(Frame::Event(RunEvent::Progress { progress: 1.0, total: Some(2.0), message: None })));
        let second = reader.next(&mut stream).await.unwrap();
        assert_eq!(second, Some(Frame::Return(ReturnValue::Value(Json::parse(r#"{"a":1.10}"#.to_owned()).unwrap()))));
        assert_eq!(reader.next(&mut stream).await.unwrap(), None);
    }

    #[tokio::test]
    async fn a_forged_length_is_refused_before_its_bytes() {
        assert!(matches!(read(vec![0xff; 64]).await, Err(FrameError::Absurd { length: 0xffff_ffff })));
        let two_mebibytes = (2u32 << 20).to_be_bytes().to_vec();
        assert!(matches!(read(two_mebibytes).await, Err(FrameError::TooLong { length: 0x0020_0000, .. })));
    }

    #[tokio::test]
    async fn garbage_is_named() {
        for bytes in [
            frame("{"),
            frame(r#"{"type":"x"}"#),
            frame(r#"{"type":"return"}"#),
            frame(r#"{"type":"return","kind":"x"}"#),
            frame(r#"{"type":"return","kind":"text"}"#),
            b"\0\0\0\x09ab".to_vec(),
        ] {
            let error = read(bytes).await.unwrap_err();
            assert!(error.to_string().starts_with("the tool broke the result protocol: "), "{error}");
        }
    }
}
