//! Reading a request's body: bounded in size and in time.

use std::time::Duration;

use axum::body::{Body, HttpBody as _};
use axum::response::Response;
use bytes::{Bytes, BytesMut};
use http::StatusCode;
use http_body_util::BodyExt as _;

use super::problem::problem;

/// Reads the whole body.
///
/// # Errors
/// 413 over the limit, 408 when it takes too long, 400 when it breaks off.
#[expect(clippy::result_large_err, reason = "a response is what the caller sends")]
pub async fn read(body: Body, limit: usize, patience: Duration) -> Result<Bytes, Response> {
    match tokio::time::timeout(patience, collect(body, limit)).await {
        Ok(read) => read,
        Err(_) => {
            let detail = format!("the request's body did not arrive within {} seconds", patience.as_secs());
            Err(problem(StatusCode::REQUEST_TIMEOUT, detail))
        }
    }
}

#[expect(clippy::result_large_err, reason = "a response is what the caller sends")]
async fn collect(mut body: Body, limit: usize) -> Result<Bytes, Response> {
    let too_large = || problem(StatusCode::PAYLOAD_TOO_LARGE, format!("the body is larger than {limit} bytes"));
    if body.size_hint().lower() > limit as u64 {
        return Err(too_large());
    }
    let mut bytes = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| problem(StatusCode::BAD_REQUEST, format!("the body broke off: {error}")))?;
        let Ok(data) = frame.into_data() else { continue };
        if data.len() > limit - bytes.len() {
            return Err(too_large());
        }
        bytes.extend_from_slice(&data);
    }
    Ok(bytes.freeze())
}
