//! Bodies of requests that were answered without them, as refusals are: a small one is read and forgotten, so that the
//! connection can go on; where that takes long, the response says that the connection ends. Otherwise a client sends its
//! next request on a connection that is about to be closed, and gets no answer.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, HttpBody};
use axum::response::Response;
use bytes::Bytes;
use http::header::{CONNECTION, EXPECT};
use http::{HeaderValue, Request};
use http_body_util::BodyExt as _;
use hyper::body::{Frame, Incoming, SizeHint};
use tower::ServiceExt as _;

/// The most that is read of a body that nobody wants.
const LENGTH: usize = 256 << 10;
/// How long it may take.
const PATIENCE: Duration = Duration::from_secs(1);

/// A body that comes back when its reader has had enough of it.
struct Lent {
    body: Option<Incoming>,
    back: Arc<Mutex<Option<Incoming>>>,
}

impl HttpBody for Lent {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        match &mut self.body {
            Some(body) => Pin::new(body).poll_frame(context),
            None => Poll::Ready(None),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.body.as_ref().is_none_or(HttpBody::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.body.as_ref().map(HttpBody::size_hint).unwrap_or_default()
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        let body = self.body.take().filter(|body| !body.is_end_stream());
        *self.back.lock().unwrap_or_else(PoisonError::into_inner) = body;
    }
}

/// Answers a request, and takes care of the body that nobody read.
pub(super) async fn answer(router: Router, request: Request<Incoming>) -> Result<Response, Infallible> {
    let waits = request.headers().contains_key(EXPECT);
    let back = Arc::new(Mutex::new(None));
    let request = request.map(|body| Body::new(Lent { body: Some(body), back: Arc::clone(&back) }));
    let mut response = router.oneshot(request).await?;
    let unread = back.lock().unwrap_or_else(PoisonError::into_inner).take();
    if let Some(body) = unread
        // A client that waits to be asked for its body is not to send it for nothing.
        && (waits || !forget(body).await)
    {
        response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    }
    Ok(response)
}

/// Reads a body to its end, unless it is large or slow.
async fn forget(mut body: Incoming) -> bool {
    let whole = async {
        let mut length = 0;
        while let Some(frame) = body.frame().await {
            let Ok(frame) = frame else { return false };
            length += frame.data_ref().map_or(0, Bytes::len);
            if length > LENGTH {
                return false;
            }
        }
        true
    };
    tokio::time::timeout(PATIENCE, whole).await.unwrap_or(false)
}
