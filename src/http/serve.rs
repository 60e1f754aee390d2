//! The accept loop: connections are bounded in number, their heads in time, and all of them end with the server.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::ConnectInfo;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::unread;

use crate::lifecycle::Lifecycle;

/// The most connections at once; further ones wait to be accepted.
const CONNECTIONS: usize = 4096;
/// How long a connection may take for a request's head, and how long it may be idle.
const HEAD: Duration = Duration::from_secs(90);
/// The pause when accepting fails, as it does when descriptors run out.
const PAUSE: Duration = Duration::from_millis(100);

/// Serves the router on the listener until `closing`, and then drains the requests under way.
///
/// Requests carry the client's address as [`ConnectInfo`].
pub async fn serve(listener: TcpListener, router: Router, lifecycle: &Lifecycle) {
    let slots = Arc::new(Semaphore::new(CONNECTIONS));
    let connections = TaskTracker::new();
    loop {
        let next = async { (Arc::clone(&slots).acquire_owned().await, listener.accept().await) };
        let (slot, accepted) = tokio::select! {
            next = next => next,
            () = lifecycle.closing.cancelled() => break,
        };
        let (stream, peer) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::warn!("Could not accept a connection, trying again: {error}");
                tokio::time::sleep(PAUSE).await;
                continue;
            }
        };
        let (router, closing, ended) = (router.clone(), lifecycle.closing.clone(), lifecycle.ended.clone());
        connections.spawn(async move {
            connection(stream, peer, router, (closing, ended)).await;
            drop(slot);
        });
    }
    drop(listener);
    connections.close();
    lifecycle.drain(connections.wait()).await;
    connections.wait().await;
}

async fn connection(
    stream: TcpStream,
    peer: SocketAddr,
    router: Router,
    (closing, ended): (CancellationToken, CancellationToken),
) {
    // Without it a response's head and body wait for each other's acknowledgement: 40 ms.
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!("the connection of {peer} is gone: {error}");
    }
    let service = service_fn(move |mut request: hyper::Request<Incoming>| {
        request.extensions_mut().insert(ConnectInfo(peer));
        unread::answer(router.clone(), request)
    });
    let mut http = hyper::server::conn::http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(HEAD);
    let mut served = std::pin::pin!(http.serve_connection(TokioIo::new(stream), service));
    let outcome = tokio::select! {
        outcome = served.as_mut() => outcome,
        () = ended.cancelled() => return,
        () = closing.cancelled() => {
            served.as_mut().graceful_shutdown();
            tokio::select! {
                outcome = served => outcome,
                () = ended.cancelled() => return,
            }
        }
    };
    if let Err(error) = outcome {
        tracing::debug!("the connection of {peer} broke off: {error}");
    }
}
