//! The way of a call's events to its client while it runs: in order, at a bounded rate, all of them before the reply.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rmcp::model::{
    ProgressNotification, ProgressNotificationParam, ProgressToken, ServerJsonRpcMessage, ServerNotification,
};
use rmcp::service::{Peer, RequestContext, RoleServer};
use rmcp::transport::streamable_http_server::session::ServerSseMessage;
use tokio::sync::{Notify, mpsc};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::backlog::{Backlog, Next};
use super::call::Route;
use super::era::Era;
use super::{OneAnswer, OwnStream};
use crate::model::{LogLevel, RunEvent};

/// How long a client that asked for progress hears nothing.
const HEARTBEAT: Duration = Duration::from_secs(10);
/// How long a client whose stream was ended early shall wait before it comes back.
const RETRY: Duration = Duration::from_millis(500);

/// Where a call's events go.
pub(super) struct Outlet {
    peer: Peer<RoleServer>,
    own: Option<OwnStream>,
    token: Option<ProgressToken>,
    level: Option<LogLevel>,
    era: Era,
}

impl Outlet {
    pub(super) fn new(route: &Route, context: &RequestContext<RoleServer>) -> Self {
        let parts = context.extensions.get::<http::request::Parts>();
        let silent = parts.is_some_and(|parts| parts.extensions.get::<OneAnswer>().is_some());
        Self {
            peer: context.peer.clone(),
            own: context.extensions.get::<OwnStream>().cloned(),
            token: context.meta.get_progress_token().filter(|_| !silent),
            level: route.level.filter(|_| !silent),
            era: route.era,
        }
    }

    /// Tells the client of events until the call is done, and then of those that it sent before it was. Events are taken
    /// in however slowly the client reads.
    pub(super) async fn forward(
        &self,
        mut events: mpsc::Receiver<RunEvent>,
        done: CancellationToken,
        stop: CancellationToken,
    ) {
        if self.token.is_none() && self.level.is_none() {
            return; // the channel closes: nobody listens
        }
        let (backlog, news) = (Mutex::new(Backlog::new()), Notify::new());
        let take = |event: RunEvent| {
            if self.wants(&event) {
                lock(&backlog).offer(event, Instant::now());
                news.notify_one();
            }
        };
        let take_in = async {
            loop {
                tokio::select! {
                    event = events.recv() => match event {
                        Some(event) => take(event),
                        None => break,
                    },
                    () = done.cancelled() => break,
                }
            }
            // The call's last events were sent before it was done.
            while let Ok(event) = events.try_recv() {
                take(event);
            }
            lock(&backlog).end();
            news.notify_one();
        };
        let tell = async {
            loop {
                let next = lock(&backlog).next(Instant::now());
                match next {
                    Next::Tell(event) => self.deliver(event).await,
                    Next::Wait(None) => tokio::select! {
                        () = news.notified() => {}
                        () = tokio::time::sleep(HEARTBEAT), if self.token.is_some() => lock(&backlog).beat(),
                    },
                    Next::Wait(Some(then)) => tokio::select! {
                        () = news.notified() => {}
                        () = tokio::time::sleep_until(then) => {}
                    },
                    Next::End => return,
                }
            }
        };
        tokio::select! {
            _ = async { tokio::join!(take_in, tell) } => {}
            () = stop.cancelled() => {}
        }
    }

    fn wants(&self, event: &RunEvent) -> bool {
        match event {
            RunEvent::Log { level, .. } => self.level.is_some_and(|least| *level >= least),
            RunEvent::Progress { .. } => self.token.is_some(),
            RunEvent::CloseStream => self.own.is_some(),
        }
    }

    async fn deliver(&self, event: RunEvent) {
        if let (RunEvent::CloseStream, Some(own)) = (&event, &self.own) {
            let _ = own.0.send(ServerSseMessage::retry(RETRY)).await;
            return;
        }
        let Some(notification) = self.notification(event) else { return };
        // A client that is gone, or has left this request's stream, misses its events: the reply decides what becomes of
        // the call. They must not go to the session's other stream, which may be one that nobody reads.
        match &self.own {
            Some(own) => {
                let message = ServerSseMessage::from_message(ServerJsonRpcMessage::notification(notification));
                let _ = own.0.send(message).await;
            }
            None => {
                let _ = self.peer.send_notification(notification).await;
            }
        }
    }

    fn notification(&self, event: RunEvent) -> Option<ServerNotification> {
        match event {
            RunEvent::Log { level, data, logger } => log(level, data, logger),
            RunEvent::Progress { progress, total, message } => {
                let mut params = ProgressNotificationParam::new(self.token.clone()?, progress);
                params.total = total;
                params.message = message.filter(|_| self.era.has_annotations());
                Some(ServerNotification::ProgressNotification(ProgressNotification::new(params)))
            }
            RunEvent::CloseStream => None,
        }
    }
}

fn lock(backlog: &Mutex<Backlog>) -> MutexGuard<'_, Backlog> {
    backlog.lock().unwrap_or_else(PoisonError::into_inner)
}

#[expect(deprecated, reason = "`logging` is deprecated in 2026-07-28 and lives on in every version that we serve")]
fn log(level: LogLevel, data: serde_json::Value, logger: Option<String>) -> Option<ServerNotification> {
    use rmcp::model::{LoggingMessageNotification, LoggingMessageNotificationParam};
    let level = serde_json::to_value(level).and_then(serde_json::from_value).ok()?;
    let mut params = LoggingMessageNotificationParam::new(level, data);
    params.logger = logger;
    Some(ServerNotification::LoggingMessageNotification(LoggingMessageNotification::new(params)))
}
