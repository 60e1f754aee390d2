//! `POST /theme`: light, dark, or as the system has it; kept in a cookie, and back to where one was.

use std::sync::Arc;

use axum::Form;
use axum::extract::State;
use axum::extract::rejection::FormRejection;
use axum::response::Response;
use http::HeaderMap;
use http::header::{REFERER, SET_COOKIE};
use serde::Deserialize;

use super::reply::see_other;
use super::sign_in::read;
use super::{Web, WebError, cookie};

/// What the reader chose.
#[derive(Deserialize)]
pub(super) struct Chosen {
    theme: String,
}

/// `POST /theme`. It changes nothing but how pages look in this browser.
pub(super) async fn choose(
    State(web): State<Arc<Web>>,
    headers: HeaderMap,
    form: Result<Form<Chosen>, FormRejection>,
) -> Result<Response, WebError> {
    let chosen = read(form)?;
    if !web.site.sent_by_own_page(&headers) {
        return Err(WebError::OtherSite);
    }
    let mut response = see_other(&back(&headers).unwrap_or_else(|| web.home()));
    response.headers_mut().insert(SET_COOKIE, cookie::keep_theme(&web.site, &chosen.theme));
    Ok(response)
}

/// The path of the page that the form stood on, where the browser tells; never another host.
fn back(headers: &HeaderMap) -> Option<String> {
    let url = url::Url::parse(headers.get(REFERER)?.to_str().ok()?).ok()?;
    let path = url.path().to_owned();
    let query = url.query().map(|query| format!("?{query}")).unwrap_or_default();
    (path.starts_with('/') && !path.starts_with("//")).then(|| path + &query)
}
