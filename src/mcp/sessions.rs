//! Legacy sessions: rmcp's own, bound to a principal, capped, swept when idle, with change news on the GET stream and a
//! request's logs on its own stream.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use futures::{Stream, StreamExt as _};
use rmcp::model::{ClientJsonRpcMessage, GetExtensions as _, ServerJsonRpcMessage};
use rmcp::transport::streamable_http_server::session::local::{LocalSessionManager, LocalSessionManagerError};
use rmcp::transport::streamable_http_server::session::{ServerSseMessage, SessionId, SessionManager};
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::OwnStream;
use super::changes::{Changes, Interest, Subscriptions};
use super::era::Era;
use crate::model::Holder;

/// The most sessions of all principals.
pub(super) const TOTAL: usize = 1_000;
/// The most sessions of one principal.
pub(super) const PER_PRINCIPAL: usize = 100;
/// How long a session without requests and without an open stream lives.
pub(super) const IDLE: Duration = Duration::from_secs(30 * 60);
/// How many of a request's own notifications may wait for a slow reader.
const OWN: usize = 64;

#[derive(Debug)]
struct Entry {
    holder: Holder,
    era: Era,
    used: Instant,
    /// Held once here and once by each open stream.
    streams: Arc<()>,
    /// How many changes its GET streams were told of.
    told: Arc<AtomicU64>,
    /// The resources that it follows.
    uris: Subscriptions,
    /// Cancels, when the session goes, what watches over it.
    gone: Option<DropGuard>,
}

/// What a stream needs of its session.
struct Open {
    stream: Arc<()>,
    era: Era,
    told: Arc<AtomicU64>,
    interest: Interest,
}

/// The sessions of one server.
pub(super) struct Sessions {
    inner: LocalSessionManager,
    table: Mutex<HashMap<SessionId, Entry>>,
    changes: Changes,
}

/// Why no session was opened.
#[derive(Debug, thiserror::Error)]
pub enum SessionRefused {
    /// The server's cap.
    #[error("the server already holds {TOTAL} sessions; end one with DELETE, or go on without a session id")]
    Server,
    /// The principal's cap.
    #[error(
        "this principal already holds {PER_PRINCIPAL} sessions; end one with DELETE, or go on without a session id"
    )]
    Principal,
}

impl Sessions {
    pub(super) fn new(changes: Changes) -> Self {
        let mut inner = LocalSessionManager::default();
        // Idle sessions are swept here: rmcp would also end those whose client only listens.
        inner.session_config.keep_alive = None;
        Self { inner, table: Mutex::default(), changes }
    }

    fn table(&self) -> MutexGuard<'_, HashMap<SessionId, Entry>> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a place for a session that is about to be opened.
    ///
    /// # Errors
    /// Which cap is reached.
    pub(super) fn reserve(self: &Arc<Self>, holder: Holder, era: Era) -> Result<Place, SessionRefused> {
        let mut table = self.table();
        if table.len() >= TOTAL {
            return Err(SessionRefused::Server);
        }
        if table.values().filter(|entry| entry.holder.principal == holder.principal).count() >= PER_PRINCIPAL {
            return Err(SessionRefused::Principal);
        }
        let told = Arc::new(AtomicU64::new(self.changes.count()));
        let entry = Entry {
            holder,
            era,
            used: Instant::now(),
            streams: Arc::new(()),
            told,
            uris: Subscriptions::default(),
            gone: None,
        };
        let id: SessionId = format!("opening/{}", uuid::Uuid::now_v7()).into();
        table.insert(Arc::clone(&id), entry);
        drop(table);
        Ok(Place { sessions: Arc::clone(self), id, _open: None })
    }

    /// Marks the session as used; its era, when it exists and belongs to this holder.
    pub(super) fn touch(&self, id: &str, holder: &Holder) -> Option<Era> {
        let mut table = self.table();
        let entry = table.get_mut(id).filter(|entry| entry.holder == *holder)?;
        entry.used = Instant::now();
        Some(entry.era)
    }

    /// Cancelled when this session goes; `None` when it is gone.
    pub(super) fn watch_over(&self, id: &str) -> Option<CancellationToken> {
        let gone = CancellationToken::new();
        self.table().get_mut(id)?.gone = Some(gone.clone().drop_guard());
        Some(gone)
    }

    /// Ends the sessions that nobody used for this long.
    pub(super) async fn sweep(&self, idle: Duration) {
        let idle: Vec<SessionId> = {
            let table = self.table();
            let old = |entry: &Entry| entry.used.elapsed() >= idle && Arc::strong_count(&entry.streams) == 1;
            table.iter().filter(|(_, entry)| old(entry)).map(|(id, _)| Arc::clone(id)).collect()
        };
        for id in idle {
            if let Err(error) = self.close_session(&id).await {
                tracing::debug!("an idle session was already gone: {error}");
            }
        }
    }

    fn open(&self, id: &SessionId) -> Option<Open> {
        let table = self.table();
        table.get(id).map(|entry| Open {
            stream: Arc::clone(&entry.streams),
            era: entry.era,
            told: Arc::clone(&entry.told),
            interest: Interest::everything(entry.holder.principal.clone(), entry.uris.clone()),
        })
    }

    /// News of change for one GET stream, until it closes or the server shuts down.
    fn news(&self, told: Arc<AtomicU64>, interest: Interest) -> mpsc::Receiver<ServerSseMessage> {
        let (sender, receiver) = mpsc::channel(1);
        let mut changes = self.changes.listener(told, interest);
        tokio::spawn(async move {
            loop {
                let news = tokio::select! {
                    news = changes.next() => news,
                    () = sender.closed() => None,
                };
                let Some(news) = news else { return };
                for news in news {
                    let message = ServerJsonRpcMessage::notification(news.into_notification());
                    if sender.send(ServerSseMessage::from_message(message)).await.is_err() {
                        return;
                    }
                }
            }
        });
        receiver
    }

    /// The news for a stream of this session; none for one that ended meanwhile.
    fn news_of(&self, open: Option<Open>) -> (mpsc::Receiver<ServerSseMessage>, Option<Arc<()>>) {
        match open {
            Some(open) => (self.news(open.told, open.interest), Some(open.stream)),
            None => (mpsc::channel(1).1, None),
        }
    }
}

/// A place in the table, held while a session is being opened; given back unless the session comes to be.
pub(super) struct Place {
    sessions: Arc<Sessions>,
    id: SessionId,
    _open: Option<Arc<()>>,
}

impl Place {
    /// The place of a session that lives as long as the place: it is never idle.
    pub(super) fn kept(mut self) -> Self {
        self._open = self.sessions.open(&self.id).map(|open| open.stream);
        self
    }

    /// The session was opened: it has an id.
    pub(super) fn bind(self, id: &str) {
        let mut table = self.sessions.table();
        if let Some(entry) = table.remove(&self.id) {
            table.insert(id.into(), entry);
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.sessions.table().remove(&self.id);
    }
}

impl SessionManager for Sessions {
    type Error = LocalSessionManagerError;
    type Transport = <LocalSessionManager as SessionManager>::Transport;

    async fn create_session(&self) -> Result<(SessionId, Self::Transport), Self::Error> {
        self.inner.create_session().await
    }

    async fn initialize_session(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<ServerJsonRpcMessage, Self::Error> {
        self.inner.initialize_session(id, message).await
    }

    async fn has_session(&self, id: &SessionId) -> Result<bool, Self::Error> {
        self.inner.has_session(id).await
    }

    async fn close_session(&self, id: &SessionId) -> Result<(), Self::Error> {
        self.table().remove(id);
        self.inner.close_session(id).await
    }

    async fn create_stream(
        &self,
        id: &SessionId,
        mut message: ClientJsonRpcMessage,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Self::Error> {
        let (sender, own) = mpsc::channel(OWN);
        let open = self.open(id);
        if let ClientJsonRpcMessage::Request(request) = &mut message {
            let extensions = request.request.extensions_mut();
            extensions.insert(OwnStream(sender));
            if let Some(open) = &open {
                extensions.insert(open.interest.uris.clone());
            }
        }
        let keep_priming = open.as_ref().is_some_and(|open| open.era.has_priming_events());
        let main = self.inner.create_stream(id, message).await?;
        Ok(Merged {
            main: Box::pin(main),
            own,
            held: None,
            keep_priming,
            ended: false,
            _open: open.map(|open| open.stream),
        })
    }

    async fn accept_message(&self, id: &SessionId, message: ClientJsonRpcMessage) -> Result<(), Self::Error> {
        self.inner.accept_message(id, message).await
    }

    async fn create_standalone_stream(
        &self,
        id: &SessionId,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Self::Error> {
        let main = self.inner.create_standalone_stream(id).await?;
        let (own, open) = self.news_of(self.open(id));
        let changes = self.changes.clone();
        let merged = Merged { main: Box::pin(main), own, held: None, keep_priming: true, ended: false, _open: open };
        Ok(merged.take_until(async move { changes.closed().await }))
    }

    async fn resume(
        &self,
        id: &SessionId,
        last_event_id: String,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Self::Error> {
        // An id without a request's number is one of the standalone stream, which must go on telling of changes.
        let standalone = !last_event_id.contains('/');
        let main = self.inner.resume(id, last_event_id).await?;
        let open = self.open(id);
        let (own, open) = if standalone { self.news_of(open) } else { (mpsc::channel(1).1, open.map(|it| it.stream)) };
        let changes = self.changes.clone();
        let merged = Merged { main: Box::pin(main), own, held: None, keep_priming: true, ended: false, _open: open };
        Ok(merged
            .take_until(async move { if standalone { changes.closed().await } else { std::future::pending().await } }))
    }
}

/// rmcp's stream and one of ours: what was sent on ours before something was sent on rmcp's comes before it.
struct Merged<S> {
    main: Pin<Box<S>>,
    own: mpsc::Receiver<ServerSseMessage>,
    held: Option<ServerSseMessage>,
    keep_priming: bool,
    ended: bool,
    _open: Option<Arc<()>>,
}

impl<S: Stream<Item = ServerSseMessage>> Stream for Merged<S> {
    type Item = ServerSseMessage;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        loop {
            if self.ended {
                return Poll::Ready(None);
            }
            if let Poll::Ready(Some(message)) = self.own.poll_recv(context) {
                // Without a message it is the script's wish that the stream ends; the client comes back for the rest.
                self.ended = message.message.is_none();
                return Poll::Ready(Some(message));
            }
            if self.held.is_some() {
                return Poll::Ready(self.held.take());
            }
            match std::task::ready!(self.main.as_mut().poll_next(context)) {
                Some(message) if message.message.is_none() && !self.keep_priming => {}
                Some(message) => self.held = Some(message),
                None => return Poll::Ready(None),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio_util::sync::CancellationToken;

    use super::*;
    use crate::model::PrincipalId;

    fn sessions() -> Arc<Sessions> {
        Arc::new(Sessions::new(Changes::none(CancellationToken::new())))
    }

    fn who(name: &str) -> Holder {
        Holder { principal: PrincipalId(name.to_owned()), toolset: None }
    }

    #[tokio::test]
    async fn an_idle_session_is_swept_and_one_with_an_open_stream_is_not() {
        let sessions = sessions();
        for id in ["idle", "listening"] {
            sessions.reserve(who("anna"), Era::V2025_11_25).unwrap().bind(id);
        }
        let stream = sessions.open(&"listening".into());
        sessions.sweep(IDLE).await;
        assert!(sessions.touch("idle", &who("anna")).is_some());
        sessions.sweep(Duration::ZERO).await;
        assert!(sessions.touch("idle", &who("anna")).is_none());
        assert!(sessions.touch("listening", &who("anna")).is_some());
        drop(stream);
        sessions.sweep(Duration::ZERO).await;
        assert!(sessions.touch("listening", &who("anna")).is_none());
    }

    #[tokio::test]
    async fn places_are_counted_from_the_first_moment_and_given_back() {
        let sessions = sessions();
        let mut held = Vec::new();
        for number in 0..TOTAL {
            held.push(sessions.reserve(who(&(number / PER_PRINCIPAL).to_string()), Era::V2025_11_25).unwrap());
        }
        assert!(matches!(sessions.reserve(who("new"), Era::V2025_11_25), Err(SessionRefused::Server)));
        held.pop();
        assert!(matches!(sessions.reserve(who("0"), Era::V2025_11_25), Err(SessionRefused::Principal)));
        assert!(sessions.reserve(who("new"), Era::V2025_11_25).is_ok());
    }
}
