//! One client on a pipe: the same handler, with one caller for its whole life.

use std::sync::Arc;

use rmcp::service::{RoleServer, ServerInitializeError};
use rmcp::transport::{Transport, TransportAdapterIdentity};
use tokio_util::sync::CancellationToken;

use super::changes::Changes;
use super::handler::{Handler, Link, Shared};
use super::listing::Pages;
use crate::model::Caller;
use crate::tools::Domain;

/// Why a pipe was not served to its end.
#[derive(Debug, thiserror::Error)]
pub enum PipeError {
    /// The client's opening messages made no sense to the protocol layer.
    #[error("the client did not open the connection as MCP asks")]
    Opening(#[source] Box<ServerInitializeError>),
    /// The task that served it broke.
    #[error("the connection's task broke")]
    Task(#[source] tokio::task::JoinError),
}

/// Serves one client until its transport ends. `closing` ends what waits for news; the transport ends the rest.
///
/// # Errors
/// [`PipeError`].
pub async fn serve_pipe<T>(
    domain: Arc<dyn Domain>,
    caller: Caller,
    transport: T,
    closing: CancellationToken,
) -> Result<(), PipeError>
where
    T: Transport<RoleServer> + 'static,
{
    let news = closing.child_token();
    let _ends_with_us = news.clone().drop_guard();
    let changes = Changes::follow(&domain, news);
    let shared = Arc::new(Shared { domain, changes, pages: Pages::default() });
    let handler = Handler::new(shared, Link::Pipe(Arc::new(caller)));
    let served = rmcp::service::serve_server_with_ct::<_, T, _, TransportAdapterIdentity>(
        handler,
        transport,
        CancellationToken::new(),
    );
    match served.await {
        Ok(service) => service.waiting().await.map(drop).map_err(PipeError::Task),
        // Nobody said a word, or said goodbye before hello.
        Err(ServerInitializeError::ConnectionClosed(_) | ServerInitializeError::Cancelled) => Ok(()),
        Err(error) => Err(PipeError::Opening(Box::new(error))),
    }
}
