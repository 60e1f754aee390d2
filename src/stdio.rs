//! The stdio door: newline-delimited JSON-RPC, over the same handler as HTTP. What it writes is frames and nothing else.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use rmcp::service::{RoleServer, RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncWrite, AsyncWriteExt as _, BufReader};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::lifecycle::Lifecycle;
use crate::mcp::flight::Flight;
use crate::mcp::inbox::Inbox;
use crate::mcp::{PipeError, Refusal, serve_pipe};
use crate::model::Caller;
use crate::tools::Domain;

/// The most bytes of one message.
const LINE: usize = 16 << 20;
/// How many messages may wait on either side.
const WAITING: usize = 64;
/// How long the last frames may take to be written.
const FLUSH: Duration = Duration::from_secs(2);

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
    flight: Flight,
    /// Whether the end has begun: what is in flight is answered, and no line is awaited any more.
    draining: bool,
    inbox: Inbox,
    waiting: VecDeque<RxJsonRpcMessage<RoleServer>>,
    due: VecDeque<Refusal>,
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
            flight: Flight::default(),
            draining: false,
            inbox: Inbox::default(),
            waiting: VecDeque::new(),
            due: VecDeque::new(),
        }
    }

    /// Ends what waits for news, and gives what is in flight the time to be answered.
    fn begin_to_end(&mut self) {
        self.draining = true;
        self.news.cancel();
        // The account goes with the transport, and then nobody waits for answers.
        let (lifecycle, answered) = (self.lifecycle.clone(), self.flight.landed());
        tokio::spawn(async move { lifecycle.drain(answered).await });
    }

    /// Sends the refusals that are due.
    ///
    /// # Cancellation
    /// Safe: each stays due until there is room for it.
    async fn settle(&mut self) {
        while let (Some(refusal), Some(outgoing)) = (self.due.front(), &self.outgoing) {
            // A client that is gone needs no refusal; its end shows on the next read.
            let Ok(room) = outgoing.reserve().await else { return };
            room.send(refusal.to_json());
            self.due.pop_front();
        }
    }

    /// Takes what a line says.
    fn accept(&mut self, line: &Bytes) {
        let heard = self.inbox.read(line);
        self.waiting.extend(heard.messages);
        self.due.extend(heard.refused);
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
            if Inbox::is_own(&item) {
                flight.sent(&item);
                return Ok(());
            }
            let frame = serde_json::to_string(&item).map_err(|error| {
                tracing::error!("A message did not serialise: {error}");
                Closed
            })?;
            let sent = outgoing.ok_or(Closed)?.send(frame).await.map_err(|_| Closed);
            flight.sent(&item);
            sent
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        loop {
            self.settle().await;
            if let Some(message) = self.waiting.pop_front() {
                self.flight.hand_on(&message);
                return Some(message);
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
                Some(Err(refused)) => self.due.push_back(refused),
                Some(Ok(line)) => self.accept(&line),
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
