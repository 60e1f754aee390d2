//! The way of a response back: silence is broken by keep-alives, a legacy call outlives its connection, and what the
//! protocol layer says in plain text is said in JSON.

use std::convert::Infallible;
use std::pin::Pin;
use std::time::Duration;

use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use futures::{Stream, StreamExt as _};
use http::header::{CACHE_CONTROL, CONTENT_LENGTH, CONTENT_TYPE};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use http_body_util::BodyExt as _;
use serde_json::value::RawValue;
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::oversize;
use super::problem::{problem, refusal};
use crate::mcp::{self, Refusal};

/// How often a response that was opened by silence says that it lives.
const KEEP_ALIVE: Duration = Duration::from_secs(10);
/// The sign of life in a stream.
const WORKING: Bytes = Bytes::from_static(b": working\n\n");
const EVENTS: &str = "text/event-stream";
const JSON: &str = "application/json";
/// The most that is read of an error in plain text.
const ERROR_TEXT: usize = 64 << 10;

/// How a request is answered.
pub(super) struct Manner {
    /// After how long a silent call's response is opened; never for clients that read no streams.
    pub(super) silence: Option<Duration>,
    /// Whether the client accepts plain JSON.
    pub(super) json: bool,
    /// Whether more than the reply may come: progress, logs, news.
    pub(super) tells: bool,
    /// Whether the call goes on when its client is gone.
    pub(super) outlives_client: bool,
    /// The most bytes of an event with a tool's result that the client is known to read.
    pub(super) event_limit: Option<usize>,
    /// The request's id.
    pub(super) id: Box<RawValue>,
}

type Pending = Pin<Box<dyn Future<Output = Response> + Send>>;

/// Answers a request: its status stays open until the protocol layer says something, or until it was silent for long. A
/// reply that is all there is to say is said in plain JSON: there are clients that read no event as large as a result
/// may be.
///
/// # Cancellation
/// Dropping the response (or this future) drops the work, unless it outlives its client.
pub(super) async fn answer(work: impl Future<Output = mcp::Response> + Send + 'static, manner: Manner) -> Response {
    let Manner { silence, json, tells, outlives_client, event_limit, id } = manner;
    let work = async move { speak_json(work.await, &id).await };
    let work = async move { one_line(work.await) };
    let mut pending: Pending = if outlives_client { Box::pin(detached(work)) } else { Box::pin(work) };
    let Some(silence) = silence else { return only_reply(pending.await).await };
    let deadline = Instant::now() + silence;
    let response = match tokio::time::timeout_at(deadline, &mut pending).await {
        Ok(response) if is(&response, EVENTS) => settled(response, json, deadline).await,
        Ok(response) => spoken(response, json),
        Err(_) if json && !tells => padded(pending),
        Err(_) => opened(pending),
    };
    match event_limit {
        Some(limit) if is(&response, EVENTS) => response
            .map(|body| Body::new(body.map_frame(move |frame| frame.map_data(|event| oversize::fit(event, limit))))),
        _ => response,
    }
}

/// A JSON response for a client that may accept event streams alone.
pub(super) fn spoken(response: Response, json: bool) -> Response {
    if json || !response.status().is_success() {
        return response;
    }
    let (mut parts, body) = response.into_parts();
    name_kind(&mut parts.headers, EVENTS);
    Response::from_parts(parts, Body::from_stream(as_event(body).map(Ok::<_, Infallible>)))
}

/// Waits for a stream's first message: when that is the reply, it is the whole response, in plain JSON.
async fn settled(response: Response, json: bool, deadline: Instant) -> Response {
    let (mut parts, mut body) = response.into_parts();
    let mut held: Vec<Bytes> = Vec::new();
    loop {
        let data = match tokio::time::timeout_at(deadline, body.frame()).await {
            Ok(Some(Ok(frame))) => frame.into_data().unwrap_or_default(),
            Ok(Some(Err(_)) | None) => break,
            Err(_) => {
                held.push(WORKING);
                break;
            }
        };
        match message(&data) {
            Some((message, true)) if json => {
                name_kind(&mut parts.headers, JSON);
                return Response::from_parts(parts, Body::from(message));
            }
            Some(_) => {
                held.push(data);
                break;
            }
            // What makes a stream resumable comes before its first message.
            None => held.push(data),
        }
    }
    let held = futures::stream::iter(held);
    let rest = body.into_data_stream().filter_map(|data| async move { data.ok() });
    Response::from_parts(parts, Body::from_stream(held.chain(rest).map(Ok::<_, Infallible>)))
}

/// The reply alone, in JSON, for clients that read no streams.
async fn only_reply(response: Response) -> Response {
    if !is(&response, EVENTS) {
        return response;
    }
    let (mut parts, body) = response.into_parts();
    name_kind(&mut parts.headers, JSON);
    Response::from_parts(parts, Body::from(reply_in(body).await))
}

/// The reply in the body of an event stream; nothing when it ends without one.
async fn reply_in(mut body: Body) -> Bytes {
    while let Some(Ok(frame)) = body.frame().await {
        if let Some((reply, true)) = frame.into_data().ok().as_ref().and_then(message) {
            return reply;
        }
    }
    Bytes::new()
}

/// The message of one event as the protocol layer writes it, and whether it is a reply. `None` for events without one.
pub(super) fn message(event: &Bytes) -> Option<(Bytes, bool)> {
    #[derive(serde::Deserialize)]
    struct Kind {
        method: Option<serde::de::IgnoredAny>,
    }
    let mut lines = event.split(|byte| *byte == b'\n');
    let data = lines.find_map(|line| line.strip_prefix(b"data:"))?.trim_ascii();
    let kind: Kind = serde_json::from_slice(data).ok()?;
    Some((event.slice_ref(data), kind.method.is_none()))
}

fn name_kind(headers: &mut HeaderMap, kind: &'static str) {
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    headers.insert(HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no"));
    headers.remove(CONTENT_LENGTH);
}

/// Escapes what some clients take for the end of a line: an event's data is one line. In JSON these characters stand in
/// strings alone, and the protocol layer hands each message on in one piece.
fn one_line(response: Response) -> Response {
    response.map(|body| {
        Body::new(body.map_frame(|frame| frame.map_data(|data| escape_line_ends(&data).map_or(data, Bytes::from))))
    })
}

/// The same for a message of our own making.
pub(super) fn one_line_text(message: String) -> String {
    escape_line_ends(message.as_bytes()).unwrap_or(message)
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
    kept_alive(pending, EVENTS, WORKING, events)
}

/// The response's body as the pieces of an event stream.
pub(super) fn events(response: Response) -> Pieces {
    if is(&response, EVENTS) {
        Box::pin(response.into_body().into_data_stream().filter_map(|data| async move { data.ok() }))
    } else {
        Box::pin(as_event(response.into_body()))
    }
}

/// White space until there is a response, and then that response: still one JSON value.
fn padded(pending: Pending) -> Response {
    kept_alive(pending, JSON, Bytes::from_static(b"\n"), |response| {
        Box::pin(futures::stream::once(async move {
            if is(&response, EVENTS) {
                reply_in(response.into_body()).await
            } else {
                collected(response.into_body()).await
            }
        }))
    })
}

pub(super) type Pieces = Pin<Box<dyn Stream<Item = Bytes> + Send>>;

/// A response that says that it lives until it can say what it has to.
fn kept_alive(pending: Pending, kind: &'static str, sign: Bytes, say: fn(Response) -> Pieces) -> Response {
    enum State {
        Waiting(Pending),
        Told(Pieces),
    }
    let stream = futures::stream::unfold((State::Waiting(pending), true), move |(state, first)| {
        let sign = sign.clone();
        async move {
            let mut pieces = match state {
                State::Waiting(pending) if first => return Some((sign, (State::Waiting(pending), false))),
                State::Waiting(mut pending) => match tokio::time::timeout(KEEP_ALIVE, &mut pending).await {
                    Err(_) => return Some((sign, (State::Waiting(pending), false))),
                    Ok(response) => say(response),
                },
                State::Told(pieces) => pieces,
            };
            let next = pieces.next().await?;
            Some((next, (State::Told(pieces), false)))
        }
    });
    let mut response = Response::new(Body::from_stream(stream.map(Ok::<_, Infallible>)));
    name_kind(response.headers_mut(), kind);
    response
}

/// A response of events that no cache and no proxy holds back.
pub fn event_stream(events: Body) -> Response {
    let mut response = Response::new(events);
    name_kind(response.headers_mut(), EVENTS);
    response
}

/// A JSON body as one event. Our JSON is on one line, as an event's data must be.
fn as_event(body: Body) -> impl Stream<Item = Bytes> + Send + use<> {
    futures::stream::once(async move { Bytes::from([b"data: ", &collected(body).await[..], b"\n\n"].concat()) })
}

async fn collected(body: Body) -> Bytes {
    body.collect().await.map(http_body_util::Collected::to_bytes).unwrap_or_default()
}

/// An error that the protocol layer gave as plain text, as a JSON-RPC error for the request.
async fn speak_json(response: mcp::Response, id: &RawValue) -> Response {
    let response = response.map(Body::new);
    let status = response.status();
    if status.is_success() || is(&response, JSON) {
        return response;
    }
    let text = axum::body::to_bytes(response.into_body(), ERROR_TEXT).await.unwrap_or_default();
    if status.is_server_error() {
        tracing::error!("The protocol layer failed: {}", String::from_utf8_lossy(&text));
        return refusal(status, &Refusal::new(-32603, "internal error; the server's log says more").with_id(Some(id)));
    }
    refusal(status, &Refusal::request(String::from_utf8_lossy(&text)).with_id(Some(id)))
}

pub(super) fn is(response: &Response, kind: &str) -> bool {
    let named = response.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    named.is_some_and(|named| named.starts_with(kind))
}
