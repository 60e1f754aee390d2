//! POST `/mcp`: what the message is, and which of the protocol's services it is for.

use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use http::StatusCode;
use http::header::CONTENT_TYPE;
use serde_json::value::RawValue;

use super::answer::{self, Manner};
use super::front::{Front, Visit, no_session};
use super::oversize;
use super::problem::{json, problem, refusal};
use super::{body, ending, front::MODERN};
use crate::mcp::peek::{self, Message, Request};
use crate::mcp::{Called, Era, Refusal};
use crate::tools::CallError;

impl Front {
    pub(super) async fn post(&self, visit: Visit, body: Body) -> Response {
        if let Some(refused) = wrong_content_type(&visit) {
            return refused;
        }
        let bytes = match body::read(body, self.options.body_limit, self.options.body_patience).await {
            Ok(bytes) => bytes,
            Err(refused) => return refused,
        };
        match peek::read(&bytes) {
            Err(refused) => refuse(&visit, &refused),
            Ok(peek::Body::Batch(items)) => self.batch(&visit, &bytes, &items).await,
            Ok(peek::Body::One(message)) => self.message(&visit, &bytes, message).await,
        }
    }

    /// One message.
    pub(super) async fn message(&self, visit: &Visit, bytes: &Bytes, message: Message<'_>) -> Response {
        if let Message::Request(request) = message {
            return self.request(visit, bytes, &request).await;
        }
        if let Some(refused) = visit.unknown_version() {
            return refused;
        }
        match (visit.session_id(), message) {
            (Some(id), _) if self.server.session(id, &visit.caller.holder()).is_none() => no_session(),
            (Some(_), _) => answer::adopt(self.server.stateful(visit.forward(bytes.clone(), None, false)).await),
            (None, Message::Reply) => {
                refuse(visit, &Refusal::request("without a session there is no request of ours to answer"))
            }
            (None, _) => accepted(),
        }
    }

    async fn request(&self, visit: &Visit, bytes: &Bytes, request: &Request<'_>) -> Response {
        if self.closing.is_cancelled() && request.method == "tools/call" {
            return problem(StatusCode::SERVICE_UNAVAILABLE, "the server is shutting down; call again in a moment");
        }
        if visit.names_modern() || request.meta.protocol_version.is_some() {
            return self.modern(visit, bytes, request).await;
        }
        if let Some(fault) = &request.fault {
            return refuse(visit, fault);
        }
        if let Some(refused) = visit.unknown_version() {
            return refused;
        }
        if request.method == "initialize" {
            return self.initialize(visit, bytes, request).await;
        }
        match visit.session_id() {
            None => self.alone(visit, bytes, request, era(visit)).await,
            Some(id) if self.server.session(id, &visit.caller.holder()).is_some() => {
                let (body, arguments) = request.for_the_protocol_layer(bytes);
                let forward = visit.forward(body, arguments, !visit.accepts_stream());
                let server = self.server.clone();
                // The session hears logs unless it says otherwise; its calls live in it, not in their connections.
                let manner = self.manner(visit, request, (true, false));
                answer::answer(async move { server.stateful(forward).await }, manner).await
            }
            Some(_) => no_session(),
        }
    }

    /// A handshake: with a session for clients that read streams, without for those that don't.
    async fn initialize(&self, visit: &Visit, bytes: &Bytes, request: &Request<'_>) -> Response {
        let mut forward = visit.forward(bytes.clone(), None, !visit.accepts_stream());
        forward.headers_mut().remove("mcp-session-id");
        // A header here can only repeat what the body asks for.
        forward.headers_mut().remove("mcp-protocol-version");
        if !visit.accepts_stream() {
            return answer::adopt(self.server.stateless(forward, None).await);
        }
        let asked = request.asked_version().unwrap_or_default();
        match self.server.open_session(&visit.caller.holder(), &asked, forward).await {
            Ok(response) => {
                if let Some(id) = response.headers().get("mcp-session-id").and_then(|id| id.to_str().ok()) {
                    self.server.end_session_with(id, visit.ended.clone());
                }
                answer::adopt(response)
            }
            Err(error) => problem(StatusCode::TOO_MANY_REQUESTS, error.to_string()),
        }
    }

    /// A request that carries its version and capabilities itself. The order of the checks is the specification's.
    async fn modern(&self, visit: &Visit, bytes: &Bytes, request: &Request<'_>) -> Response {
        if let Err(refused) = check_modern(visit, request) {
            return refuse(visit, &refused.with_id(Some(request.id)));
        }
        let era = request.declared_version().and_then(|version| Era::parse(&version)).unwrap_or(Era::V2026_07_28);
        if request.method == "subscriptions/listen" && !visit.accepts_stream() {
            let detail = "subscriptions/listen answers with a stream; the request must accept text/event-stream";
            return problem(StatusCode::NOT_ACCEPTABLE, detail);
        }
        self.alone(visit, bytes, request, era).await
    }

    /// A request without a session.
    async fn alone(&self, visit: &Visit, bytes: &Bytes, request: &Request<'_>, era: Era) -> Response {
        if request.method == "tools/list" && request.is_plain() {
            return match self.server.first_page(&visit.caller, era).await {
                Ok(page) => answer::spoken(envelope(request.id, &page), visit.accepts_json()),
                Err(error) => failure(request.id, &error),
            };
        }
        let called = match self.called_tool(visit, request, era).await {
            Ok(called) => called,
            Err(error) => return failure(request.id, &error),
        };
        let (body, arguments) = match &called {
            // The protocol layer compares the arguments with the headers.
            Some(_) => (bytes.clone(), request.for_the_protocol_layer(bytes).1),
            None => request.for_the_protocol_layer(bytes),
        };
        let forward = visit.forward(body, arguments, !visit.accepts_stream());
        let server = self.server.clone();
        // Before 2026-07-28 a broken connection says nothing about the call.
        let outlives_client = !era.is_modern() && request.method == "tools/call";
        let tells = request.asks_for_events() || request.method == "subscriptions/listen";
        let manner = self.manner(visit, request, (tells, outlives_client));
        let ended = visit.ended.clone();
        answer::answer(async move { ending::cut(ended, server.stateless(forward, called)).await }, manner).await
    }

    fn manner(&self, visit: &Visit, request: &Request<'_>, (tells, outlives_client): (bool, bool)) -> Manner {
        Manner {
            silence: visit.accepts_stream().then_some(self.options.silence),
            json: visit.accepts_json(),
            tells,
            outlives_client,
            event_limit: oversize::event_limit(&visit.parts.headers).filter(|_| request.method == "tools/call"),
            id: request.id.to_owned(),
        }
    }

    async fn called_tool(&self, visit: &Visit, request: &Request<'_>, era: Era) -> Result<Option<Called>, CallError> {
        match request.name() {
            Some(name) if era.is_modern() && request.method == "tools/call" => {
                self.server.tool_with_headers(&visit.caller, &name).await
            }
            _ => Ok(None),
        }
    }
}

fn check_modern(visit: &Visit, request: &Request<'_>) -> Result<(), Refusal> {
    let header = visit.version();
    let declared = request.declared_version();
    if let Some(declared) = &declared
        && header != Some(declared)
    {
        let header = header.unwrap_or("nothing");
        return Err(Refusal::header(format!(
            "the header MCP-Protocol-Version says {header}, `_meta` says {declared}; they must agree"
        )));
    }
    // A method that does not exist is not found, whatever else is wrong with its request.
    if let Some(unknown) = request.unknown_method(header) {
        return Err(unknown);
    }
    if declared.as_deref().or(header).is_some_and(|version| version >= MODERN) {
        let mut methods = visit.parts.headers.get_all("mcp-method").iter();
        let method = methods.next().and_then(|value| value.to_str().ok()).map(str::trim);
        if method != Some(&request.method) || methods.next().is_some() {
            let found = method.unwrap_or("missing");
            return Err(Refusal::header(format!(
                "the header Mcp-Method must be `{}` once, as in the body; it is {found}",
                request.method
            )));
        }
    }
    if let Some(fault) = &request.fault {
        return Err(fault.clone());
    }
    if !request.has_modern_meta() {
        return Err(Refusal::params(
            "`params._meta` must hold `io.modelcontextprotocol/protocolVersion` (a string) and \
             `io.modelcontextprotocol/clientCapabilities` (an object)",
        ));
    }
    let declared = declared.unwrap_or_default();
    if Era::parse(&declared).is_none() {
        let data = serde_json::json!({"requested": declared, "supported": Era::ALL.map(Era::as_str)});
        return Err(Refusal::new(-32022, "Unsupported protocol version").with_data(data));
    }
    Ok(())
}

/// The version that a request without a session speaks.
fn era(visit: &Visit) -> Era {
    visit.version().and_then(Era::parse).unwrap_or(Era::UNNAMED)
}

fn envelope(id: &RawValue, result: &[u8]) -> Response {
    let mut body = Vec::with_capacity(result.len() + id.get().len() + 32);
    body.extend_from_slice(br#"{"jsonrpc":"2.0","id":"#);
    body.extend_from_slice(id.get().as_bytes());
    body.extend_from_slice(br#","result":"#);
    body.extend_from_slice(result);
    body.push(b'}');
    json(StatusCode::OK, "application/json", body)
}

fn failure(id: &RawValue, error: &CallError) -> Response {
    refusal(StatusCode::OK, &Refusal::new(-32603, error.to_string()).with_id(Some(id)))
}

/// A JSON-RPC error with the HTTP status of the caller's era.
pub(super) fn refuse(visit: &Visit, refused: &Refusal) -> Response {
    let status = match refused.code {
        -32601 => StatusCode::NOT_FOUND,
        -32602 if !visit.names_modern() => StatusCode::OK,
        _ => StatusCode::BAD_REQUEST,
    };
    refusal(status, refused)
}

pub(super) fn accepted() -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::ACCEPTED;
    response
}

pub(super) fn wrong_content_type(visit: &Visit) -> Option<Response> {
    let named = visit.parts.headers.get(CONTENT_TYPE)?.to_str().unwrap_or_default();
    let essence = named.split(';').next().unwrap_or_default().trim();
    if essence.eq_ignore_ascii_case("application/json") {
        return None;
    }
    let detail = format!("the body must be sent as application/json; Content-Type is `{named}`");
    Some(problem(StatusCode::UNSUPPORTED_MEDIA_TYPE, detail))
}
