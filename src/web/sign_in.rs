//! Signing in with a link, and out. The link's code is in no log line and in no referrer.

use std::sync::Arc;

use axum::Form;
use axum::extract::rejection::FormRejection;
use axum::extract::{Path, State};
use axum::response::Response;
use http::header::SET_COOKIE;
use http::{HeaderMap, StatusCode};
use serde::Deserialize;
use tracing::info;

use super::reply::{page, see_other, without_referrer};
use super::view::{SignIn, SignInPage};
use super::{Web, WebError, cookie, peer_of};
use crate::auth::AuthError;
use crate::http::Refused;

/// No code is longer.
const CODE_LIMIT: usize = 128;

/// The form of the link's page.
#[derive(Deserialize)]
pub(super) struct CodeForm {
    code: String,
}

/// The form that ends a session.
#[derive(Deserialize)]
pub(super) struct SignOutForm {
    csrf: String,
}

/// `GET /signin/{code}`: one button. Nothing is spent by looking: chats and mail scanners open links too.
pub(super) async fn link(
    State(web): State<Arc<Web>>,
    Path(code): Path<String>,
    headers: HeaderMap,
) -> Result<Response, WebError> {
    if code.len() > CODE_LIMIT || !code.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
        return sign_in_page(&web, &headers, SignIn::Used);
    }
    sign_in_page(&web, &headers, SignIn::Link { code })
}

/// `GET /signin`.
pub(super) async fn no_link(State(web): State<Arc<Web>>, headers: HeaderMap) -> Result<Response, WebError> {
    if web.visitor(&headers).await?.is_some() {
        return Ok(without_referrer(see_other(&web.home())));
    }
    sign_in_page(&web, &headers, SignIn::NoLink)
}

/// `POST /signin`: spends the code on a session.
pub(super) async fn sign_in(
    State(web): State<Arc<Web>>,
    headers: HeaderMap,
    form: Result<Form<CodeForm>, FormRejection>,
) -> Result<Response, WebError> {
    if !web.site.sent_by_own_page(&headers) {
        return Err(WebError::OtherSite);
    }
    let peer = peer_of(&headers);
    let session_id = match web.state.auth.spend_sign_in_code(&read(form)?.code, peer).await {
        Ok(session_id) => session_id,
        Err(error @ AuthError::BadSignInCode) => {
            let mut page = sign_in_page(&web, &headers, SignIn::Used)?;
            let refused = Refused {
                action: "sign_in.refused",
                reason: error.to_string(),
                token: None,
                principal: None,
                subject: None,
            };
            page.extensions_mut().insert(refused);
            return Ok(page);
        }
        Err(error) => return Err(error.into()),
    };
    if let Some(old) = cookie::read(&web.site, &headers) {
        web.state.auth.sign_out(old, peer).await?;
    }
    info!("Somebody signed in with a link");
    let mut response = without_referrer(see_other(&web.home()));
    response.headers_mut().insert(SET_COOKIE, cookie::keep(&web.site, &session_id));
    Ok(response)
}

/// `POST /signout`: ends the session.
pub(super) async fn sign_out(
    State(web): State<Arc<Web>>,
    headers: HeaderMap,
    form: Result<Form<SignOutForm>, FormRejection>,
) -> Result<Response, WebError> {
    if !web.site.sent_by_own_page(&headers) {
        return Err(WebError::OtherSite);
    }
    let presented = read(form)?.csrf;
    if let Some(session_id) = cookie::read(&web.site, &headers)
        && let Some(session) = web.session(&headers).await?
    {
        if !session.accepts_csrf(&presented) {
            return Err(WebError::StaleForm);
        }
        web.state.auth.sign_out(session_id, peer_of(&headers)).await?;
        info!(principal.id = %session.caller.principal.0, "`{}` signed out", session.caller.principal_name);
    }
    let mut response = see_other(&web.home());
    response.headers_mut().insert(SET_COOKIE, cookie::forget(&web.site));
    Ok(response)
}

/// The sign-in page in one of its states.
pub(super) fn sign_in_page(web: &Web, headers: &HeaderMap, state: SignIn) -> Result<Response, WebError> {
    let status = if matches!(state, SignIn::Used) { StatusCode::GONE } else { StatusCode::OK };
    let template = SignInPage::new(web, headers, state);
    Ok(without_referrer(page(status, &template, &template.frame)?))
}

pub(super) fn read<T>(form: Result<Form<T>, FormRejection>) -> Result<T, WebError> {
    match form {
        Ok(Form(form)) => Ok(form),
        Err(rejection) => Err(WebError::BadForm { status: rejection.status(), detail: rejection.body_text() }),
    }
}
