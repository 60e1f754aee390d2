//! The protocol's doors: who calls, from where, with which HTTP method.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::Response;
use bytes::Bytes;
use http::header::{ACCEPT, ALLOW, AUTHORIZATION, CONTENT_TYPE, COOKIE, ORIGIN};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method, StatusCode, Uri};
use http_body_util::Full;
use tokio_util::sync::CancellationToken;

use super::gate::{self, Gate};
use super::identify::{self, Identify};
use super::problem::problem;
use super::{HttpOptions, answer, ending};
use crate::mcp::{Era, Identity, OneAnswer, RawArguments, Server};
use crate::model::{Caller, Scope};

/// The first protocol version without a handshake, as headers write it.
pub(super) const MODERN: &str = "2026-07-28";

/// Everything that a request to this door needs.
pub(super) struct Front {
    pub(super) server: Server,
    pub(super) identify: Arc<dyn Identify>,
    pub(super) gate: Gate,
    pub(super) options: HttpOptions,
    pub(super) closing: CancellationToken,
}

/// A request whose caller is known and welcome.
pub(super) struct Visit {
    pub(super) caller: Arc<Caller>,
    pub(super) parts: Parts,
    /// Cancelled when the caller's credential counts no more.
    pub(super) ended: CancellationToken,
}

/// The doors of the protocol.
#[derive(Clone, Copy)]
enum Door {
    /// Streamable HTTP.
    Mcp,
    /// The stream of the transport before it.
    Sse,
    /// That transport's messages.
    Messages,
}

/// Any request to `/mcp`.
pub(super) async fn mcp(State(front): State<Arc<Front>>, request: Request) -> Response {
    front.answer(Door::Mcp, request).await
}

/// Any request to `/sse`.
pub(super) async fn sse(State(front): State<Arc<Front>>, request: Request) -> Response {
    front.answer(Door::Sse, request).await
}

/// Any request to `/messages`.
pub(super) async fn messages(State(front): State<Arc<Front>>, request: Request) -> Response {
    front.answer(Door::Messages, request).await
}

/// Middleware: at `/`, who speaks the protocol is served as at `/mcp`; everybody else is not our business.
pub(super) async fn root(State(front): State<Arc<Front>>, request: Request, next: Next) -> Response {
    if request.uri().path() == "/" && speaks_protocol(request.method(), request.headers()) {
        return front.answer(Door::Mcp, request).await;
    }
    next.run(request).await
}

/// Whether a request to `/` can only be one of the protocol. A GET that takes a page or plain JSON is not.
fn speaks_protocol(method: &Method, headers: &HeaderMap) -> bool {
    match *method {
        Method::POST | Method::DELETE => true,
        Method::OPTIONS => gate::is_preflight(method, headers),
        Method::GET => {
            let takes = |kind| accepts(headers, kind);
            let only_streams = takes("text/event-stream") && !takes("application/json") && !takes("text/html");
            headers.contains_key("mcp-session-id") || only_streams
        }
        _ => false,
    }
}

impl Front {
    async fn answer(&self, door: Door, request: Request) -> Response {
        if gate::is_preflight(request.method(), request.headers()) {
            return self.gate.preflight(request.headers());
        }
        let origin = request.headers().get(ORIGIN).cloned();
        let mut response = self.enter(door, request).await;
        self.gate.open_to(origin.as_ref(), &mut response);
        response
    }

    async fn enter(&self, door: Door, request: Request) -> Response {
        let (parts, body) = request.into_parts();
        let authorization = parts.headers.get(AUTHORIZATION);
        let caller = match self.identify.identify(authorization).await {
            // Nobody approves over this protocol, whatever the token.
            Ok(mut caller) => {
                caller.scopes = caller.scopes.without(Scope::Approve);
                Arc::new(caller.from_source(ending::peer(&parts.extensions)))
            }
            Err(error) => return identify::refused(&error, authorization),
        };
        let bearer = authorization.is_some() && caller.token_id.is_some();
        if let Err(refused) = self.gate.check(&parts.uri, &parts.headers, bearer) {
            return refused;
        }
        let caller = match self.within(caller, &parts.uri).await {
            Ok(caller) => caller,
            Err(refused) => return *refused,
        };
        let ended = self.identify.ended(&caller);
        let visit = Visit { caller, parts, ended: ended.clone() };
        let response = tokio::select! {
            response = self.serve(door, visit, body) => response,
            () = ended.cancelled() => return ending::credential_ended(),
        };
        ending::until(ended, response)
    }

    /// The caller within the toolset that the path names, if it names one.
    async fn within(&self, caller: Arc<Caller>, uri: &Uri) -> Result<Arc<Caller>, Box<Response>> {
        let Some(name) = uri.path().strip_prefix("/mcp/") else { return Ok(caller) };
        match self.server.within(&caller, name).await {
            Ok(Some(within)) => Ok(Arc::new(within)),
            Ok(None) => {
                let detail =
                    format!("there is no toolset `{name}` for you; `omniforge toolset list` shows those there are");
                Err(Box::new(problem(StatusCode::NOT_FOUND, detail)))
            }
            Err(error) => Err(Box::new(problem(StatusCode::INTERNAL_SERVER_ERROR, error.to_string()))),
        }
    }

    async fn serve(&self, door: Door, visit: Visit, body: Body) -> Response {
        match (door, &visit.parts.method) {
            (Door::Mcp, &Method::POST) => self.post(visit, body).await,
            (Door::Mcp, &Method::GET) => self.get(visit).await,
            (Door::Mcp, &Method::DELETE) => self.delete(visit).await,
            (Door::Mcp, _) => visit.not_allowed("POST, GET, DELETE"),
            (Door::Sse, &Method::GET) => self.sse(&visit),
            (Door::Sse, _) => visit.not_allowed("GET"),
            (Door::Messages, &Method::POST) => self.say(visit, body).await,
            (Door::Messages, _) => visit.not_allowed("POST"),
        }
    }

    /// The stream on which a legacy session hears of changes.
    async fn get(&self, visit: Visit) -> Response {
        let Some(id) = visit.session_id() else {
            return visit.not_allowed("POST");
        };
        if !visit.accepts_stream() {
            let detail = "this stream is sent as text/event-stream; the request must accept that";
            return problem(StatusCode::NOT_ACCEPTABLE, detail);
        }
        if let Some(refused) = visit.unknown_version() {
            return refused;
        }
        if self.server.session(id, &visit.caller.holder()).is_none() {
            return no_session();
        }
        answer::adopt(self.server.stateful(visit.forward(Bytes::new(), None, false)).await)
    }

    async fn delete(&self, visit: Visit) -> Response {
        let Some(id) = visit.session_id() else {
            return visit.not_allowed("POST");
        };
        if self.server.session(id, &visit.caller.holder()).is_none() {
            return no_session();
        }
        self.server.close_session(id).await;
        let mut response = Response::new(Body::empty());
        *response.status_mut() = StatusCode::NO_CONTENT;
        response
    }
}

impl Visit {
    /// A header's text.
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.parts.headers.get(name).and_then(|value| value.to_str().ok())
    }

    /// The protocol version that the header names.
    pub(super) fn version(&self) -> Option<&str> {
        self.header("mcp-protocol-version").map(str::trim)
    }

    /// Whether the header alone makes this a modern request.
    pub(super) fn names_modern(&self) -> bool {
        self.version().is_some_and(|version| Era::parse(version).map_or(version >= MODERN, Era::is_modern))
    }

    /// The session that the request belongs to; modern requests belong to none.
    pub(super) fn session_id(&self) -> Option<&str> {
        if self.names_modern() {
            return None;
        }
        self.parts.headers.get("mcp-session-id").map(|id| id.to_str().unwrap_or(""))
    }

    /// Whether the client reads event streams.
    pub(super) fn accepts_stream(&self) -> bool {
        accepts(&self.parts.headers, "text/event-stream")
    }

    /// Whether the client reads plain JSON: only one that lists other things alone does not.
    pub(super) fn accepts_json(&self) -> bool {
        let named = ["application/json", "application/*", "*/*"];
        !self.parts.headers.contains_key(ACCEPT) || named.iter().any(|kind| accepts(&self.parts.headers, kind))
    }

    /// The refusal of a version that we don't serve.
    pub(super) fn unknown_version(&self) -> Option<Response> {
        let version = self.parts.headers.get("mcp-protocol-version")?;
        let known = version.to_str().ok().and_then(|version| Era::parse(version.trim()));
        if known.is_some() {
            return None;
        }
        let served = Era::ALL.map(Era::as_str).join(", ");
        let named = String::from_utf8_lossy(version.as_bytes());
        let detail = format!("the header MCP-Protocol-Version names `{named}`; this server speaks {served}");
        Some(problem(StatusCode::BAD_REQUEST, detail))
    }

    /// The same visit for one message of a batch: without a session, and with one JSON answer.
    pub(super) fn alone_and_for_one_answer(&self) -> Self {
        let mut parts = self.parts.clone();
        parts.headers.remove("mcp-session-id");
        parts.headers.remove(ACCEPT);
        parts.headers.insert("mcp-protocol-version", HeaderValue::from_static("2025-03-26"));
        Self { caller: Arc::clone(&self.caller), parts, ended: self.ended.clone() }
    }

    fn not_allowed(&self, allowed: &'static str) -> Response {
        let detail = format!("{} is not for this request; allowed: {allowed}", self.parts.method);
        let mut response = problem(StatusCode::METHOD_NOT_ALLOWED, detail);
        response.headers_mut().insert(ALLOW, HeaderValue::from_static(allowed));
        response
    }

    /// The request as the protocol layer gets it: headers it insists on repaired, secrets taken out, what we know put in.
    pub(super) fn forward(
        &self,
        body: Bytes,
        arguments: Option<RawArguments>,
        one_answer: bool,
    ) -> http::Request<Full<Bytes>> {
        let mut request = http::Request::new(Full::new(body));
        *request.method_mut() = self.parts.method.clone();
        *request.uri_mut() = self.parts.uri.clone();
        let headers = request.headers_mut();
        *headers = self.parts.headers.clone();
        headers.remove(AUTHORIZATION);
        headers.remove(COOKIE);
        headers.insert(ACCEPT, HeaderValue::from_static("application/json, text/event-stream"));
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if !headers.contains_key(http::header::HOST) {
            headers.insert(http::header::HOST, HeaderValue::from_static("localhost"));
        }
        let extensions = request.extensions_mut();
        extensions.insert(Identity(Arc::clone(&self.caller)));
        if let Some(arguments) = arguments {
            extensions.insert(arguments);
        }
        if one_answer {
            extensions.insert(OneAnswer);
        }
        request
    }
}

/// 404 for a session that has ended, never was, or belongs to someone else.
pub(super) fn no_session() -> Response {
    problem(StatusCode::NOT_FOUND, "there is no such session; start a new one with `initialize`")
}

/// Whether `Accept` lists this media type (or range) outright: a wildcard is no promise to read streams.
fn accepts(headers: &HeaderMap, wanted: &str) -> bool {
    let lines = headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
    lines.flat_map(|line| line.split(',')).any(|entry| {
        let mut parts = entry.split(';').map(str::trim);
        let listed = parts.next().is_some_and(|kind| kind.eq_ignore_ascii_case(wanted));
        let refused = parts.any(|part| {
            let weight = part.strip_prefix("q=").or_else(|| part.strip_prefix("Q="));
            weight.and_then(|weight| weight.trim().parse::<f32>().ok()) == Some(0.0)
        });
        listed && !refused
    })
}
