//! How a page is sent: rendered, never kept, and confined by a content-security policy.

use askama::Template;
use axum::response::{IntoResponse, Response};
use http::header::{
    ACCEPT, CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, LOCATION, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
    X_FRAME_OPTIONS,
};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};

use super::WebError;
use super::frame::Frame;

const OPENER_POLICY: HeaderName = HeaderName::from_static("cross-origin-opener-policy");

/// Renders a page and sends it with the headers that every page has.
pub(super) fn page(status: StatusCode, template: &impl Template, frame: &Frame) -> Result<Response, WebError> {
    let mut response = (status, template.render().map_err(WebError::Render)?).into_response();
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
    headers.insert(CONTENT_SECURITY_POLICY, content_security_policy(&frame.nonce));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(X_FRAME_OPTIONS, HeaderValue::from_static("DENY"));
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("same-origin"));
    headers.insert(OPENER_POLICY, HeaderValue::from_static("same-origin"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Ok(response)
}

/// 303: the browser goes on to this path with GET.
pub(super) fn see_other(path: &str) -> Response {
    let location = HeaderValue::try_from(path).expect("a path of ours is made of plain characters");
    let headers = [(LOCATION, location), (CACHE_CONTROL, HeaderValue::from_static("no-store"))];
    (StatusCode::SEE_OTHER, headers).into_response()
}

/// The response, without a referrer in whatever the browser asks next.
pub(super) fn without_referrer(mut response: Response) -> Response {
    response.headers_mut().insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    response
}

/// DESIGN §9. The nonce is for the style elements that the code editor makes.
fn content_security_policy(nonce: &str) -> HeaderValue {
    HeaderValue::try_from(format!(
        "default-src 'none'; script-src 'self'; style-src 'self' 'nonce-{nonce}'; img-src 'self' data:; \
         connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ))
    .expect("base64 is plain text")
}

/// Whether a browser wants to show the answer: programs don't ask for HTML.
pub(super) fn wants_page(headers: &HeaderMap) -> bool {
    let lines = headers.get_all(ACCEPT).iter().filter_map(|line| line.to_str().ok());
    lines.flat_map(|line| line.split(',')).any(|range| {
        let mut parts = range.split(';').map(str::trim);
        let kind = parts.next().unwrap_or_default();
        let is_page = ["text/html", "application/xhtml+xml"].iter().any(|page| kind.eq_ignore_ascii_case(page));
        let weight = parts.find_map(|part| part.strip_prefix("q=").or_else(|| part.strip_prefix("Q=")));
        is_page && weight.is_none_or(|weight| weight.trim().parse::<f32>().is_ok_and(|weight| weight > 0.0))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn browsers_are_told_from_programs() {
        let wants =
            |accept: &'static str| wants_page(&[(ACCEPT, HeaderValue::from_static(accept))].into_iter().collect());
        assert!(wants("text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"));
        assert!(wants("application/json, Text/HTML; q=0.5"));
        for program in ["*/*", "application/json", "text/html;q=0", "text/*", ""] {
            assert!(!wants(program), "{program}");
        }
        assert!(!wants_page(&HeaderMap::new()));
    }
}
