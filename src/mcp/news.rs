//! The news that one connection is brought: on subscriptions of 2026-07-28, on pipes, and on streams of the first HTTP
//! transport. (Sessions hear them on their GET streams.)

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use rmcp::model::{ErrorData, SubscriptionFilter};
use rmcp::service::{Peer, RequestContext, RoleServer, SubscriptionContext};
use tokio_util::sync::CancellationToken;

use super::changes::{Interest, Listener, Subscriptions, URIS};
use super::handler::{Handler, Link};
use crate::tools::Subject;

/// What of a subscription is honoured.
pub(super) fn accepted(requested: &SubscriptionFilter) -> SubscriptionFilter {
    let lists = SubscriptionFilter::builder().tools_list_changed().prompts_list_changed().resources_list_changed();
    let uris = requested.resource_subscriptions.iter().flatten().take(URIS);
    lists.resource_subscriptions(uris.cloned()).build()
}

impl Handler {
    /// The changes that a subscription with this filter hears of.
    pub(super) fn changes_for(
        &self,
        accepted: &SubscriptionFilter,
        context: &RequestContext<RoleServer>,
    ) -> Result<Listener, ErrorData> {
        let lists = [
            (Subject::Tools, accepted.tools_list_changed),
            (Subject::Prompts, accepted.prompts_list_changed),
            (Subject::Resources, accepted.resources_list_changed),
        ];
        let interest = Interest {
            principal: self.caller(context)?.principal.clone(),
            lists: lists.into_iter().filter(|(_, wanted)| *wanted == Some(true)).map(|(list, _)| list).collect(),
            uris: Subscriptions::of(accepted.resource_subscriptions.iter().flatten().cloned()),
        };
        let told = Arc::new(AtomicU64::new(self.shared.changes.count()));
        Ok(self.shared.changes.listener(told, interest))
    }

    /// Brings a subscription its news until it is cancelled or the server shuts down.
    pub(super) async fn follow(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let mut changes = self.changes_for(context.accepted(), context.request_context())?;
        let tell = async {
            while let Some(news) = changes.next().await {
                for news in news {
                    if context.sink().send(news.into_notification()).await.is_err() {
                        return;
                    }
                }
            }
        };
        tokio::select! {
            () = tell => Ok(()),
            () = context.cancelled() => Ok(()),
        }
    }

    /// Brings a connection that is one stream its news, until it ends.
    pub(super) async fn bring_news(&self, peer: &Peer<RoleServer>) {
        let (principal, ended) = match &self.link {
            Link::Pipe(caller) => (caller.principal.clone(), CancellationToken::new()),
            Link::Stream(principal, ended) => (principal.clone(), ended.clone()),
            // HTTP sessions hear of changes on their GET stream, which follows them itself.
            Link::Request | Link::Session => return,
        };
        let interest = Interest::everything(principal, self.uris.clone());
        let mut changes = self.shared.changes.listener(Arc::clone(&self.told), interest);
        while let Some(Some(news)) = ended.run_until_cancelled(changes.next()).await {
            for news in news {
                if peer.send_notification(news.into_notification()).await.is_err() {
                    return;
                }
            }
        }
    }

    /// The resources that this connection follows.
    pub(super) fn subscriptions(&self, context: &RequestContext<RoleServer>) -> Result<Subscriptions, ErrorData> {
        match self.link {
            Link::Pipe(_) | Link::Stream(..) => Ok(self.uris.clone()),
            Link::Session | Link::Request => context.extensions.get::<Subscriptions>().cloned().ok_or_else(|| {
                let text = "a subscription needs a session, whose GET stream brings the news: begin with `initialize`";
                ErrorData::invalid_request(text, None)
            }),
        }
    }
}
