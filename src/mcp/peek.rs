//! A borrowed look at a JSON-RPC message: enough to route it and to refuse what is malformed, without building a tree
//! and without touching the bytes of `arguments`.

use std::borrow::Cow;

use bytes::Bytes;
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use super::RawArguments;
use super::era::Era;
use super::refusal::Refusal;
use crate::model::{Json, LogLevel};

/// The method that opens a subscription.
pub(super) const LISTEN: &str = "subscriptions/listen";

/// What a body holds.
pub enum Body<'a> {
    /// One message.
    One(Message<'a>),
    /// A JSON array of messages.
    Batch(Vec<&'a RawValue>),
}

/// One JSON-RPC message.
pub enum Message<'a> {
    /// A method with an id.
    Request(Box<Request<'a>>),
    /// A method without an id.
    Notification {
        /// The method.
        method: Cow<'a, str>,
    },
    /// A result or an error: the client answers us.
    Reply,
}

/// A request, looked into as far as routing needs.
pub struct Request<'a> {
    /// The id, as it was written.
    pub id: &'a RawValue,
    /// The method.
    pub method: Cow<'a, str>,
    /// The members of `params` that concern us.
    pub params: Params<'a>,
    /// The members of `params._meta` that concern us.
    pub meta: Meta<'a>,
    /// What is wrong with the parameters whatever the tool: -32602, unless the method itself does not exist.
    pub fault: Option<Refusal>,
}

/// The members of `params` that concern us, each as it was written.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Params<'a> {
    /// `_meta`.
    #[serde(borrow, default, deserialize_with = "present", rename = "_meta")]
    meta: Option<&'a RawValue>,
    /// `name`.
    #[serde(borrow, default, deserialize_with = "present")]
    name: Option<&'a RawValue>,
    /// `arguments`.
    #[serde(borrow, default, deserialize_with = "present")]
    pub arguments: Option<&'a RawValue>,
    /// `cursor`.
    #[serde(borrow, default, deserialize_with = "present")]
    pub cursor: Option<&'a RawValue>,
    /// `notifications` of `subscriptions/listen`.
    #[serde(borrow, default, deserialize_with = "present")]
    notifications: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    level: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    protocol_version: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    capabilities: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    client_info: Option<&'a RawValue>,
}

/// The members of `_meta` that concern us, each as it was written.
#[derive(Default, Deserialize)]
pub struct Meta<'a> {
    /// The protocol version: its presence makes a request a modern one.
    #[serde(borrow, default, deserialize_with = "present", rename = "io.modelcontextprotocol/protocolVersion")]
    pub protocol_version: Option<&'a RawValue>,
    /// What the client can do.
    #[serde(borrow, default, deserialize_with = "present", rename = "io.modelcontextprotocol/clientCapabilities")]
    pub client_capabilities: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present", rename = "io.modelcontextprotocol/clientInfo")]
    client_info: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present", rename = "io.modelcontextprotocol/logLevel")]
    log_level: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present", rename = "progressToken")]
    progress_token: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(borrow, default, deserialize_with = "present")]
    jsonrpc: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    id: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    method: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    params: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    result: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    error: Option<&'a RawValue>,
}

/// The part of a subscription's filter that an extension adds.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Filter<'a> {
    #[serde(borrow, default, deserialize_with = "present")]
    task_ids: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Implementation<'a> {
    #[serde(borrow)]
    #[expect(dead_code, reason = "only its presence is checked")]
    name: Cow<'a, str>,
    #[serde(borrow)]
    #[expect(dead_code, reason = "only its presence is checked")]
    version: Cow<'a, str>,
}

/// Tells `null` from absent, which `Option` alone does not.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}

/// Looks into a body.
///
/// # Errors
/// -32700 when it is no JSON, -32600 when it is no JSON-RPC.
pub fn read(body: &[u8]) -> Result<Body<'_>, Refusal> {
    let text = std::str::from_utf8(body).map_err(|error| Refusal::parse(format!("the body is not UTF-8: {error}")))?;
    let value: &RawValue =
        serde_json::from_str(text).map_err(|error| Refusal::parse(format!("the body is not JSON: {error}")))?;
    if value.get().starts_with('[') {
        let items: Vec<&RawValue> = serde_json::from_str(value.get())
            .map_err(|error| Refusal::parse(format!("the body is not JSON: {error}")))?;
        return Ok(Body::Batch(items));
    }
    message(value).map(Body::One)
}

/// Looks into one message.
///
/// # Errors
/// As [`read`].
pub fn message(value: &RawValue) -> Result<Message<'_>, Refusal> {
    if kind(value) != "an object" {
        return Err(Refusal::request(format!("a JSON-RPC message is an object, not {}", kind(value))));
    }
    let envelope: Envelope = serde_json::from_str(value.get())
        .map_err(|error| Refusal::request(format!("not a JSON-RPC message: {error}")))?;
    let id = envelope.id.filter(|id| is_id(id));
    let refuse = |text: &str| Refusal::request(text).with_id(id);
    if envelope.jsonrpc.and_then(text_of).as_deref() != Some("2.0") {
        return Err(refuse("the member `jsonrpc` must be \"2.0\""));
    }
    let Some(method) = envelope.method else {
        return if envelope.result.is_some() || envelope.error.is_some() {
            Ok(Message::Reply)
        } else {
            Err(refuse("the message has no `method`, no `result` and no `error`"))
        };
    };
    let method = text_of(method).ok_or_else(|| refuse("the member `method` must be a string"))?;
    let Some(written) = envelope.id else { return Ok(Message::Notification { method }) };
    let id = id.ok_or_else(|| {
        Refusal::request(format!("the member `id` must be a string or an integer, not {}", kind(written)))
    })?;
    let (params, meta, unreadable) = match members(envelope.params) {
        Ok((params, meta)) => (params, meta, None),
        Err(fault) => (Params::default(), Meta::default(), Some(fault)),
    };
    let mut request = Request { id, method, params, meta, fault: None };
    let fault = unreadable.or_else(|| request.check().err());
    request.fault = fault.map(|fault| fault.with_id(Some(id)));
    Ok(Message::Request(Box::new(request)))
}

fn members(params: Option<&RawValue>) -> Result<(Params<'_>, Meta<'_>), Refusal> {
    let Some(written) = params else { return Ok(<_>::default()) };
    if kind(written) != "an object" {
        return Err(Refusal::params(format!("`params` must be an object, not {}", kind(written))));
    }
    let params: Params =
        serde_json::from_str(written.get()).map_err(|error| Refusal::params(format!("bad `params`: {error}")))?;
    let meta = match params.meta {
        None => Meta::default(),
        Some(meta) if kind(meta) == "an object" => {
            serde_json::from_str(meta.get()).map_err(|error| Refusal::params(format!("bad `params._meta`: {error}")))?
        }
        Some(meta) => return Err(Refusal::params(format!("`params._meta` must be an object, not {}", kind(meta)))),
    };
    Ok((params, meta))
}

impl<'a> Request<'a> {
    /// The tool (or prompt) named.
    pub fn name(&self) -> Option<Cow<'a, str>> {
        self.params.name.and_then(text_of)
    }

    /// `params.protocolVersion` of `initialize`.
    pub fn asked_version(&self) -> Option<Cow<'a, str>> {
        self.params.protocol_version.and_then(text_of)
    }

    /// `_meta`'s protocol version, where it is a string.
    pub fn declared_version(&self) -> Option<Cow<'a, str>> {
        self.meta.protocol_version.and_then(text_of)
    }

    /// The refusal of a method that does not exist in the version that the request names: in `_meta`, else by `header`.
    pub fn unknown_method(&self, header: Option<&str>) -> Option<Refusal> {
        let declared = self.declared_version();
        let era = declared.as_deref().or(header).and_then(Era::parse)?;
        (!era.may_have(&self.method)).then(|| Refusal::method(&self.method).with_id(Some(self.id)))
    }

    /// Whether `_meta` holds all that a 2026-07-28 request must hold.
    pub fn has_modern_meta(&self) -> bool {
        self.declared_version().is_some()
            && self.meta.client_capabilities.is_some_and(|capabilities| kind(capabilities) == "an object")
    }

    /// Whether the request itself asks for progress or logs.
    pub fn asks_for_events(&self) -> bool {
        self.meta.progress_token.is_some() || self.meta.log_level.is_some()
    }

    /// Whether nothing in this request makes its answer differ from that to every other of its method.
    pub fn is_plain(&self) -> bool {
        self.params.cursor.is_none() && self.meta.progress_token.is_none()
    }

    /// The body as the protocol layer gets it. Arguments are taken out of it as they were written: that layer would round
    /// their numbers, and need not build them. A subscription's filter that names tasks is put into an array: that layer
    /// has no room for them in its own type and hands over what it can't read.
    pub fn for_the_protocol_layer(&self, body: &Bytes) -> (Bytes, Option<RawArguments>) {
        if let Some(arguments) = self.params.arguments.filter(|_| self.method == "tools/call") {
            let raw = Some(RawArguments(Json::from(arguments.to_owned())));
            return (replace(body, arguments, |_| b"{}".to_vec()), raw);
        }
        match self.params.notifications {
            Some(filter) if self.method == LISTEN && filter_of(filter).task_ids.is_some() => {
                (replace(body, filter, |text| [b"[", text, b"]"].concat()), None)
            }
            _ => (body.clone(), None),
        }
    }

    fn check(&self) -> Result<(), Refusal> {
        let token = self.meta.progress_token.filter(|token| !is_id(token));
        if let Some(token) = token {
            return Err(must_be("_meta.progressToken", "a string or an integer", token));
        }
        if let Some(level) = self.meta.log_level {
            check_level("_meta.io.modelcontextprotocol/logLevel", level)?;
        }
        if let Some(info) = self.meta.client_info {
            check_implementation("_meta.io.modelcontextprotocol/clientInfo", info)?;
        }
        match &*self.method {
            "tools/call" => self.check_call(),
            "tools/list" | "prompts/list" | "resources/list" | "resources/templates/list" => {
                self.params.cursor.map_or(Ok(()), |cursor| check_text("cursor", cursor))
            }
            "logging/setLevel" => check_level("level", self.params.level.ok_or_else(|| missing("level"))?),
            "initialize" => self.check_initialize(),
            LISTEN => self.params.notifications.map_or(Ok(()), check_filter),
            _ => Ok(()),
        }
    }

    fn check_call(&self) -> Result<(), Refusal> {
        check_text("name", self.params.name.ok_or_else(|| missing("name"))?)?;
        match self.params.arguments {
            Some(arguments) if kind(arguments) != "an object" => Err(must_be("arguments", "an object", arguments)),
            _ => Ok(()),
        }
    }

    fn check_initialize(&self) -> Result<(), Refusal> {
        check_text("protocolVersion", self.params.protocol_version.ok_or_else(|| missing("protocolVersion"))?)?;
        let capabilities = self.params.capabilities.ok_or_else(|| missing("capabilities"))?;
        if kind(capabilities) != "an object" {
            return Err(must_be("capabilities", "an object", capabilities));
        }
        check_implementation("clientInfo", self.params.client_info.ok_or_else(|| missing("clientInfo"))?)
    }
}

/// The text of a value that is borrowed from the body gives way to another.
fn replace(body: &Bytes, value: &RawValue, other: impl FnOnce(&[u8]) -> Vec<u8>) -> Bytes {
    let text = value.get();
    // The difference of the addresses is its place there.
    let start = (text.as_ptr() as usize).wrapping_sub(body.as_ptr() as usize);
    match (body.get(..start), body.get(start.wrapping_add(text.len())..)) {
        (Some(head), Some(tail)) => Bytes::from([head, &other(text.as_bytes()), tail].concat()),
        _ => body.clone(),
    }
}

fn filter_of(filter: &RawValue) -> Filter<'_> {
    serde_json::from_str(filter.get()).unwrap_or_default()
}

fn check_filter(filter: &RawValue) -> Result<(), Refusal> {
    if kind(filter) != "an object" {
        return Err(must_be("notifications", "an object", filter));
    }
    let Some(ids) = filter_of(filter).task_ids else { return Ok(()) };
    let texts = serde_json::from_str::<Vec<Cow<'_, str>>>(ids.get());
    texts.map(drop).map_err(|_| must_be("notifications.taskIds", "an array of strings", ids))
}

fn missing(member: &str) -> Refusal {
    Refusal::params(format!("`params.{member}` is missing"))
}

fn must_be(member: &str, what: &str, found: &RawValue) -> Refusal {
    Refusal::params(format!("`params.{member}` must be {what}, not {}", kind(found)))
}

fn check_text(member: &str, value: &RawValue) -> Result<(), Refusal> {
    if kind(value) == "a string" { Ok(()) } else { Err(must_be(member, "a string", value)) }
}

fn check_level(member: &str, value: &RawValue) -> Result<(), Refusal> {
    serde_json::from_str::<LogLevel>(value.get()).map(drop).map_err(|_| {
        Refusal::params(format!(
            "`params.{member}` must be one of debug, info, notice, warning, error, critical, alert, emergency"
        ))
    })
}

fn check_implementation(member: &str, value: &RawValue) -> Result<(), Refusal> {
    serde_json::from_str::<Implementation>(value.get()).map(drop).map_err(|_| {
        Refusal::params(format!("`params.{member}` must be an object with the strings `name` and `version`"))
    })
}

/// The JSON string's text.
fn text_of(value: &RawValue) -> Option<Cow<'_, str>> {
    #[derive(Deserialize)]
    struct Text<'a>(#[serde(borrow)] Cow<'a, str>);
    serde_json::from_str::<Text>(value.get()).ok().map(|text| text.0)
}

/// Whether the value may be a JSON-RPC id: a string, or an integer of 64 bits.
fn is_id(value: &RawValue) -> bool {
    match kind(value) {
        "a string" => true,
        "a number" => serde_json::from_str::<rmcp::model::NumberOrString>(value.get()).is_ok(),
        _ => false,
    }
}

fn kind(value: &RawValue) -> &'static str {
    match value.get().as_bytes().first() {
        Some(b'{') => "an object",
        Some(b'[') => "an array",
        Some(b'"') => "a string",
        Some(b't' | b'f') => "a boolean",
        Some(b'n') => "null",
        _ => "a number",
    }
}

#[cfg(test)]
mod tests;
