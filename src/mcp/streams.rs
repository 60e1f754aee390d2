//! Sessions of the first HTTP transport (2024-11-05, "HTTP+SSE"): what a client says comes by POSTs, and all that it is
//! told, answers too, goes onto the one stream that it keeps open. Such a session lives exactly as long as its stream.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::request::Parts;
use rmcp::model::{ClientJsonRpcMessage, GetExtensions as _};
use rmcp::service::{RoleServer, RxJsonRpcMessage, ServerInitializeError, TxJsonRpcMessage};
use rmcp::transport::{Transport, TransportAdapterIdentity};
use tokio::sync::mpsc;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::era::Era;
use super::flight::Flight;
use super::handler::{Handler, Link, Shared};
use super::inbox::{Heard, Inbox};
use super::refusal::Refusal;
use super::sessions::{Place, SessionRefused, Sessions};
use crate::model::Holder;

/// How many messages may wait on either side.
const WAITING: usize = 64;
/// The most requests of one session that wait for their answers to be read.
const IN_FLIGHT: usize = 256;
/// How long a client may not read before it counts as gone.
const UNREAD: Duration = Duration::from_secs(60);

type Messages = Vec<RxJsonRpcMessage<RoleServer>>;
type Table = Mutex<HashMap<String, (Holder, Arc<Upstream>)>>;

/// The open streams of one server.
#[derive(Default)]
pub(super) struct Streams {
    table: Table,
}

/// A session's stream: dropping it ends the session and kills its calls.
pub struct Downstream {
    /// The session's id, which its client's POSTs carry.
    pub id: String,
    frames: mpsc::Receiver<String>,
    streams: Arc<Streams>,
    _end: DropGuard,
    _place: Place,
}

/// Where the messages of a session's client go in.
pub struct Upstream {
    inbox: Mutex<Inbox>,
    said: mpsc::Sender<RxJsonRpcMessage<RoleServer>>,
    /// Weak, so that the stream ends with the transport.
    told: mpsc::WeakSender<String>,
    flight: Flight,
    closing: CancellationToken,
}

/// What a POST came to.
pub enum Said {
    /// What there is to answer goes onto the stream.
    Taken,
    /// Nothing of it was taken.
    Refused(Refusal),
    /// The client does not read what it is told; it may try again later.
    Crowded,
    /// The session ended meanwhile.
    Ended,
}

impl Streams {
    fn table(&self) -> MutexGuard<'_, HashMap<String, (Holder, Arc<Upstream>)>> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Opens a session for this holder, until `stop` or until its stream is dropped. `closing` lets its calls end and
    /// takes no new ones.
    ///
    /// # Errors
    /// [`SessionRefused`] when there are too many.
    pub(super) fn open(
        self: &Arc<Self>,
        shared: Arc<Shared>,
        sessions: &Arc<Sessions>,
        holder: &Holder,
        (closing, stop): (CancellationToken, &CancellationToken),
    ) -> Result<Downstream, SessionRefused> {
        let place = sessions.reserve(holder.clone(), Era::UNNAMED)?.kept();
        let end = stop.child_token();
        let (said, incoming) = mpsc::channel(WAITING);
        let (outgoing, frames) = mpsc::channel(WAITING);
        let flight = Flight::default();
        let upstream = Upstream {
            inbox: Mutex::default(),
            said,
            told: outgoing.downgrade(),
            flight: flight.clone(),
            closing: closing.clone(),
        };
        let wire = Wire { incoming, outgoing: Some(outgoing), flight, closing, end: end.clone() };
        tokio::spawn(serve(
            Handler::new(shared, Link::Stream(holder.principal.clone(), end.clone())),
            wire,
            end.clone(),
        ));
        let id = uuid::Uuid::new_v4().simple().to_string();
        self.table().insert(id.clone(), (holder.clone(), Arc::new(upstream)));
        Ok(Downstream { id, frames, streams: Arc::clone(self), _end: end.drop_guard(), _place: place })
    }

    /// The way into the session of that id, when it belongs to this holder.
    pub(super) fn upstream(&self, id: &str, holder: &Holder) -> Option<Arc<Upstream>> {
        let table = self.table();
        table.get(id).filter(|(owner, _)| owner == holder).map(|(_, upstream)| Arc::clone(upstream))
    }
}

impl Downstream {
    /// The next message for the client, on one line; `None` when the session has ended.
    ///
    /// # Cancellation
    /// Safe: no message is lost.
    pub async fn next(&mut self) -> Option<String> {
        self.frames.recv().await
    }
}

impl Drop for Downstream {
    fn drop(&mut self) {
        self.streams.table().remove(&self.id);
    }
}

impl Upstream {
    /// Takes what a POST holds. `parts` are the request's own, with its caller in the extensions.
    pub async fn say(&self, bytes: &Bytes, parts: &Parts) -> Said {
        let Some(told) = self.told.upgrade() else { return Said::Ended };
        let (messages, refused) = match self.read(bytes) {
            Ok(heard) => heard,
            Err(said) => return said,
        };
        for mut message in messages {
            if let ClientJsonRpcMessage::Request(request) = &mut message {
                request.request.extensions_mut().insert(parts.clone());
            }
            if self.said.send(message).await.is_err() {
                return Said::Ended;
            }
        }
        for refused in refused {
            match tokio::time::timeout(UNREAD, told.send(refused.to_json())).await {
                Ok(Ok(())) => {}
                Ok(Err(_)) => return Said::Ended,
                Err(_) => return Said::Crowded,
            }
        }
        Said::Taken
    }

    /// Reads a body and takes account of what is about to be handed on; at once, so that no other POST comes in between.
    fn read(&self, bytes: &Bytes) -> Result<(Messages, Vec<Refusal>), Said> {
        let mut inbox = self.inbox.lock().unwrap_or_else(PoisonError::into_inner);
        let Heard { mut messages, mut refused } = inbox.read(bytes);
        if messages.is_empty()
            && let Some(nameless) = refused.pop_if(|refused| refused.id.is_none())
        {
            return Err(Said::Refused(nameless));
        }
        if self.closing.is_cancelled() {
            refused.extend(messages.extract_if(.., |message| is_call(message)).filter_map(|call| shutting_down(&call)));
        }
        let twice = messages.iter().find_map(|message| match message {
            ClientJsonRpcMessage::Request(request) if self.flight.holds(&request.id) => Some(&request.id),
            _ => None,
        });
        if let Some(id) = twice {
            let text = format!("the id `{id}` is that of a request that was not answered yet");
            return Err(Said::Refused(Refusal::request(text)));
        }
        if self.flight.count() >= IN_FLIGHT {
            return Err(Said::Crowded);
        }
        messages.iter().for_each(|message| self.flight.hand_on(message));
        Ok((messages, refused))
    }
}

fn is_call(message: &ClientJsonRpcMessage) -> bool {
    use rmcp::model::ClientRequest::CallToolRequest;
    matches!(message, ClientJsonRpcMessage::Request(request) if matches!(request.request, CallToolRequest(_)))
}

fn shutting_down(call: &ClientJsonRpcMessage) -> Option<Refusal> {
    let ClientJsonRpcMessage::Request(call) = call else { return None };
    let id = serde_json::value::to_raw_value(&call.id).ok()?;
    let text = "the server is shutting down; call again in a moment";
    Some(Refusal::new(-32603, text).with_id(Some(&id)))
}

/// The transport between the POSTs and the stream.
struct Wire {
    incoming: mpsc::Receiver<RxJsonRpcMessage<RoleServer>>,
    outgoing: Option<mpsc::Sender<String>>,
    flight: Flight,
    closing: CancellationToken,
    end: CancellationToken,
}

/// The client's stream is closed.
#[derive(Debug, thiserror::Error)]
#[error("the client's stream is closed")]
struct Closed;

impl Transport<RoleServer> for Wire {
    type Error = Closed;

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = Result<(), Closed>> + Send + 'static {
        let (outgoing, flight, end) = (self.outgoing.clone(), self.flight.clone(), self.end.clone());
        async move {
            let sent = match serde_json::to_string(&item) {
                _ if Inbox::is_own(&item) => Ok(()),
                Ok(frame) => told(outgoing, frame, &end).await,
                Err(error) => {
                    tracing::error!("A message did not serialise: {error}");
                    Err(Closed)
                }
            };
            flight.sent(&item);
            sent
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        let done = async {
            self.closing.cancelled().await;
            self.flight.landed().await;
        };
        tokio::select! {
            message = self.incoming.recv() => message,
            () = done => None,
        }
    }

    async fn close(&mut self) -> Result<(), Closed> {
        self.outgoing = None;
        Ok(())
    }
}

/// Sends a frame to a client; one that does not read for long is given up.
async fn told(outgoing: Option<mpsc::Sender<String>>, frame: String, end: &CancellationToken) -> Result<(), Closed> {
    let outgoing = outgoing.ok_or(Closed)?;
    match tokio::time::timeout(UNREAD, outgoing.send(frame)).await {
        Ok(sent) => sent.map_err(|_| Closed),
        Err(_) => {
            tracing::info!("Ended a session whose client did not read its stream for {} s", UNREAD.as_secs());
            end.cancel();
            Err(Closed)
        }
    }
}

async fn serve(handler: Handler, wire: Wire, end: CancellationToken) {
    let served =
        rmcp::service::serve_server_with_ct::<_, Wire, _, TransportAdapterIdentity>(handler, wire, end.clone());
    match served.await {
        Ok(service) => {
            if let Err(error) = service.waiting().await {
                tracing::error!("The task of a session broke: {error}");
            }
        }
        Err(ServerInitializeError::ConnectionClosed(_) | ServerInitializeError::Cancelled) => {}
        Err(error) => tracing::debug!("a client did not open its session as MCP asks: {error}"),
    }
    end.cancel();
}
