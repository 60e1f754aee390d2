//! Batches: arrays of messages, which only 2025-03-26 knows.

use axum::response::Response;
use bytes::Bytes;
use futures::StreamExt as _;
use futures::future::BoxFuture;
use http::StatusCode;
use http_body_util::BodyExt as _;
use serde_json::value::RawValue;

use super::front::{Front, Visit, no_session};
use super::post::{accepted, refuse};
use super::problem::json;
use crate::mcp::peek::{self, Message};
use crate::mcp::{Era, Refusal};

/// The most messages of a batch.
const MESSAGES: usize = 100;
/// How many of them are served at once.
const AT_ONCE: usize = 8;

impl Front {
    /// Serves a batch: one array with the responses, in the order of the requests.
    pub(super) async fn batch(&self, visit: &Visit, bytes: &Bytes, items: &[&RawValue]) -> Response {
        let session = match visit.session_id() {
            None => None,
            Some(id) => match self.server.session(id, &visit.caller.principal) {
                Some(era) => Some(era),
                None => return no_session(),
            },
        };
        let era = visit.version().map_or(session, Era::parse);
        if era != Some(Era::V2025_03_26) {
            let text = "batches exist only in protocol version 2025-03-26; send one message per request";
            return refuse(visit, &Refusal::request(text));
        }
        if items.is_empty() || items.len() > MESSAGES {
            return refuse(
                visit,
                &Refusal::request(format!("a batch holds 1 to {MESSAGES} messages, not {}", items.len())),
            );
        }
        let single = visit.alone_and_for_one_answer();
        let mut work: Vec<BoxFuture<'_, Option<String>>> = Vec::with_capacity(items.len());
        for item in items {
            work.push(Box::pin(self.item(visit, &single, bytes, item)));
        }
        let served = futures::stream::iter(work).buffered(AT_ONCE);
        let answers: Vec<String> = served.filter_map(std::future::ready).collect().await;
        if answers.is_empty() {
            accepted()
        } else {
            json(StatusCode::OK, "application/json", format!("[{}]", answers.join(",")))
        }
    }

    /// One message of a batch; its response, where it has one.
    async fn item(&self, visit: &Visit, single: &Visit, bytes: &Bytes, item: &RawValue) -> Option<String> {
        let bytes = bytes.slice_ref(item.get().as_bytes());
        let response = match peek::message(item) {
            Err(refused) => return Some(refused.to_json()),
            Ok(Message::Request(request)) if request.method == "initialize" => {
                let refused = Refusal::request("`initialize` must not be part of a batch").with_id(Some(request.id));
                return Some(refused.to_json());
            }
            Ok(message @ Message::Request(_)) => Box::pin(self.message(single, &bytes, message)).await,
            Ok(message) => {
                Box::pin(self.message(visit, &bytes, message)).await;
                return None;
            }
        };
        let body = response.into_body().collect().await.ok()?.to_bytes();
        String::from_utf8(body.to_vec()).ok()
    }
}
