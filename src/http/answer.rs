//! The way of a response back: silence is broken by keep-alives, a legacy call outlives its connection, and what the
//! protocol layer says in plain text is said in JSON.

use std::convert::Infallible;
use std::pin::Pin;
use std::time::Duration;

use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use futures::{Stream, StreamExt as _};
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderName, HeaderValue, StatusCode};
use http_body_util::BodyExt as _;
use serde_json::value::RawValue;
use tokio::sync::mpsc;

use super::problem::{problem, refusal};
use crate::mcp::{self, Refusal};

/// How often a stream that was opened by silence says that it lives.
const KEEP_ALIVE: Duration = Duration::from_secs(10);
/// The most that is read of an error in plain text.
const ERROR_TEXT: usize = 64 << 10;

/// How a request is answered.
pub(super) struct Manner {
    /// After how long a silent call's response is opened as a stream; never for clients that read none.
    pub(super) silence: Option<Duration>,
    /// Whether the call goes on when its client is gone.
    pub(super) outlives_client: bool,
    /// The request's id.
    pub(super) id: Box<RawValue>,
}

type Pending = Pin<Box<dyn Future<Output = Response> + Send>>;

/// Answers a request: its status stays open until the protocol layer says something, or until it was silent for long.
///
/// # Cancellation
/// Dropping the response (or this future) drops the work, unless it outlives its client.
pub(super) async fn answer(work: impl Future<Output = mcp::Response> + Send + 'static, manner: Manner) -> Response {
    let id = manner.id;
    let work = async move { speak_json(work.await, &id).await };
    let work = async move { one_line(work.await) };
    let mut pending: Pending = if manner.outlives_client { Box::pin(detached(work)) } else { Box::pin(work) };
    let Some(silence) = manner.silence else { return pending.await };
    match tokio::time::timeout(silence, &mut pending).await {
        Ok(response) => response,
        Err(_) => opened(pending),
    }
}

/// Escapes what some clients take for the end of a line: an event's data is one line. In JSON these characters stand in
/// strings alone, and the protocol layer hands each message on in one piece.
fn one_line(response: Response) -> Response {
    response.map(|body| {
        Body::new(body.map_frame(|frame| frame.map_data(|data| escape_line_ends(&data).map_or(data, Bytes::from))))
    })
}

/// U+0085, U+2028 and U+2029 written as escapes; `None` where there are none.
fn escape_line_ends(data: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(data).ok().filter(|text| text.contains(['\u{85}', '\u{2028}', '\u{2029}']))?;
    Some(text.replace('\u{85}', "\\u0085").replace('\u{2028}', "\\u2028").replace('\u{2029}', "\\u2029"))
}

/// A response of the protocol layer that needs no care.
pub(super) fn adopt(response: mcp::Response) -> Response {
    let plain = !response.headers().contains_key(CONTENT_TYPE);
    if response.status().is_client_error() && plain {
        let status = response.status();
        return problem(status, "the protocol layer refused the request");
    }
    one_line(response.map(Body::new))
}

/// Runs the work to its end, whoever still listens.
async fn detached(work: impl Future<Output = Response> + Send + 'static) -> Response {
    let task = tokio::spawn(async move {
        let (parts, mut body) = work.await.into_parts();
        let (sender, mut receiver) = mpsc::channel::<Bytes>(16);
        tokio::spawn(async move {
            let mut listens = true;
            while let Some(Ok(frame)) = body.frame().await {
                let Ok(data) = frame.into_data() else { continue };
                listens = listens && sender.send(data).await.is_ok();
            }
        });
        let rest = futures::stream::poll_fn(move |context| receiver.poll_recv(context)).map(Ok::<_, Infallible>);
        Response::from_parts(parts, Body::from_stream(rest))
    });
    task.await.unwrap_or_else(|_| problem(StatusCode::INTERNAL_SERVER_ERROR, "the call broke off"))
}

/// A stream of comments until there is a response, and then that response as events.
fn opened(pending: Pending) -> Response {
    enum State {
        Waiting(Pending),
        Told(Pin<Box<dyn Stream<Item = Bytes> + Send>>),
    }
    let stream = futures::stream::unfold((State::Waiting(pending), true), |(state, first)| async move {
        let working = |pending| Some((Bytes::from_static(b": working\n\n"), (State::Waiting(pending), false)));
        match state {
            State::Waiting(pending) if first => working(pending),
            State::Waiting(mut pending) => match tokio::time::timeout(KEEP_ALIVE, &mut pending).await {
                Err(_) => working(pending),
                Ok(response) => {
                    let mut events = events(response);
                    let next = events.next().await?;
                    Some((next, (State::Told(events), false)))
                }
            },
            State::Told(mut events) => {
                let next = events.next().await?;
                Some((next, (State::Told(events), false)))
            }
        }
    });
    let mut response = Response::new(Body::from_stream(stream.map(Ok::<_, Infallible>)));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    headers.insert(HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no"));
    response
}

/// The response's body as the bytes of an event stream.
fn events(response: Response) -> Pin<Box<dyn Stream<Item = Bytes> + Send>> {
    let is_stream = is(&response, "text/event-stream");
    let body = response.into_body();
    if is_stream {
        return Box::pin(body.into_data_stream().filter_map(|data| async move { data.ok() }));
    }
    Box::pin(futures::stream::once(async move {
        let message = body.collect().await.map(http_body_util::Collected::to_bytes).unwrap_or_default();
        // Our JSON is on one line, as an event's data must be.
        Bytes::from([b"data: ", &message[..], b"\n\n"].concat())
    }))
}

/// An error that the protocol layer gave as plain text, as a JSON-RPC error for the request.
async fn speak_json(response: mcp::Response, id: &RawValue) -> Response {
    let response = response.map(Body::new);
    let status = response.status();
    if status.is_success() || is(&response, "application/json") {
        return response;
    }
    let text = axum::body::to_bytes(response.into_body(), ERROR_TEXT).await.unwrap_or_default();
    if status.is_server_error() {
        tracing::error!("The protocol layer failed: {}", String::from_utf8_lossy(&text));
        return refusal(status, &Refusal::new(-32603, "internal error; the server's log says more").with_id(Some(id)));
    }
    refusal(status, &Refusal::request(String::from_utf8_lossy(&text)).with_id(Some(id)))
}

fn is(response: &Response, kind: &str) -> bool {
    let named = response.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    named.is_some_and(|named| named.starts_with(kind))
}
