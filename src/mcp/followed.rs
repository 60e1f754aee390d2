//! Subscriptions that follow tasks, too: the `taskIds` that the extension `io.modelcontextprotocol/tasks` adds to the filter
//! of `subscriptions/listen`. rmcp's filter has no room for them, so such a subscription is acknowledged and fed here.

use futures::StreamExt as _;
use futures::stream::FuturesUnordered;
use rmcp::model::{
    ClientCapabilities, CustomNotification, CustomRequest, CustomResult, ErrorData, GetMeta as _, ServerNotification,
    SubscriptionFilter, SubscriptionsListenRequestMethod, SubscriptionsListenResult, TaskStatusNotification,
    TaskStatusNotificationParams,
};
use rmcp::service::{RequestContext, RoleServer};
use serde_json::{Value, json};

use super::handler::{Handler, era_of};
use super::{error, news, tasks};
use crate::model::Caller;
use crate::tools::{CallError, TaskState, TaskView};

/// The most tasks that one subscription follows.
const TASKS: usize = 100;

/// What a subscription asks for.
struct Asked {
    /// Of the protocol itself.
    filter: SubscriptionFilter,
    tasks: Vec<String>,
}

impl Handler {
    /// Serves `subscriptions/listen` with a filter that names tasks, until it is cancelled or the server shuts down.
    ///
    /// # Errors
    /// Where its version has no subscriptions, its client has not declared the extension, or the filter is malformed.
    pub(super) async fn listen_to_tasks(
        &self,
        request: &CustomRequest,
        context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        if !era_of(&context).is_modern() {
            return Err(ErrorData::method_not_found::<SubscriptionsListenRequestMethod>());
        }
        if !context.client_capabilities().is_some_and(|capabilities| capabilities.supports_tasks()) {
            let needed = ClientCapabilities::builder().enable_tasks().build();
            return Err(ErrorData::missing_required_client_capability(needed));
        }
        let asked = asked(request)?;
        let accepted = asked.filter.intersection(&news::accepted(&asked.filter));
        let caller = self.caller(&context)?;
        let known = self.known(&caller, asked.tasks).await?;
        acknowledge(&accepted, &known, &context).await?;
        let mut changes = self.changes_for(&accepted, &context)?;
        let bring_lists = async {
            while let Some(news) = changes.next().await {
                for news in news {
                    if send(news.into_notification(), &context).await.is_err() {
                        return;
                    }
                }
            }
        };
        let follow = known.into_iter().map(|view| self.follow_task(&caller, view, &context));
        let bring_tasks = follow.collect::<FuturesUnordered<_>>().collect::<()>();
        tokio::select! {
            // This lasts until the shutdown, also where no list is asked for and all tasks have ended.
            () = bring_lists => {}
            () = async { bring_tasks.await; std::future::pending().await } => {}
            () = context.ct.cancelled() => {}
        }
        let mut result = SubscriptionsListenResult::complete(context.id.clone());
        result.meta.set_server_info(super::server_info());
        let result =
            serde_json::to_value(result).map_err(|error| ErrorData::internal_error(error.to_string(), None))?;
        Ok(CustomResult::new(result))
    }

    /// Those of these tasks that are the caller's, as they are now.
    async fn known(&self, caller: &Caller, ids: Vec<String>) -> Result<Vec<TaskView>, ErrorData> {
        let mut known: Vec<TaskView> = Vec::new();
        for id in ids {
            match self.domain().task(caller, &id).await {
                Ok(view) if known.iter().all(|other| other.run != view.run) => known.push(view),
                Ok(_) | Err(CallError::InvalidParams(_)) => {}
                Err(failed) => return Err(error::from_call(failed)),
            }
            if known.len() == TASKS {
                break;
            }
        }
        Ok(known)
    }

    /// Tells of a task now, so that nothing falls between its creation and the subscription, and whenever it changes,
    /// until it has ended.
    async fn follow_task(&self, caller: &Caller, mut view: TaskView, context: &RequestContext<RoleServer>) {
        loop {
            let ended = !matches!(view.state, TaskState::Working | TaskState::InputRequired(_));
            let Ok(task) = tasks::get(view.clone()) else { return };
            let told = TaskStatusNotification::new(TaskStatusNotificationParams::new(task.task));
            let told = ServerNotification::TaskStatusNotification(told);
            if send(told, context).await.is_err() || ended {
                return;
            }
            match self.domain().task_changed(caller, &view).await {
                Ok(changed) => view = changed,
                // It is not kept any more.
                Err(_) => return,
            }
        }
    }
}

/// The filter as the client wrote it: [`super::peek`] has put it into an array.
fn asked(request: &CustomRequest) -> Result<Asked, ErrorData> {
    let malformed = |error: String| ErrorData::invalid_params(format!("bad `params.notifications`: {error}"), None);
    let filter = request.params.as_ref().and_then(|params| params.pointer("/notifications/0")).cloned();
    let filter = filter.ok_or_else(|| malformed("it is missing".to_owned()))?;
    let tasks = filter.get("taskIds").cloned().unwrap_or_else(|| json!([]));
    Ok(Asked {
        tasks: serde_json::from_value(tasks).map_err(|error| malformed(error.to_string()))?,
        filter: serde_json::from_value(filter).map_err(|error| malformed(error.to_string()))?,
    })
}

/// Says what of the filter is honoured.
async fn acknowledge(
    accepted: &SubscriptionFilter,
    known: &[TaskView],
    context: &RequestContext<RoleServer>,
) -> Result<(), ErrorData> {
    let internal = |error: String| ErrorData::internal_error(format!("the subscription can't begin: {error}"), None);
    let mut filter = serde_json::to_value(accepted).map_err(|error| internal(error.to_string()))?;
    if let Value::Object(filter) = &mut filter {
        filter.insert("taskIds".to_owned(), known.iter().map(|view| view.run.to_string()).collect());
    }
    let params = json!({"notifications": filter});
    let notification = CustomNotification::new("notifications/subscriptions/acknowledged", Some(params));
    let sent = send(ServerNotification::CustomNotification(notification), context).await;
    sent.map_err(|error| internal(error.to_string()))
}

/// Sends it on this subscription's stream.
async fn send(
    mut notification: ServerNotification,
    context: &RequestContext<RoleServer>,
) -> Result<(), rmcp::ServiceError> {
    notification.get_meta_mut().set_subscription_id(context.id.clone());
    context.peer.send_notification(notification).await
}
