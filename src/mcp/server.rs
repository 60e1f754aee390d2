//! The protocol server: two rmcp services over one domain (one per kind of HTTP client).

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use http_body_util::combinators::BoxBody;
use rmcp::model::{JsonObject, Tool};
use rmcp::transport::streamable_http_server::session::SessionManager as _;
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::changes::Changes;
use super::era::Era;
use super::handler::{CALLED_TOOL, Handler, Link, Shared};
use super::listing::Pages;
pub use super::sessions::SessionRefused;
use super::sessions::{IDLE, Sessions};
use super::streams::{Downstream, Streams, Upstream};
use crate::model::{Caller, Holder};
use crate::tools::{CallError, Domain};

/// How often idle sessions are looked for.
const SWEEP: Duration = Duration::from_secs(60);
/// The most that rmcp may read; the edge's own limit comes first.
const BODY: usize = 64 << 20;

/// An HTTP response as rmcp makes it.
pub type Response = http::Response<BoxBody<Bytes, Infallible>>;

/// A tool whose arguments are compared with the headers of the request that calls it.
pub struct Called(Tool);

/// The protocol server over a domain.
#[derive(Clone)]
pub struct Server {
    shared: Arc<Shared>,
    sessions: Arc<Sessions>,
    streams: Arc<Streams>,
    closing: CancellationToken,
    stop: CancellationToken,
    stateless: StreamableHttpService<Handler, NeverSessionManager>,
    stateful: StreamableHttpService<Handler, Sessions>,
}

impl Server {
    /// Builds the server. `closing` ends the streams that wait for news; `stop` ends everything. Open streams say that
    /// they live every `heartbeat`.
    pub fn new(
        domain: Arc<dyn Domain>,
        closing: CancellationToken,
        stop: CancellationToken,
        heartbeat: Duration,
    ) -> Self {
        let changes = Changes::follow(&domain, closing.clone());
        let shared = Arc::new(Shared { domain, changes: changes.clone(), pages: Pages::default() });
        let sessions = Arc::new(Sessions::new(changes));
        let config = StreamableHttpServerConfig::default()
            .disable_allowed_hosts()
            .with_sse_keep_alive(Some(heartbeat))
            .with_sse_retry(None)
            .with_max_request_body_bytes(BODY)
            .with_cancellation_token(stop.clone());
        let handler = |link: Link| {
            let shared = Arc::clone(&shared);
            move || Ok(Handler::new(Arc::clone(&shared), link.clone()))
        };
        let stateless = StreamableHttpService::new(
            handler(Link::Request),
            Arc::new(NeverSessionManager::default()),
            config.clone().with_legacy_session_mode(false).with_json_response(true),
        );
        let stateful = StreamableHttpService::new(handler(Link::Session), Arc::clone(&sessions), config);
        tokio::spawn(sweep(Arc::clone(&sessions), stop.clone()));
        Self { shared, sessions, streams: Arc::default(), closing, stop, stateless, stateful }
    }

    /// Serves a request that stands alone.
    pub async fn stateless(&self, request: http::Request<Full<Bytes>>, called: Option<Called>) -> Response {
        CALLED_TOOL.scope(called.map(|called| called.0), self.stateless.handle(request)).await
    }

    /// Serves a request of a session, or one that opens a session.
    pub async fn stateful(&self, request: http::Request<Full<Bytes>>) -> Response {
        self.stateful.handle(request).await
    }

    /// Serves the `initialize` that opens a session, and binds the session to its caller.
    ///
    /// # Errors
    /// [`SessionRefused`] when there are too many.
    pub async fn open_session(
        &self,
        holder: &Holder,
        asked: &str,
        request: http::Request<Full<Bytes>>,
    ) -> Result<Response, SessionRefused> {
        let place = self.sessions.reserve(holder.clone(), Era::negotiate(asked))?;
        let response = self.stateful(request).await;
        if let Some(id) = response.headers().get("mcp-session-id").and_then(|id| id.to_str().ok()) {
            place.bind(id);
        }
        Ok(response)
    }

    /// The version that a session speaks; `None` when there is none of that id for this holder.
    pub fn session(&self, id: &str, holder: &Holder) -> Option<Era> {
        self.sessions.touch(id, holder)
    }

    /// Ends a session as soon as the credential that opened it counts no more.
    pub fn end_session_with(&self, id: &str, ended: CancellationToken) {
        let Some(gone) = self.sessions.watch_over(id) else { return };
        let (server, id) = (self.clone(), id.to_owned());
        tokio::spawn(async move {
            tokio::select! {
                () = ended.cancelled() => server.close_session(&id).await,
                () = gone.cancelled() => {}
            }
        });
    }

    /// Ends a session.
    pub async fn close_session(&self, id: &str) {
        if let Err(error) = self.sessions.close_session(&id.into()).await {
            tracing::debug!("the session had ended already: {error}");
        }
    }

    /// Opens a session of the first HTTP transport, which lives as long as what is returned.
    ///
    /// # Errors
    /// [`SessionRefused`] when there are too many.
    pub fn open_stream(&self, holder: &Holder) -> Result<Downstream, SessionRefused> {
        let ends = (self.closing.clone(), &self.stop);
        self.streams.open(Arc::clone(&self.shared), &self.sessions, holder, ends)
    }

    /// Where the messages of such a session go in; `None` when there is none of that id for this holder.
    pub fn upstream(&self, id: &str, holder: &Holder) -> Option<Arc<Upstream>> {
        self.streams.upstream(id, holder)
    }

    /// The caller within this toolset; `None` where there is none of that name for it.
    ///
    /// # Errors
    /// As [`Domain::within`].
    pub async fn within(&self, caller: &Caller, toolset: &str) -> Result<Option<Caller>, CallError> {
        self.shared.domain.within(caller, toolset).await
    }

    /// The first page of `tools/list` for this caller: the bytes of the `result` member.
    ///
    /// # Errors
    /// As [`Domain::list`].
    pub async fn first_page(&self, caller: &Caller, era: Era) -> Result<Bytes, CallError> {
        let list = self.shared.domain.list(caller).await?;
        Ok(self.shared.pages.first_page(&list, era).await)
    }

    /// The tool that a call names, when its schema asks for arguments to be repeated in HTTP headers.
    ///
    /// # Errors
    /// As [`Domain::list`].
    pub async fn tool_with_headers(&self, caller: &Caller, name: &str) -> Result<Option<Called>, CallError> {
        let list = self.shared.domain.list(caller).await?;
        let schema = list.tools.iter().find(|tool| tool.name == name).and_then(|tool| tool.input_schema.as_object());
        let schema: Option<&JsonObject> = schema.filter(|schema| names_headers(schema));
        Ok(schema.map(|schema| Called(Tool::new_with_raw(name.to_owned(), None, schema.clone()))))
    }
}

/// Whether a property, reached through `properties` alone, carries `x-mcp-header`.
fn names_headers(schema: &JsonObject) -> bool {
    let properties = schema.get("properties").and_then(Value::as_object);
    properties.is_some_and(|properties| {
        let mut schemas = properties.values().filter_map(Value::as_object);
        schemas.any(|schema| schema.contains_key("x-mcp-header") || names_headers(schema))
    })
}

async fn sweep(sessions: Arc<Sessions>, stop: CancellationToken) {
    loop {
        tokio::select! {
            () = tokio::time::sleep(SWEEP) => sessions.sweep(IDLE).await,
            () = stop.cancelled() => return,
        }
    }
}
