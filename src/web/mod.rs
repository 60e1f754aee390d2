//! The web UI (DESIGN §9). Server-rendered; it works without script.
//!
//! It knows browsers: cookies, forms, pages. What it shows comes from `tools`; who may see it says `auth`.

mod approvals;
mod arguments;
mod assets;
mod charts;
mod clients;
mod connect;
mod cookie;
mod diff;
mod download;
mod error;
mod frame;
mod reply;
mod run_facts;
mod run_log;
mod runs;
mod secrets;
mod server_pages;
mod sign_in;
mod site;
mod text;
mod theme;
mod tokens;
mod tool_acts;
mod tool_forms;
mod tool_list;
mod tool_page;
mod tool_settings;
mod value;
mod view;

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use axum::Router;
use axum::extract::{DefaultBodyLimit, Request, State};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::Response;
use axum::routing::{get, post};
use http::{HeaderMap, HeaderName, HeaderValue, Method};

use crate::auth::{Auth, Session};
use crate::clock::Clock;
use crate::http::{Gate, peer};
use crate::model::Caller;
use crate::tools::Tools;
use error::WebError;
use frame::Counts;
use site::Site;

/// No form is longer, but that of a secret, whose every byte may be escaped.
const FORM_LIMIT: usize = 16 << 10;
const SECRET_FORM_LIMIT: usize = 64 << 10;
/// Code of a mebibyte, whose every byte may be escaped; and arguments of eight.
const TOOL_FORM_LIMIT: usize = 4 << 20;
const TRY_FORM_LIMIT: usize = 16 << 20;

/// Where the guard tells the pages from which address a request came.
const PEER: HeaderName = HeaderName::from_static("omniforge-peer");

/// What the pages are made from.
#[derive(Clone)]
pub struct WebState {
    /// Which hosts and origins are let in.
    pub gate: Gate,
    /// Who is signed in.
    pub auth: Arc<Auth>,
    /// What the pages show.
    pub tools: Tools,
    /// What time it is.
    pub clock: Clock,
    /// The address that is listened on, with the real port.
    pub listen: SocketAddr,
    /// The URL browsers reach us by, when a proxy stands before us. Without a trailing slash.
    pub public_url: Option<String>,
}

struct Web {
    state: WebState,
    site: Site,
    counts: Counts,
    /// What forms carry where nobody has to sign in: a page of another site can't know it.
    open_csrf: String,
}

/// Who looks at a page.
struct Visitor {
    caller: Caller,
    /// What forms carry.
    csrf: String,
    /// Whether a session stands behind it.
    signed_in: bool,
}

/// The routes of the web UI. It has no fallback of its own, so that it can be merged with the other doors.
pub fn router(state: WebState) -> Router {
    let web = Arc::new(Web::new(state));
    let routes = Router::new()
        .route("/", get(tool_list::home))
        .route("/approvals", get(approvals::list))
        .route("/approvals/{id}", get(approvals::show).post(approvals::decide))
        .route("/secrets", get(secrets::list).post(secrets::change).layer(DefaultBodyLimit::max(SECRET_FORM_LIMIT)))
        .route("/signin", get(sign_in::no_link).post(sign_in::sign_in))
        .route("/signin/{code}", get(sign_in::link))
        .route("/signout", post(sign_in::sign_out))
        .route("/theme", post(theme::choose))
        .route("/runs", get(runs::list))
        .route("/runs/{id}", get(runs::show))
        .route("/runs/{id}/events", get(runs::events))
        .route("/runs/{id}/cancel", post(runs::cancel))
        .route("/runs/{id}/again", post(runs::again))
        .route("/runs/{id}/{stream}", get(runs::output))
        .route("/tokens", get(tokens::list).post(tokens::make))
        .route("/tokens/{id}/revoke", post(tokens::revoke))
        .route("/sessions/{id}/end", post(tokens::end_session))
        .route("/connect", get(connect::first))
        .route("/connect/{client}", get(connect::tab).post(connect::make))
        .route("/content", get(server_pages::content))
        .route("/audit", get(server_pages::audit))
        .route("/settings", get(server_pages::settings))
        .route("/new", get(tool_forms::blank).post(tool_forms::make).layer(DefaultBodyLimit::max(TOOL_FORM_LIMIT)))
        .route("/tools/{name}", get(tool_page::show))
        .route("/tools/{name}/save", post(tool_forms::save).layer(DefaultBodyLimit::max(TOOL_FORM_LIMIT)))
        .route("/tools/{name}/try", post(tool_forms::try_it).layer(DefaultBodyLimit::max(TRY_FORM_LIMIT)))
        .route("/tools/{name}/return", post(tool_forms::return_to))
        .route("/tools/{name}/delete", post(tool_forms::delete))
        .route("/tools/{name}/enabled", post(tool_acts::switch))
        .route("/examples/add_vat", post(tool_acts::add_example))
        .route("/assets/{name}", get(assets::asset))
        .layer(DefaultBodyLimit::max(FORM_LIMIT))
        .layer(from_fn_with_state(Arc::clone(&web), guard))
        .with_state(Arc::clone(&web));
    routes.layer(from_fn_with_state(web, error::show_errors))
}

/// Shows the errors of all doors as pages where a browser asked: for the whole of the server's routes.
pub fn error_pages(state: WebState, routes: Router) -> Router {
    routes.layer(from_fn_with_state(Arc::new(Web::new(state)), error::show_errors))
}

/// Middleware: lets in what was sent to this server, and not by a page of another site.
async fn guard(State(web): State<Arc<Web>>, mut request: Request, next: Next) -> Response {
    // Over what somebody may have sent under that name.
    let peer = peer(request.extensions()).map_or(String::new(), |peer| peer.to_string());
    let peer = HeaderValue::try_from(peer).expect("an address is printable");
    request.headers_mut().insert(PEER, peer);
    let mut headers = request.headers().clone();
    if came_by_link(request.method(), &headers) {
        headers.remove("sec-fetch-site");
    }
    match web.state.gate.check(request.uri(), &headers, false) {
        Ok(()) => next.run(request).await,
        Err(refused) => refused,
    }
}

/// Whether somebody followed a link, perhaps on a page of another site. That is let in: it brings no cookie
/// (`SameSite=Strict`), changes nothing, and the page that opens can be neither framed nor read.
fn came_by_link(method: &Method, headers: &HeaderMap) -> bool {
    let is = |name: &str, value: &str| headers.get(name).is_some_and(|given| given == value);
    matches!(*method, Method::GET | Method::HEAD)
        && is("sec-fetch-mode", "navigate")
        && is("sec-fetch-dest", "document")
}

/// The address that a request came from.
fn peer_of(headers: &HeaderMap) -> Option<IpAddr> {
    headers.get(PEER)?.to_str().ok()?.parse().ok()
}

impl Web {
    fn new(state: WebState) -> Self {
        let site = Site::new(state.listen, state.public_url.as_deref());
        let open_csrf = uuid::Uuid::new_v4().simple().to_string();
        Self { state, site, counts: Counts::default(), open_csrf }
    }

    /// The path of the first page.
    fn home(&self) -> String {
        format!("{}/", self.site.prefix())
    }

    /// The session of the browser that sent this.
    async fn session(&self, headers: &HeaderMap) -> Result<Option<Session>, WebError> {
        let Some(session_id) = cookie::read(&self.site, headers) else { return Ok(None) };
        let session = self.state.auth.session(session_id).await?;
        Ok(session.map(|session| Session { caller: session.caller.from_source(peer_of(headers)), ..session }))
    }

    /// Who is signed in, as only a sign-in link makes one: not whoever comes where no credential is asked for.
    async fn signed_in(&self, headers: &HeaderMap) -> Result<Option<Visitor>, WebError> {
        Ok(self.visitor(headers).await?.filter(|visitor| visitor.signed_in))
    }

    /// Who sent a form, from one of our own pages and with the session's token; `None` where nobody is signed in.
    async fn sender(&self, headers: &HeaderMap, csrf: &str) -> Result<Option<Caller>, WebError> {
        if !self.site.sent_by_own_page(headers) {
            return Err(WebError::OtherSite);
        }
        match self.session(headers).await? {
            Some(session) if session.accepts_csrf(csrf) => Ok(Some(session.caller)),
            Some(_) => Err(WebError::StaleForm),
            None => Ok(None),
        }
    }

    /// The same for what needs no session where nobody has to sign in.
    async fn author(&self, headers: &HeaderMap, csrf: &str) -> Result<Option<Caller>, WebError> {
        let sender = self.sender(headers, csrf).await?;
        if sender.is_some() || !self.state.auth.is_anonymous() {
            return Ok(sender);
        }
        if csrf != self.open_csrf {
            return Err(WebError::StaleForm);
        }
        Ok(self.visitor(headers).await?.map(|visitor| visitor.caller))
    }

    /// Who sent the request: the session's principal, or everybody where no credential is asked for.
    async fn visitor(&self, headers: &HeaderMap) -> Result<Option<Visitor>, WebError> {
        if let Some(session) = self.session(headers).await? {
            return Ok(Some(Visitor { caller: session.caller, csrf: session.csrf, signed_in: true }));
        }
        if self.state.auth.is_anonymous() {
            let caller = self.state.auth.authenticate(None).await?.from_source(peer_of(headers));
            return Ok(Some(Visitor { caller, csrf: self.open_csrf.clone(), signed_in: false }));
        }
        Ok(None)
    }
}
