//! Batches: arrays of messages, which only 2025-03-26 knows.

use std::convert::Infallible;

use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use futures::StreamExt as _;
use futures::future::BoxFuture;
use http::StatusCode;
use http_body_util::BodyExt as _;
use serde_json::Value;
use serde_json::value::RawValue;

use super::answer::{self, event_stream, events, is};
use super::front::{Front, Visit, no_session};
use super::post::{accepted, refuse};
use super::problem::{json, refusal};
use crate::mcp::inbox::{Ids, check_batch, no_batches};
use crate::mcp::peek::{self, Message, Request};
use crate::mcp::{Era, Refusal};

/// How many messages of a batch without a session are served at once.
const AT_ONCE: usize = 8;

/// A message and its bytes, or the refusal of what is none.
type Item<'a> = Result<(Bytes, Message<'a>), Refusal>;

impl Front {
    /// Serves a batch: without a session, one array with the responses in the order of the requests; in a session, a
    /// stream on which each response comes when it is there, after its request's logs and progress.
    pub(super) async fn batch<'a>(&self, visit: &Visit, bytes: &Bytes, items: &[&'a RawValue]) -> Response {
        let session = match visit.session_id() {
            None => None,
            Some(id) => match self.server.session(id, &visit.caller.holder()) {
                Some(era) => Some(era),
                None => return no_session(),
            },
        };
        let era = visit.version().map_or(session, Era::parse);
        if era != Some(Era::V2025_03_26) {
            return refuse(visit, &no_batches());
        }
        if let Err(refused) = check_batch(items) {
            return refuse(visit, &refused);
        }
        let mut ids = Ids::default();
        let read = |item: &&'a RawValue| -> Item<'a> {
            let message = peek::message(item).and_then(|message| ids.check(message))?;
            Ok((bytes.slice_ref(item.get().as_bytes()), message))
        };
        let items: Vec<Item<'_>> = items.iter().map(read).collect();
        let silent = !items.iter().any(is_answered);
        let response = match session {
            Some(_) => self.batch_of_session(visit, items).await,
            None => self.batch_alone(visit, items.into_iter().filter(is_answered).collect()).await,
        };
        if silent { accepted() } else { response }
    }

    async fn batch_of_session(&self, visit: &Visit, items: Vec<Item<'_>>) -> Response {
        let mut responses = Vec::with_capacity(items.len());
        for item in items {
            let answered = is_answered(&item);
            let response = match item {
                Ok((bytes, Message::Request(request))) if self.is_plain(&request) => {
                    self.begin(visit, &bytes, &request).await
                }
                item => self.item(visit, item).await,
            };
            if answered {
                responses.push(events(response));
            }
        }
        let all = futures::stream::iter(responses).flatten_unordered(None);
        event_stream(Body::from_stream(all.map(Ok::<_, Infallible>)))
    }

    /// Whether nothing speaks against a request but what the protocol layer will say.
    fn is_plain(&self, request: &Request<'_>) -> bool {
        let refused = self.closing.is_cancelled() && request.method == "tools/call";
        !refused && request.fault.is_none() && request.meta.protocol_version.is_none()
    }

    /// Hands a request on to its session. The stream is there at once, so that the next request need not wait for it.
    async fn begin(&self, visit: &Visit, bytes: &Bytes, request: &Request<'_>) -> Response {
        let (body, arguments) = request.for_the_protocol_layer(bytes);
        answer::adopt(self.server.stateful(visit.forward(body, arguments, false)).await)
    }

    async fn batch_alone(&self, visit: &Visit, items: Vec<Item<'_>>) -> Response {
        let single = visit.alone_and_for_one_answer();
        let mut work: Vec<BoxFuture<'_, String>> = Vec::with_capacity(items.len());
        for item in items {
            work.push(Box::pin(async {
                let body = self.item(&single, item).await.into_body();
                let body = body.collect().await.map(http_body_util::Collected::to_bytes).unwrap_or_default();
                String::from_utf8_lossy(&body).into_owned()
            }));
        }
        let answers: Vec<String> = futures::stream::iter(work).buffered(AT_ONCE).collect().await;
        json(StatusCode::OK, "application/json", format!("[{}]", answers.join(",")))
    }

    /// What comes of one message; for a request, JSON-RPC.
    async fn item(&self, visit: &Visit, item: Item<'_>) -> Response {
        let (bytes, message) = match item {
            Ok(read) => read,
            Err(refused) => return refusal(StatusCode::OK, &refused),
        };
        let id = if let Message::Request(request) = &message { Some(request.id) } else { None };
        let response = Box::pin(self.message(visit, &bytes, message)).await;
        if is(&response, "application/json") || is(&response, "text/event-stream") {
            return response;
        }
        // HTTP's own refusals are about the whole request; here they are about one message of it.
        let document =
            response.into_body().collect().await.map(http_body_util::Collected::to_bytes).unwrap_or_default();
        let document: Value = serde_json::from_slice(&document).unwrap_or_default();
        let detail = document["detail"].as_str().unwrap_or("the request could not be served");
        refusal(StatusCode::OK, &Refusal::new(-32603, detail).with_id(id))
    }
}

/// Whether a response is due.
fn is_answered(item: &Item<'_>) -> bool {
    !matches!(item, Ok((_, Message::Notification { .. } | Message::Reply)))
}
