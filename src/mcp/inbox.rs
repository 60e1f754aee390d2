//! What a client on a lasting connection says, read into messages for the protocol layer: a handshake is held for a client
//! that holds none, batches are taken apart where the client's version has them, and what is malformed is refused.

use std::collections::HashSet;

use bytes::Bytes;
use rmcp::model::{ClientJsonRpcMessage, GetExtensions as _, NumberOrString};
use rmcp::service::{RoleServer, RxJsonRpcMessage, TxJsonRpcMessage};
use serde_json::value::RawValue;

use super::era::Era;
use super::peek::{self, Body, Message, Request};
use super::refusal::Refusal;

/// The most messages of a batch.
pub const BATCH: usize = 100;
/// The id of the handshake that we hold on behalf of a client that holds none.
const OWN_HANDSHAKE: &str = "omniforge/handshake";

/// One connection's way of being read.
#[derive(Debug, Default)]
pub struct Inbox {
    /// The version that a handshake has agreed on.
    era: Option<Era>,
    opened: bool,
}

/// What was said at once.
#[derive(Debug, Default)]
pub struct Heard {
    /// For the protocol layer, in this order.
    pub messages: Vec<RxJsonRpcMessage<RoleServer>>,
    /// For the client, each for one message.
    pub refused: Vec<Refusal>,
}

impl Inbox {
    /// Reads a line or a body.
    pub fn read(&mut self, bytes: &Bytes) -> Heard {
        let mut heard = Heard::default();
        match peek::read(bytes) {
            Err(refused) => heard.refused.push(refused),
            Ok(Body::One(message)) => self.message(bytes, message, &mut heard),
            Ok(Body::Batch(items)) => self.batch(bytes, &items, &mut heard),
        }
        heard
    }

    /// Whether this is the answer to the handshake that we held ourselves: nobody waits for it.
    pub fn is_own(message: &TxJsonRpcMessage<RoleServer>) -> bool {
        matches!(message, TxJsonRpcMessage::<RoleServer>::Response(response) if response.id == own_id())
    }

    fn message(&mut self, bytes: &Bytes, message: Message<'_>, heard: &mut Heard) {
        match message {
            Message::Request(mut request) => {
                let fault = request.unknown_method(None).or_else(|| request.fault.take());
                match fault.map_or_else(|| read_request(bytes, &request), Err) {
                    Ok(message) => self.open(message, &request, heard),
                    Err(refused) => heard.refused.push(refused),
                }
            }
            // Before the handshake there is nothing that a notification or a reply could be about.
            _ if !self.opened => {}
            _ => heard.messages.extend(serde_json::from_slice::<ClientJsonRpcMessage>(bytes).ok()),
        }
    }

    /// A client that begins without a handshake gets one held for it.
    fn open(&mut self, message: RxJsonRpcMessage<RoleServer>, request: &Request<'_>, heard: &mut Heard) {
        let modern = request.meta.protocol_version.is_some();
        match &*request.method {
            "initialize" if self.era.is_none() => {
                self.opened = true;
                self.era = request.asked_version().map(|asked| Era::negotiate(&asked));
            }
            _ if self.opened => {}
            "server/discover" | "ping" => {}
            _ if modern => self.opened = request.has_modern_meta(),
            _ => {
                self.opened = true;
                heard.messages.push(own_handshake());
            }
        }
        heard.messages.push(message);
    }

    fn batch(&mut self, bytes: &Bytes, items: &[&RawValue], heard: &mut Heard) {
        if self.era != Some(Era::V2025_03_26) {
            heard.refused.push(no_batches());
            return;
        }
        if let Err(refused) = check_batch(items) {
            heard.refused.push(refused);
            return;
        }
        let mut ids = Ids::default();
        for item in items {
            let bytes = bytes.slice_ref(item.get().as_bytes());
            match peek::message(item).and_then(|message| ids.check(message)) {
                Ok(message) => self.message(&bytes, message, heard),
                Err(refused) => heard.refused.push(refused),
            }
        }
    }
}

/// The refusal of batches in every version but one.
pub fn no_batches() -> Refusal {
    Refusal::request("batches exist only in protocol version 2025-03-26; send one message at a time")
}

/// Checks how many messages a batch holds.
///
/// # Errors
/// -32600 when there are none, or too many.
pub fn check_batch(items: &[&RawValue]) -> Result<(), Refusal> {
    match items.len() {
        1..=BATCH => Ok(()),
        count => Err(Refusal::request(format!("a batch holds 1 to {BATCH} messages, not {count}"))),
    }
}

/// The ids of a batch's requests: no two may be the same, or their answers can't be told apart.
#[derive(Debug, Default)]
pub struct Ids(HashSet<String>);

impl Ids {
    /// Hands on a message that may be part of the batch.
    ///
    /// # Errors
    /// -32600 for a second request of the same id, and for `initialize`, which is never part of a batch.
    pub fn check<'a>(&mut self, message: Message<'a>) -> Result<Message<'a>, Refusal> {
        if let Message::Request(request) = &message {
            if request.method == "initialize" {
                let refused = Refusal::request("`initialize` must not be part of a batch");
                return Err(refused.with_id(Some(request.id)));
            }
            if !self.0.insert(request.id.get().to_owned()) {
                let refused = Refusal::request(format!("the id {} is used twice in this batch", request.id.get()));
                return Err(refused.with_id(Some(request.id)));
            }
        }
        Ok(message)
    }
}

fn read_request(bytes: &Bytes, request: &Request<'_>) -> Result<RxJsonRpcMessage<RoleServer>, Refusal> {
    let (body, arguments) = request.for_the_protocol_layer(bytes);
    let mut message: ClientJsonRpcMessage = serde_json::from_slice(&body)
        .map_err(|error| Refusal::request(format!("not a request: {error}")).with_id(Some(request.id)))?;
    if let (ClientJsonRpcMessage::Request(request), Some(arguments)) = (&mut message, arguments) {
        request.request.extensions_mut().insert(arguments);
    }
    Ok(message)
}

fn own_id() -> NumberOrString {
    NumberOrString::String(OWN_HANDSHAKE.into())
}

fn own_handshake() -> RxJsonRpcMessage<RoleServer> {
    serde_json::from_value(serde_json::json!({
        "jsonrpc": "2.0",
        "id": OWN_HANDSHAKE,
        "method": "initialize",
        "params": {
            "protocolVersion": Era::NEWEST_LEGACY.as_str(),
            "capabilities": {},
            "clientInfo": {"name": "unknown", "version": "0"},
        },
    }))
    .expect("the handshake above is one")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hear(inbox: &mut Inbox, text: &str) -> (usize, Vec<(i32, Option<String>)>) {
        let heard = inbox.read(&Bytes::copy_from_slice(text.as_bytes()));
        let refused = heard.refused.into_iter();
        (
            heard.messages.len(),
            refused.map(|refused| (refused.code, refused.id.map(|id| id.get().to_owned()))).collect(),
        )
    }

    fn opened(version: &str) -> Inbox {
        let mut inbox = Inbox::default();
        let hello = format!(
            r#"{{"jsonrpc":"2.0","id":0,"method":"initialize","params":{{"protocolVersion":"{version}","capabilities":{{}},"clientInfo":{{"name":"t","version":"1"}}}}}}"#
        );
        assert_eq!(hear(&mut inbox, &hello), (1, vec![]));
        inbox
    }

    const PING: &str = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    const LIST: &str = r#"{"jsonrpc":"2.0","id":2,"method":"tools/list"}"#;
    const NOTE: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;

    #[test]
    fn a_handshake_is_held_for_who_holds_none() {
        let mut inbox = Inbox::default();
        assert_eq!(hear(&mut inbox, NOTE), (0, vec![]));
        assert_eq!(hear(&mut inbox, PING), (1, vec![]));
        assert_eq!(hear(&mut inbox, LIST), (2, vec![]));
        assert_eq!(hear(&mut inbox, LIST), (1, vec![]));
        assert_eq!(hear(&mut inbox, NOTE), (1, vec![]));
    }

    #[test]
    fn a_batch_is_taken_apart_where_its_version_has_batches() {
        let batch = format!("[{PING},{NOTE},5,{LIST},{PING}]");
        let twice = (-32600, Some("1".to_owned()));
        assert_eq!(hear(&mut opened("2025-03-26"), &batch), (3, vec![(-32600, None), twice]));
        assert_eq!(hear(&mut opened("2025-03-26"), "[]"), (0, vec![(-32600, None)]));
        for version in ["2024-11-05", "2025-06-18", "2025-11-25"] {
            assert_eq!(hear(&mut opened(version), &batch), (0, vec![(-32600, None)]), "{version}");
        }
        assert_eq!(hear(&mut Inbox::default(), &batch), (0, vec![(-32600, None)]));
    }

    #[test]
    fn a_batch_is_bounded() {
        let mut inbox = opened("2025-03-26");
        let ids = |count: usize| {
            let items: Vec<String> =
                (0..count).map(|id| format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"}}"#)).collect();
            format!("[{}]", items.join(","))
        };
        assert_eq!(hear(&mut inbox, &ids(BATCH)).0, BATCH);
        assert_eq!(hear(&mut inbox, &ids(BATCH + 1)), (0, vec![(-32600, None)]));
    }
}
