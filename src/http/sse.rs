//! `GET /sse` and `POST /messages`: the HTTP transport of 2024-11-05, for clients that know no other.

use std::convert::Infallible;
use std::time::Duration;

use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use http::{HeaderValue, StatusCode, Uri};

use super::answer::{event_stream, one_line_text};
use super::front::{Front, Visit};
use super::post::{accepted, refuse, wrong_content_type};
use super::problem::problem;
use super::{body, oversize};
use crate::mcp::{Downstream, Said};

/// The path that the POSTs of a session go to.
const MESSAGES: &str = "/messages";
/// The query parameter that names the session.
const SESSION: &str = "session_id";

impl Front {
    /// Opens a session: the first event says where its messages are to be posted.
    pub(super) fn sse(&self, visit: &Visit) -> Response {
        if self.closing.is_cancelled() {
            return problem(StatusCode::SERVICE_UNAVAILABLE, "the server is shutting down; come back in a moment");
        }
        let downstream = match self.server.open_stream(&visit.caller.holder()) {
            Ok(downstream) => downstream,
            Err(error) => return problem(StatusCode::TOO_MANY_REQUESTS, error.to_string()),
        };
        let endpoint = format!("event: endpoint\ndata: {}{MESSAGES}?{SESSION}={}\n\n", self.prefix(), downstream.id);
        let (heartbeat, limit) = (self.options.heartbeat, oversize::event_limit(&visit.parts.headers));
        let stream = futures::stream::unfold((downstream, Some(endpoint)), move |(mut downstream, first)| async move {
            let event = Bytes::from(match first {
                Some(first) => first,
                None => next(&mut downstream, heartbeat).await?,
            });
            let event = limit.map_or_else(|| event.clone(), |limit| oversize::fit(event.clone(), limit));
            Some((Ok::<_, Infallible>(event), (downstream, None)))
        });
        event_stream(Body::from_stream(stream))
    }

    /// A message of a session: what there is to answer goes onto the session's stream.
    pub(super) async fn say(&self, visit: Visit, body: Body) -> Response {
        let Some(id) = session_id(&visit.parts.uri) else {
            let detail =
                "the query parameter `session_id` is missing; `GET /sse` opens a session and says where to post";
            return problem(StatusCode::BAD_REQUEST, detail);
        };
        let Some(upstream) = self.server.upstream(id, &visit.caller.holder()) else { return no_stream() };
        if let Some(refused) = visit.unknown_version().or_else(|| wrong_content_type(&visit)) {
            return refused;
        }
        let bytes = match body::read(body, self.options.body_limit, self.options.body_patience).await {
            Ok(bytes) => bytes,
            Err(refused) => return refused,
        };
        let (mut parts, _) = visit.forward(Bytes::new(), None, false).into_parts();
        if let Ok(id) = HeaderValue::from_str(id) {
            parts.headers.insert("mcp-session-id", id);
        }
        match upstream.say(&bytes, &parts).await {
            Said::Taken => accepted(),
            Said::Refused(refused) => refuse(&visit, &refused),
            Said::Crowded => {
                let detail = "too many requests of this session wait for their answers to be read";
                problem(StatusCode::TOO_MANY_REQUESTS, detail)
            }
            Said::Ended => no_stream(),
        }
    }

    /// The path under which this server is known to its clients.
    fn prefix(&self) -> String {
        let public = self.options.public_url.as_deref().and_then(|url| url.parse::<Uri>().ok());
        public.map(|url| url.path().trim_end_matches('/').to_owned()).unwrap_or_default()
    }
}

/// The next event of a session's stream, or a sign of life; `None` at its end.
async fn next(downstream: &mut Downstream, heartbeat: Duration) -> Option<String> {
    match tokio::time::timeout(heartbeat, downstream.next()).await {
        Ok(message) => message.map(|message| format!("event: message\ndata: {}\n\n", one_line_text(message))),
        Err(_) => Some(": alive\n\n".to_owned()),
    }
}

fn session_id(uri: &Uri) -> Option<&str> {
    let pairs = uri.query()?.split('&').filter_map(|pair| pair.split_once('='));
    pairs.filter(|(name, _)| *name == SESSION || *name == "sessionId").map(|(_, id)| id).next()
}

fn no_stream() -> Response {
    problem(StatusCode::NOT_FOUND, "there is no such session; it lives as long as its stream: open one with `GET /sse`")
}
