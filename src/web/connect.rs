//! `/connect`: what connects each client, with a token that is made here and shown once.

use std::sync::Arc;

use askama::Template;
use axum::Form;
use axum::extract::rejection::FormRejection;
use axum::extract::{Path, State};
use axum::response::Response;
use http::{HeaderMap, StatusCode};
use serde::Deserialize;

use super::clients::{CLIENTS, Client, client};
use super::frame::Frame;
use super::reply::page;
use super::sign_in::{read, sign_in_page};
use super::text::Moment;
use super::tokens::Made;
use super::view::SignIn;
use super::{Visitor, Web, WebError};
use crate::auth::AuthError;
use crate::model::Scope;

/// What stands where the token belongs, as long as none was made.
const TOKEN: &str = "YOUR_TOKEN";

#[derive(Template)]
#[template(path = "connect.html")]
struct ConnectPage {
    frame: Frame,
    url: String,
    tabs: [(&'static str, &'static str); 10],
    client: Client,
    made: Option<Made>,
    connected: Option<Moment>,
    open_to_all: bool,
    says: String,
}

/// The form that makes a token for a client.
#[derive(Deserialize)]
pub(super) struct Wanted {
    csrf: String,
    name: String,
    #[serde(default)]
    expires: String,
}

/// `GET /connect`.
pub(super) async fn first(State(web): State<Arc<Web>>, headers: HeaderMap) -> Result<Response, WebError> {
    show(&web, &headers, "claude-code", (StatusCode::OK, None, String::new())).await
}

/// `GET /connect/{client}`.
pub(super) async fn tab(
    State(web): State<Arc<Web>>,
    Path(key): Path<String>,
    headers: HeaderMap,
) -> Result<Response, WebError> {
    show(&web, &headers, &key, (StatusCode::OK, None, String::new())).await
}

/// `POST /connect/{client}`: makes a token that may call and author, never more, and shows it in the texts.
pub(super) async fn make(
    State(web): State<Arc<Web>>,
    Path(key): Path<String>,
    headers: HeaderMap,
    form: Result<Form<Wanted>, FormRejection>,
) -> Result<Response, WebError> {
    let Wanted { csrf, name, expires } = read(form)?;
    let Some(caller) = web.sender(&headers, &csrf).await? else { return sign_in_page(&web, &headers, SignIn::NoLink) };
    let scopes = [Scope::Call, Scope::Author];
    let answer = match web.make_token(&caller, (&name, &scopes), &expires).await {
        Ok(made) => (StatusCode::CREATED, Some(made), String::new()),
        Err(AuthError::BadRequest(says)) => (StatusCode::UNPROCESSABLE_ENTITY, None, says.to_owned()),
        Err(error) => return Err(error.into()),
    };
    show(&web, &headers, &key, answer).await
}

async fn show(
    web: &Web,
    headers: &HeaderMap,
    key: &str,
    (status, made, says): (StatusCode, Option<Made>, String),
) -> Result<Response, WebError> {
    let Some(visitor) = web.visitor(headers).await? else { return sign_in_page(web, headers, SignIn::NoLink) };
    let url = web.site.mcp_url(headers);
    let token = made.as_ref().map_or(TOKEN, |made| made.text.as_str());
    let Some(client) = client(key, &url, token) else { return Err(WebError::NotFound(format!("/connect/{key}"))) };
    let template = ConnectPage {
        frame: Frame::new(web, headers, &visitor, "connect").await,
        connected: connected(web, &visitor, client.name).await?,
        open_to_all: web.state.auth.is_anonymous(),
        tabs: CLIENTS,
        url,
        client,
        made,
        says,
    };
    page(status, &template, &template.frame)
}

/// When a token that was made for this client here was used last.
async fn connected(web: &Web, visitor: &Visitor, name: &str) -> Result<Option<Moment>, WebError> {
    let tokens = web.state.auth.list_tokens(Some(&visitor.caller.principal)).await?;
    let of_client = tokens.into_iter().filter(|(token, _)| token.revoked_at.is_none() && token.name.starts_with(name));
    let used = of_client.filter_map(|(token, _)| token.last_used_at).max();
    Ok(used.map(|used| Moment::new(used, web.state.clock.now())))
}
