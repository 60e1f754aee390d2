//! What a run printed, as a file: an attachment that no browser takes for a page; and what it says, as it says it.

use std::convert::Infallible;
use std::time::Duration;

use axum::body::Body;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures::stream::{self, StreamExt as _};
use http::header::{CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_TYPE, X_CONTENT_TYPE_OPTIONS};

use super::run_log::event_json;
use crate::model::{Caller, Stream};
use crate::tools::{Follow, Tools};

/// How long a page that follows a run hears nothing before it is told that it still runs.
const SILENCE: Duration = Duration::from_secs(15);

/// A run's whole stream, piece by piece.
pub(super) fn stream(tools: Tools, caller: Caller, (id, stream): (String, Stream)) -> Response {
    let name = format!("run-{id}-{}.txt", stream.as_str());
    let pieces = stream::unfold(Some(0_u64), move |offset| {
        let (tools, caller, id) = (tools.clone(), caller.clone(), id.clone());
        async move {
            let offset = offset?;
            match tools.output_piece(&caller, &id, (stream, offset)).await {
                Ok(Some(bytes)) => {
                    let next = offset + bytes.len() as u64;
                    Some((Ok::<Bytes, std::io::Error>(bytes.into()), Some(next)))
                }
                Ok(None) => None,
                Err(error) => Some((Err(std::io::Error::other(error)), None)),
            }
        }
    });
    let headers = [
        (CONTENT_TYPE, "application/octet-stream".to_owned()),
        (CONTENT_DISPOSITION, format!("attachment; filename=\"{name}\"")),
        (X_CONTENT_TYPE_OPTIONS, "nosniff".to_owned()),
        (CACHE_CONTROL, "no-store".to_owned()),
    ];
    (headers, Body::from_stream(pieces)).into_response()
}

/// What a run says, as server-sent events: `said` with list items, then `ended`.
pub(super) fn follow(follow: Option<Follow>) -> Response {
    let said = stream::unfold(Some(follow), |state| async move {
        let event = |name: &str, data: String| Ok::<Event, Infallible>(Event::default().event(name).data(data));
        match state? {
            None => Some((event("ended", String::new()), None)),
            Some(mut follow) => match follow.next().await {
                Some(events) => Some((event("said", event_json(&events)), Some(Some(follow)))),
                None => Some((event("ended", String::new()), None)),
            },
        }
    });
    let mut response = Sse::new(said.boxed()).keep_alive(KeepAlive::new().interval(SILENCE)).into_response();
    response.headers_mut().insert(CACHE_CONTROL, http::HeaderValue::from_static("no-store"));
    response
}
