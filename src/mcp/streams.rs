//! Sessions of the first HTTP transport (2024-11-05, "HTTP+SSE"): what a client says comes by POSTs, and all that it is
//! told, answers too, goes onto the one stream that it keeps open. Such a session lives exactly as long as its stream.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::request::Parts;
use rmcp::model::{ClientJsonRpcMessage, ClientNotification, GetExtensions as _, NumberOrString};
use rmcp::service::{RoleServer, RxJsonRpcMessage, ServerInitializeError, TxJsonRpcMessage};
use rmcp::transport::{Transport, TransportAdapterIdentity};
use tokio::sync::{mpsc, watch};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::era::Era;
use super::handler::{Handler, Link, Shared};
use super::inbox::Inbox;
use super::refusal::Refusal;
use super::sessions::{Place, SessionRefused, Sessions};
use crate::model::PrincipalId;

/// How many messages may wait on either side: more than the refusals of a whole batch.
const WAITING: usize = 128;
/// The most requests of one session that wait for their answers to be read.
const IN_FLIGHT: usize = 256;
/// How long a client may not read before it counts as gone.
const UNREAD: Duration = Duration::from_secs(60);

type Table = Mutex<HashMap<String, (PrincipalId, Arc<Inlet>)>>;

/// The open streams of one server.
#[derive(Default)]
pub(super) struct Streams {
    table: Table,
}

/// A session's stream: dropping it ends the session and kills its calls.
pub struct Outlet {
    /// The session's id, which its client's POSTs carry.
    pub id: String,
    frames: mpsc::Receiver<String>,
    streams: Arc<Streams>,
    _end: DropGuard,
    _place: Place,
}

/// Where the messages of a session's client go in.
pub struct Inlet {
    inbox: Mutex<Inbox>,
    said: mpsc::Sender<RxJsonRpcMessage<RoleServer>>,
    /// Weak, so that the stream ends with the transport.
    told: mpsc::WeakSender<String>,
    flight: Flight,
    closing: CancellationToken,
}

/// The ids of the requests that were handed on and whose answers were not read yet.
#[derive(Clone)]
struct Flight(watch::Sender<HashSet<NumberOrString>>);

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
    fn table(&self) -> MutexGuard<'_, HashMap<String, (PrincipalId, Arc<Inlet>)>> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Opens a session for this principal, until `stop` or until its stream is dropped. `closing` lets its calls end and
    /// takes no new ones.
    ///
    /// # Errors
    /// [`SessionRefused`] when there are too many.
    pub(super) fn open(
        self: &Arc<Self>,
        shared: Arc<Shared>,
        sessions: &Arc<Sessions>,
        principal: &PrincipalId,
        (closing, stop): (CancellationToken, &CancellationToken),
    ) -> Result<Outlet, SessionRefused> {
        let place = sessions.reserve(principal.clone(), Era::UNNAMED)?.kept();
        let end = stop.child_token();
        let (said, incoming) = mpsc::channel(WAITING);
        let (outgoing, frames) = mpsc::channel(WAITING);
        let flight = Flight(watch::channel(HashSet::new()).0);
        let inlet = Inlet {
            inbox: Mutex::default(),
            said,
            told: outgoing.downgrade(),
            flight: flight.clone(),
            closing: closing.clone(),
        };
        let wire = Wire { incoming, outgoing: Some(outgoing), flight, closing, end: end.clone() };
        tokio::spawn(serve(Handler::new(shared, Link::Stream(end.clone())), wire, end.clone()));
        let id = uuid::Uuid::new_v4().simple().to_string();
        self.table().insert(id.clone(), (principal.clone(), Arc::new(inlet)));
        Ok(Outlet { id, frames, streams: Arc::clone(self), _end: end.drop_guard(), _place: place })
    }

    /// The way into the session of that id, when it belongs to this principal.
    pub(super) fn inlet(&self, id: &str, principal: &PrincipalId) -> Option<Arc<Inlet>> {
        let table = self.table();
        table.get(id).filter(|(owner, _)| owner == principal).map(|(_, inlet)| Arc::clone(inlet))
    }
}

impl Outlet {
    /// The next message for the client, on one line; `None` when the session has ended.
    ///
    /// # Cancellation
    /// Safe: no message is lost.
    pub async fn next(&mut self) -> Option<String> {
        self.frames.recv().await
    }
}

impl Drop for Outlet {
    fn drop(&mut self) {
        self.streams.table().remove(&self.id);
    }
}

impl Inlet {
    /// Takes what a POST holds. `parts` are the request's own, with its caller in the extensions.
    pub async fn say(&self, bytes: &Bytes, parts: &Parts) -> Said {
        let heard = self.inbox.lock().unwrap_or_else(PoisonError::into_inner).read(bytes);
        let (mut refused, mut messages) = (heard.refused, heard.messages);
        if messages.is_empty()
            && let Some(nameless) = refused.pop_if(|refused| refused.id.is_none())
        {
            return Said::Refused(nameless);
        }
        if self.closing.is_cancelled() {
            refused.extend(messages.extract_if(.., |message| is_call(message)).filter_map(|call| shutting_down(&call)));
        }
        let Some(told) = self.told.upgrade() else { return Said::Ended };
        let Ok(room) = told.try_reserve_many(refused.len()) else { return Said::Crowded };
        if let Err(said) = self.flight.take_off(&messages) {
            return said;
        }
        for mut message in messages {
            if let ClientJsonRpcMessage::Request(request) = &mut message {
                request.request.extensions_mut().insert(parts.clone());
            }
            if self.said.send(message).await.is_err() {
                return Said::Ended;
            }
        }
        room.zip(refused).for_each(|(room, refused)| room.send(refused.to_json()));
        Said::Taken
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

impl Flight {
    /// Takes account of what is about to be handed on.
    fn take_off(&self, messages: &[RxJsonRpcMessage<RoleServer>]) -> Result<(), Said> {
        let ids = messages.iter().filter_map(|message| match message {
            ClientJsonRpcMessage::Request(request) => Some(&request.id),
            _ => None,
        });
        let mut refused = None;
        self.0.send_if_modified(|flight| {
            if let Some(twice) = ids.clone().find(|id| flight.contains(id)) {
                let text = format!("the id `{twice}` is that of a request that was not answered yet");
                refused = Some(Said::Refused(Refusal::request(text)));
            } else if flight.len() >= IN_FLIGHT {
                refused = Some(Said::Crowded);
            } else {
                flight.extend(ids.clone().cloned());
            }
            refused.is_none()
        });
        refused.map_or(Ok(()), Err)
    }

    fn land(&self, id: &NumberOrString) {
        self.0.send_if_modified(|flight| flight.remove(id));
    }

    /// Waits until everything is answered.
    async fn landed(&self) {
        let mut flight = self.0.subscribe();
        // The sender is our own, so that it can't be gone.
        drop(flight.wait_for(HashSet::is_empty).await);
    }
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
            let answered = match &item {
                TxJsonRpcMessage::<RoleServer>::Response(response) => Some(response.id.clone()),
                TxJsonRpcMessage::<RoleServer>::Error(error) => error.id.clone(),
                _ => None,
            };
            let sent = match serde_json::to_string(&item) {
                _ if Inbox::is_own(&item) => Ok(()),
                Ok(frame) => told(outgoing, frame, &end).await,
                Err(error) => {
                    tracing::error!("A message did not serialise: {error}");
                    Err(Closed)
                }
            };
            if let Some(id) = answered {
                flight.land(&id);
            }
            sent
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        let done = async {
            self.closing.cancelled().await;
            self.flight.landed().await;
        };
        let message = tokio::select! {
            message = self.incoming.recv() => message?,
            () = done => return None,
        };
        if let ClientJsonRpcMessage::Notification(told) = &message
            && let ClientNotification::CancelledNotification(cancelled) = &told.notification
            && let Some(id) = &cancelled.params.request_id
        {
            // A cancelled request gets no answer.
            self.flight.land(id);
        }
        Some(message)
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
