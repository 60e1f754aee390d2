//! `/tokens`: what programs sign in with, and the sessions of browsers; made, shown once, taken back.

use std::sync::Arc;
use std::time::Duration;

use askama::Template;
use axum::Form;
use axum::extract::rejection::FormRejection;
use axum::extract::{Path, State};
use axum::response::Response;
use http::{HeaderMap, StatusCode};

use super::arguments::Filled;
use super::frame::Frame;
use super::reply::{page, see_other};
use super::sign_in::{read, sign_in_page};
use super::text::Moment;
use super::tool_acts::Button;
use super::view::SignIn;
use super::{Visitor, Web, WebError, cookie};
use crate::auth::{AuthError, Lifetime, TokenRequest};
use crate::model::{Caller, Scope, Scopes, Timestamp};
use crate::tools::DeskError;

#[derive(Template)]
#[template(path = "tokens.html")]
struct TokensPage {
    frame: Frame,
    rows: Vec<TokenRow>,
    sessions: Vec<SessionRow>,
    may_make: bool,
    made: Option<Made>,
    says: String,
    name: String,
}

/// A token that was just made: the only time that it is shown.
pub(super) struct Made {
    pub(super) name: String,
    pub(super) text: String,
    pub(super) scopes: String,
}

struct TokenRow {
    id: String,
    name: String,
    scopes: String,
    ends: String,
    used: String,
    state: &'static str,
    is_over: bool,
}

struct SessionRow {
    id: String,
    begun: Moment,
    seen: Moment,
    is_this: bool,
}

/// `GET /tokens`.
pub(super) async fn list(State(web): State<Arc<Web>>, headers: HeaderMap) -> Result<Response, WebError> {
    let Some(visitor) = web.signed_in(&headers).await? else { return sign_in_page(&web, &headers, SignIn::NoLink) };
    show(&web, (&headers, &visitor), (StatusCode::OK, None, String::new(), String::new())).await
}

async fn show(
    web: &Web,
    (headers, visitor): (&HeaderMap, &Visitor),
    (status, made, says, name): (StatusCode, Option<Made>, String, String),
) -> Result<Response, WebError> {
    let (auth, now) = (&web.state.auth, web.state.clock.now());
    let tokens = auth.list_tokens(visitor.caller.sees_only()).await?;
    let own = cookie::read(&web.site, headers).unwrap_or_default();
    let sessions = auth.sessions(&visitor.caller, own).await?;
    let template = TokensPage {
        frame: Frame::new(web, headers, visitor, "tokens").await,
        rows: tokens.iter().map(|(token, lifetime)| TokenRow::new(token, *lifetime, now)).collect(),
        sessions: sessions
            .into_iter()
            .map(|(session, is_this)| SessionRow {
                begun: Moment::new(session.created_at, now),
                seen: Moment::new(session.last_seen_at, now),
                id: session.hash,
                is_this,
            })
            .collect(),
        may_make: visitor.caller.scopes.has(Scope::Admin),
        made,
        says,
        name,
    };
    page(status, &template, &template.frame)
}

impl TokenRow {
    fn new(token: &crate::store::Token, lifetime: Lifetime, now: Timestamp) -> Self {
        let is_expired = token.expires_at.is_some_and(|end| end <= now);
        let ends = match (lifetime, token.expires_at, token.revoked_at) {
            (_, _, Some(revoked)) => format!("Revoked {}", Moment::new(revoked, now).short),
            (Lifetime::Process, ..) => "With this server process".to_owned(),
            (_, None, _) => "Never".to_owned(),
            (_, Some(end), _) => Moment::new(end, end).full.chars().take(10).collect(),
        };
        Self {
            id: token.id.clone(),
            name: token.name.clone(),
            scopes: token.scopes.to_string().replace(' ', ", "),
            ends,
            used: token.last_used_at.map_or_else(|| "never".to_owned(), |used| Moment::new(used, now).short),
            state: match (token.revoked_at, is_expired) {
                (Some(_), _) => "Revoked",
                (None, true) => "Expired",
                (None, false) => "In use",
            },
            is_over: token.revoked_at.is_some() || is_expired,
        }
    }
}

/// `POST /tokens`: makes one. What it may do is `call` and `author` unless the form says otherwise.
pub(super) async fn make(
    State(web): State<Arc<Web>>,
    headers: HeaderMap,
    form: Result<Form<Filled>, FormRejection>,
) -> Result<Response, WebError> {
    let filled = read(form)?;
    let field = |name: &str| filled.iter().find(|(key, _)| key == name).map_or("", |(_, value)| value.as_str());
    let Some(caller) = web.sender(&headers, field("csrf")).await? else {
        return sign_in_page(&web, &headers, SignIn::NoLink);
    };
    let Some(visitor) = web.signed_in(&headers).await? else { return sign_in_page(&web, &headers, SignIn::NoLink) };
    let scopes: Vec<Scope> = filled
        .iter()
        .filter(|(key, _)| key == "scope")
        .filter_map(|(_, value)| Scope::ALL.into_iter().find(|scope| scope.as_str() == value))
        .collect();
    let answer = match web.make_token(&caller, (field("name"), &scopes), field("expires")).await {
        Ok(made) => (StatusCode::CREATED, Some(made), String::new(), String::new()),
        Err(AuthError::BadRequest(says)) => {
            (StatusCode::UNPROCESSABLE_ENTITY, None, says.to_owned(), field("name").to_owned())
        }
        Err(error) => return Err(error.into()),
    };
    show(&web, (&headers, &visitor), answer).await
}

/// `POST /tokens/{id}/revoke`.
pub(super) async fn revoke(
    State(web): State<Arc<Web>>,
    Path(id): Path<String>,
    headers: HeaderMap,
    form: Result<Form<Button>, FormRejection>,
) -> Result<Response, WebError> {
    let Button { csrf } = read(form)?;
    let Some(caller) = web.sender(&headers, &csrf).await? else { return sign_in_page(&web, &headers, SignIn::NoLink) };
    let tokens = web.state.auth.list_tokens(caller.sees_only()).await?;
    if !tokens.iter().any(|(token, _)| token.id == id) {
        return Err(DeskError::NotFound { what: "token", name: id }.into());
    }
    web.state.auth.revoke_token(&caller, &id).await?;
    Ok(see_other(&format!("{}/tokens", web.site.prefix())))
}

/// `POST /sessions/{id}/end`.
pub(super) async fn end_session(
    State(web): State<Arc<Web>>,
    Path(id): Path<String>,
    headers: HeaderMap,
    form: Result<Form<Button>, FormRejection>,
) -> Result<Response, WebError> {
    let Button { csrf } = read(form)?;
    let Some(caller) = web.sender(&headers, &csrf).await? else { return sign_in_page(&web, &headers, SignIn::NoLink) };
    if !web.state.auth.end_session(&caller, &id).await? {
        return Err(DeskError::NotFound { what: "session", name: id }.into());
    }
    Ok(see_other(&format!("{}/tokens", web.site.prefix())))
}

impl Web {
    /// Makes a token for the caller themself. Who is no administrator can't give away more than `call` and `author`.
    pub(super) async fn make_token(
        &self,
        caller: &Caller,
        (name, scopes): (&str, &[Scope]),
        expires: &str,
    ) -> Result<Made, AuthError> {
        let is_high = scopes.iter().any(|scope| matches!(scope, Scope::Approve | Scope::Admin));
        if is_high && !caller.scopes.has(Scope::Admin) {
            return Err(AuthError::BadRequest("only an administrator makes tokens that approve or administer"));
        }
        let days = match expires {
            "30" => Some(30),
            "365" => Some(365),
            "never" => None,
            _ => Some(90),
        };
        let expires_at = days.map(|days: u64| self.state.clock.later(Duration::from_secs(days * 24 * 60 * 60)));
        let request = TokenRequest {
            principal: caller.principal.clone(),
            name: name.trim().chars().take(100).collect(),
            scopes: Scopes::of(scopes),
            expires_at,
            toolset: None,
            lifetime: Lifetime::Stored,
        };
        let (token, text) = self.state.auth.create_token(caller, request).await?;
        Ok(Made { name: token.name, text, scopes: token.scopes.to_string().replace(' ', " and ") })
    }
}
