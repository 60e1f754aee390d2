//! Carries bytes between a run and what it was granted, and counts them.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use super::gateway::{NetworkOptions, NoWay};
use super::plan::{Role, Verdict};
use super::proxy;
use super::record::Record;
use crate::model::Unreached;

/// How many connections a run may have at once; more wait.
const CONNECTIONS: usize = 128;
/// How much is read at a time.
const BUFFER: usize = 32 << 10;

/// What serves the listeners of one run.
#[derive(Clone, Debug)]
pub(super) struct Relay {
    pub(super) record: Arc<Record>,
    pub(super) options: Arc<NetworkOptions>,
    places: Arc<Semaphore>,
}

impl Relay {
    pub(super) fn new(record: Arc<Record>, options: Arc<NetworkOptions>) -> Self {
        Self { record, options, places: Arc::new(Semaphore::new(CONNECTIONS)) }
    }

    /// Accepts until the future is dropped; then all its connections are cut.
    pub(super) async fn listen(self, listener: TcpListener, role: Role) {
        let mut connections = JoinSet::new();
        loop {
            let place = self.places.clone().acquire_owned().await.expect("the semaphore is never closed");
            let accepted = tokio::select! {
                accepted = listener.accept() => accepted,
                Some(_ended) = connections.join_next() => continue,
            };
            let Ok((stream, _)) = accepted else {
                // Out of descriptors: those that end make room.
                tokio::time::sleep(Duration::from_millis(50)).await;
                continue;
            };
            let (relay, role) = (self.clone(), role.clone());
            connections.spawn(async move {
                match role {
                    Role::Host(host, port) => relay.carry(stream, &host, port).await,
                    Role::Proxy => proxy::serve(relay, stream).await,
                }
                drop(place);
            });
        }
    }

    async fn carry(&self, mut stream: TcpStream, host: &str, port: u16) {
        let _only_slower = stream.set_nodelay(true);
        let carried = match self.connect(host, port).await {
            Ok(mut outside) => {
                tokio::io::copy_bidirectional_with_sizes(&mut stream, &mut outside, BUFFER, BUFFER).await.is_ok()
            }
            Err(_) => false,
        };
        if !carried {
            // A reset, so that the other side doesn't take this for a proper end.
            let _closed_anyway = rustix::net::sockopt::set_socket_linger(&stream, Some(Duration::ZERO));
        }
    }

    /// A connection to what the run was granted; what it isn't granted, or can't reach, is recorded.
    pub(super) async fn connect(&self, host: &str, port: u16) -> Result<Counted, Unreached> {
        let answer = match self.record.plan.verdict(host, port) {
            Verdict::Refused(reason) => Err(NoWay::Refused(reason)),
            verdict => self.options.connect(host, port, verdict == Verdict::Named).await,
        };
        match answer {
            Ok(stream) => {
                self.record.connections.fetch_add(1, Ordering::Relaxed);
                Ok(Counted { stream, record: Arc::clone(&self.record) })
            }
            Err(no_way) => {
                let refused = matches!(no_way, NoWay::Refused(_));
                let (NoWay::Refused(reason) | NoWay::Failed(reason)) = no_way;
                let unreached = Unreached { host: host.to_owned(), port: Some(port), udp: false, refused, reason };
                self.record.unreached(unreached.clone());
                Err(unreached)
            }
        }
    }
}

/// A connection to the outside whose bytes are counted.
#[derive(Debug)]
pub(super) struct Counted {
    stream: TcpStream,
    record: Arc<Record>,
}

fn count(counter: &AtomicU64, bytes: usize) {
    counter.fetch_add(bytes as u64, Ordering::Relaxed);
}

impl AsyncRead for Counted {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = ready!(Pin::new(&mut self.stream).poll_read(cx, buffer));
        count(&self.record.received, buffer.filled().len() - before);
        Poll::Ready(read)
    }
}

impl AsyncWrite for Counted {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = ready!(Pin::new(&mut self.stream).poll_write(cx, bytes));
        count(&self.record.sent, *written.as_ref().unwrap_or(&0));
        Poll::Ready(written)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
