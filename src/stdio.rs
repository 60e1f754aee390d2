//! The stdio door: newline-delimited JSON-RPC, over the same handler as HTTP. What it writes is frames and nothing else.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use rmcp::model::{ClientJsonRpcMessage, ClientNotification, GetExtensions as _, NumberOrString};
use rmcp::service::{RoleServer, RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncWrite, AsyncWriteExt as _, BufReader};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::lifecycle::Lifecycle;
use crate::mcp::peek::{self, Body, Message, Request};
use crate::mcp::{PipeError, Refusal, serve_pipe};
use crate::model::Caller;
use crate::tools::Domain;

/// The most bytes of one message.
const LINE: usize = 16 << 20;
/// How many messages may wait on either side.
const WAITING: usize = 64;
/// How long the last frames may take to be written.
const FLUSH: Duration = Duration::from_secs(2);
/// The id of the handshake that we hold on behalf of a client that holds none.
const OWN_HANDSHAKE: &str = "omniforge/handshake";

/// Serves one client until it closes its end or the lifecycle closes: then its subscriptions end, and what is in flight is
/// drained and answered.
///
/// # Errors
/// [`PipeError`].
pub async fn serve<R, W>(
    domain: Arc<dyn Domain>,
    caller: Caller,
    reader: R,
    writer: W,
    lifecycle: Lifecycle,
) -> Result<(), PipeError>
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    let news = lifecycle.closing.child_token();
    let lines = Lines::new(reader, writer, lifecycle, news.clone());
    serve_pipe(domain, caller, lines, news).await
}

/// A line, or the refusal of one that was too long.
type Line = Result<Bytes, Refusal>;

/// The transport: one task reads lines, one writes them, so that neither is lost when the protocol turns elsewhere.
struct Lines {
    incoming: mpsc::Receiver<Line>,
    outgoing: Option<mpsc::Sender<String>>,
    writer: Option<JoinHandle<()>>,
    lifecycle: Lifecycle,
    /// Cancelled when nothing new is to be told.
    news: CancellationToken,
    /// The requests that were handed on and have no answer yet.
    flight: watch::Sender<HashSet<NumberOrString>>,
    /// Whether the end has begun: what is in flight is answered, and no line is awaited any more.
    draining: bool,
    opened: bool,
    waiting: Option<RxJsonRpcMessage<RoleServer>>,
    due: Option<Refusal>,
}

/// The client's end is closed.
#[derive(Debug, thiserror::Error)]
#[error("the client has closed its end")]
struct Closed;

impl Lines {
    fn new<R, W>(reader: R, writer: W, lifecycle: Lifecycle, news: CancellationToken) -> Self
    where
        R: AsyncRead + Send + Unpin + 'static,
        W: AsyncWrite + Send + Unpin + 'static,
    {
        let (line, incoming) = mpsc::channel(WAITING);
        let (outgoing, frames) = mpsc::channel(WAITING);
        tokio::spawn(read(reader, line, news.clone()));
        Self {
            incoming,
            outgoing: Some(outgoing),
            writer: Some(tokio::spawn(write(writer, frames))),
            lifecycle,
            news,
            flight: watch::channel(HashSet::new()).0,
            draining: false,
            opened: false,
            waiting: None,
            due: None,
        }
    }

    /// Ends what waits for news, and gives what is in flight the time to be answered.
    fn begin_to_end(&mut self) {
        self.draining = true;
        self.news.cancel();
        let (lifecycle, mut flight) = (self.lifecycle.clone(), self.flight.subscribe());
        tokio::spawn(async move {
            let answered = async {
                // The sender goes with the transport, and then nobody waits for answers.
                let _gone = flight.wait_for(HashSet::is_empty).await;
            };
            lifecycle.drain(answered).await;
        });
    }

    /// Keeps account of what is in flight.
    fn hand_on(&self, message: RxJsonRpcMessage<RoleServer>) -> RxJsonRpcMessage<RoleServer> {
        match &message {
            ClientJsonRpcMessage::Request(request) if request.id != own_id() => {
                self.flight.send_modify(|flight| {
                    flight.insert(request.id.clone());
                });
            }
            ClientJsonRpcMessage::Notification(told) => {
                // A cancelled request gets no answer.
                if let ClientNotification::CancelledNotification(cancelled) = &told.notification
                    && let Some(id) = &cancelled.params.request_id
                {
                    self.flight.send_modify(|flight| {
                        flight.remove(id);
                    });
                }
            }
            _ => {}
        }
        message
    }

    /// Sends the refusal that is due, if one is.
    ///
    /// # Cancellation
    /// Safe: it stays due until there is room for it.
    async fn settle(&mut self) {
        let (Some(_), Some(outgoing)) = (&self.due, &self.outgoing) else { return };
        // A client that is gone needs no refusal; its end shows on the next read.
        if let Ok(room) = outgoing.reserve().await
            && let Some(refusal) = self.due.take()
        {
            room.send(refusal.to_json());
        }
    }

    /// What the protocol layer is to see of a line; `None` when that is nothing.
    fn accept(&mut self, line: Bytes) -> Option<RxJsonRpcMessage<RoleServer>> {
        let refused = match peek::read(&line) {
            Ok(Body::One(Message::Request(mut request))) => {
                match request.unknown_method(None).or_else(|| request.fault.take()) {
                    Some(refused) => refused,
                    None => match message(&line, &request) {
                        Ok(message) => return self.open(message, &request),
                        Err(refused) => refused,
                    },
                }
            }
            // Before the handshake there is nothing that a notification or a reply could be about.
            Ok(Body::One(_)) if !self.opened => return None,
            Ok(Body::One(_)) => return serde_json::from_slice(&line).ok(),
            Ok(Body::Batch(_)) => Refusal::request("batches are not served here; send one message per line"),
            Err(refused) => refused,
        };
        self.due = Some(refused);
        None
    }

    /// A client that begins without a handshake gets one held for it.
    fn open(
        &mut self,
        message: RxJsonRpcMessage<RoleServer>,
        request: &Request<'_>,
    ) -> Option<RxJsonRpcMessage<RoleServer>> {
        let modern = request.meta.protocol_version.is_some();
        match &*request.method {
            _ if self.opened => {}
            "server/discover" | "ping" => return Some(message),
            "initialize" => self.opened = true,
            _ if modern => self.opened = request.has_modern_meta(),
            _ => {
                self.opened = true;
                self.waiting = Some(message);
                return Some(own_handshake());
            }
        }
        Some(message)
    }
}

impl Transport<RoleServer> for Lines {
    type Error = Closed;

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = Result<(), Closed>> + Send + 'static {
        let (outgoing, flight) = (self.outgoing.clone(), self.flight.clone());
        async move {
            let answered = match &item {
                TxJsonRpcMessage::<RoleServer>::Response(response) if response.id == own_id() => return Ok(()),
                TxJsonRpcMessage::<RoleServer>::Response(response) => Some(response.id.clone()),
                TxJsonRpcMessage::<RoleServer>::Error(error) => error.id.clone(),
                _ => None,
            };
            let frame = serde_json::to_string(&item).map_err(|error| {
                tracing::error!("A message did not serialise: {error}");
                Closed
            })?;
            let sent = outgoing.ok_or(Closed)?.send(frame).await.map_err(|_| Closed);
            if let Some(id) = answered {
                flight.send_modify(|flight| {
                    flight.remove(&id);
                });
            }
            sent
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        loop {
            self.settle().await;
            if let Some(message) = self.waiting.take() {
                return Some(self.hand_on(message));
            }
            if self.draining {
                self.lifecycle.ended.cancelled().await;
                return None;
            }
            let line = tokio::select! {
                line = self.incoming.recv() => line,
                () = self.news.cancelled() => None,
            };
            match line {
                None => self.begin_to_end(),
                Some(Err(refused)) => self.due = Some(refused),
                Some(Ok(line)) => {
                    if let Some(message) = self.accept(line) {
                        return Some(self.hand_on(message));
                    }
                }
            }
        }
    }

    async fn close(&mut self) -> Result<(), Closed> {
        self.outgoing = None;
        if let Some(writer) = self.writer.take()
            && tokio::time::timeout(FLUSH, writer).await.is_err()
        {
            tracing::debug!("the client did not read its last frames");
        }
        Ok(())
    }
}

fn message(line: &Bytes, request: &Request<'_>) -> Result<RxJsonRpcMessage<RoleServer>, Refusal> {
    let (body, arguments) = request.without_arguments(line);
    let mut message: ClientJsonRpcMessage = serde_json::from_slice(&body)
        .map_err(|error| Refusal::request(format!("not a request: {error}")).with_id(Some(request.id)))?;
    if let (ClientJsonRpcMessage::Request(request), Some(arguments)) = (&mut message, arguments) {
        request.request.extensions_mut().insert(arguments);
    }
    Ok(message)
}

fn own_id() -> NumberOrString {
    NumberOrString::String(OWN_HANDSHAKE.into())
}

fn own_handshake() -> RxJsonRpcMessage<RoleServer> {
    serde_json::from_value(serde_json::json!({
        "jsonrpc": "2.0",
        "id": OWN_HANDSHAKE,
        "method": "initialize",
        "params": {
            "protocolVersion": crate::mcp::Era::NEWEST_LEGACY.as_str(),
            "capabilities": {},
            "clientInfo": {"name": "unknown", "version": "0"},
        },
    }))
    .expect("the handshake above is one")
}

async fn read<R: AsyncRead + Unpin>(reader: R, lines: mpsc::Sender<Line>, shutdown: CancellationToken) {
    let mut reader = BufReader::new(reader);
    loop {
        let line = tokio::select! {
            line = next_line(&mut reader) => line,
            () = shutdown.cancelled() => return,
        };
        let Some(line) = line else { return };
        let blank = line.as_ref().is_ok_and(|line| line.iter().all(u8::is_ascii_whitespace));
        if !blank && lines.send(line).await.is_err() {
            return;
        }
    }
}

/// The next line, without ever holding more than a message may have; `None` at the end.
async fn next_line<R: AsyncRead + Unpin>(reader: &mut BufReader<R>) -> Option<Line> {
    let mut line = Vec::new();
    let mut length = 0;
    loop {
        let available = reader.fill_buf().await.ok()?;
        if available.is_empty() && length == 0 {
            return None;
        }
        let newline = available.iter().position(|byte| *byte == b'\n');
        let take = newline.unwrap_or(available.len());
        length += take;
        if length <= LINE {
            line.extend_from_slice(&available[..take]);
        } else {
            line = Vec::new();
        }
        let ended = newline.is_some() || available.is_empty();
        let consumed = take + usize::from(newline.is_some());
        reader.consume(consumed);
        if ended && length > LINE {
            return Some(Err(Refusal::request(format!("the message is larger than {LINE} bytes"))));
        }
        if ended {
            return Some(Ok(line.into()));
        }
    }
}

async fn write<W: AsyncWrite + Unpin>(mut writer: W, mut frames: mpsc::Receiver<String>) {
    while let Some(mut frame) = frames.recv().await {
        frame.push('\n');
        if writer.write_all(frame.as_bytes()).await.is_err() || writer.flush().await.is_err() {
            return;
        }
    }
}
