//! Where a request came from, what was refused to it, and the end of what is open when its credential counts no more.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use axum::body::Body;
use axum::extract::{ConnectInfo, Request, State};
use axum::middleware::Next;
use axum::response::Response;
use futures::StreamExt as _;
use http::{Extensions, StatusCode};
use http_body_util::combinators::BoxBody;
use http_body_util::{Empty, StreamBody};
use hyper::body::Body as _;
use tokio_util::sync::CancellationToken;

use super::front::Front;
use super::problem::{Refused, problem};
use crate::mcp;

/// The address at the other end of the request's connection.
pub fn peer(extensions: &Extensions) -> Option<IpAddr> {
    extensions.get::<ConnectInfo<SocketAddr>>().map(|ConnectInfo(peer)| peer.ip().to_canonical())
}

/// Middleware around every door: what is refused is noted.
pub(super) async fn note_refusals(State(front): State<Arc<Front>>, request: Request, next: Next) -> Response {
    let peer = peer(request.extensions());
    let mut response = next.run(request).await;
    if let Some(refused) = response.extensions_mut().remove::<Refused>() {
        front.identify.refused(refused, peer);
    }
    response
}

/// What a request is told whose credential ended while it was served.
pub fn credential_ended() -> Response {
    problem(StatusCode::UNAUTHORIZED, "the bearer token was revoked or has expired while this request was served")
}

/// Ends a stream with its credential. Bodies that are whole already stay as they are.
pub fn until(ended: CancellationToken, response: Response) -> Response {
    if response.body().size_hint().exact().is_some() {
        return response;
    }
    response.map(|body| Body::from_stream(body.into_data_stream().take_until(ended.cancelled_owned())))
}

/// Drops the work, and then its response's stream, when the credential ends: the calls in it die.
pub(super) async fn cut(ended: CancellationToken, work: impl Future<Output = mcp::Response> + Send) -> mcp::Response {
    let response = tokio::select! {
        response = work => response,
        () = ended.cancelled() => {
            let mut response = http::Response::new(BoxBody::new(Empty::new()));
            *response.status_mut() = StatusCode::UNAUTHORIZED;
            return response;
        }
    };
    if response.body().size_hint().exact().is_some() {
        return response;
    }
    response.map(|body| {
        let frames = http_body_util::BodyStream::new(body).take_until(ended.cancelled_owned());
        BoxBody::new(StreamBody::new(frames))
    })
}
