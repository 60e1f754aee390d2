//! ETags: what was read is named by its revision, and a write says which one it is about.

use axum::response::Response;
use http::header::{ETAG, IF_MATCH};
use http::{HeaderMap, HeaderValue, StatusCode};

use crate::http::problem;

/// The response with its revision as the entity's tag.
pub(super) fn tagged(revision: i64, mut response: Response) -> Response {
    if let Ok(tag) = HeaderValue::from_str(&format!("\"{revision}\"")) {
        response.headers_mut().insert(ETAG, tag);
    }
    response
}

/// The revision that a write is about; `None` for `If-Match: *`, whichever it is.
///
/// # Errors
/// 428 without the header, so that nobody overwrites what they did not see; 412 for a tag that is none of ours.
pub(super) fn revision(headers: &HeaderMap) -> Result<Option<i64>, Box<Response>> {
    let Some(header) = headers.get(IF_MATCH) else {
        let detail =
            "the header If-Match is missing: give the ETag of what you have read, or `*` to write whatever is there";
        return Err(Box::new(problem(StatusCode::PRECONDITION_REQUIRED, detail)));
    };
    let text = header.to_str().unwrap_or_default().trim();
    if text == "*" {
        return Ok(None);
    }
    let number = text.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).and_then(|tag| tag.parse().ok());
    number.map(Some).ok_or_else(|| {
        let detail = format!("If-Match is `{text}`, which is no ETag of this; read it again");
        Box::new(problem(StatusCode::PRECONDITION_FAILED, detail))
    })
}
