//! The server that rmcp drives: each method of the protocol, answered from the domain.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

use rmcp::ServerHandler;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CancelTaskParams, CompleteRequestParams, CompleteResult, CustomRequest,
    CustomResult, DiscoverResult, ErrorCode, ErrorData, GetPromptRequestParams, GetPromptResponse,
    GetSkillRequestParams, GetSkillResult, GetTaskParams, GetTaskResult, InitializeRequestParams, InitializeResult,
    ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult, ListSkillsResult, ListToolsResult,
    PaginatedRequestParams, ProtocolVersion, ReadResourceDirectoryRequestParams, ReadResourceRequestParams,
    ReadResourceResponse, ServerCapabilities, SubscribeRequestParams, SubscriptionFilter, Tool,
    UnsubscribeRequestParams, UpdateTaskParams,
};
use rmcp::service::{NotificationContext, RequestContext, RoleServer, SubscriptionContext};
use tokio_util::sync::CancellationToken;

use super::call::{self, Route};
use super::changes::{Changes, Subscriptions};
use super::era::Era;
use super::listing::Pages;
use super::peek::LISTEN;
use super::{Identity, error, news, tasks};
use crate::model::{Caller, LogLevel, PrincipalId};
use crate::tools::{ContentList, Domain};

/// How long a client may hold on to the answer of `server/discover`.
const DISCOVER_TTL_MS: u64 = 60_000;

tokio::task_local! {
    /// The tool that the request in hand calls, for the check of its `Mcp-Param-*` headers: rmcp asks for it without
    /// saying who calls.
    pub(super) static CALLED_TOOL: Option<Tool>;
}

/// What all handlers share.
pub(super) struct Shared {
    pub(super) domain: Arc<dyn Domain>,
    pub(super) changes: Changes,
    pub(super) pages: Pages,
}

/// How a handler's client is connected.
#[derive(Clone)]
pub(super) enum Link {
    /// One HTTP request; who calls is in its extensions.
    Request,
    /// A legacy HTTP session; who calls is in each request's extensions.
    Session,
    /// A pipe, with one caller for its whole life.
    Pipe(Arc<Caller>),
    /// A stream of the first HTTP transport: whose it is, and the end of its session. Who calls is in each request's
    /// extensions.
    Stream(PrincipalId, CancellationToken),
}

/// One connection's (session's, request's) server.
#[derive(Clone)]
pub(super) struct Handler {
    pub(super) shared: Arc<Shared>,
    pub(super) link: Link,
    level: Arc<AtomicU8>,
    /// How many changes a pipe's client was told of.
    pub(super) told: Arc<AtomicU64>,
    /// The resources that a pipe's client follows.
    pub(super) uris: Subscriptions,
}

impl Handler {
    pub(super) fn new(shared: Arc<Shared>, link: Link) -> Self {
        let told = Arc::new(AtomicU64::new(shared.changes.count()));
        Self {
            shared,
            link,
            level: Arc::new(AtomicU8::new(LogLevel::Info as u8)),
            told,
            uris: Subscriptions::default(),
        }
    }

    /// The product.
    pub(super) fn domain(&self) -> &Arc<dyn Domain> {
        &self.shared.domain
    }

    /// What this request's caller sees of the saved content.
    pub(super) async fn contents(&self, context: &RequestContext<RoleServer>) -> Result<Arc<ContentList>, ErrorData> {
        self.shared.domain.contents(&*self.caller(context)?).await.map_err(error::from_call)
    }

    /// What this request's caller is told of the server.
    async fn instructions(&self, context: &RequestContext<RoleServer>) -> Result<String, ErrorData> {
        self.shared.domain.instructions(&*self.caller(context)?).await.map_err(error::from_call)
    }

    /// Who calls, in which version, and what logs they want.
    pub(super) fn route(&self, context: &RequestContext<RoleServer>) -> Result<Route, ErrorData> {
        let era = era_of(context);
        Ok(Route { caller: self.caller(context)?, era, level: self.level(era, context) })
    }

    pub(super) fn caller(&self, context: &RequestContext<RoleServer>) -> Result<Arc<Caller>, ErrorData> {
        if let Link::Pipe(caller) = &self.link {
            return Ok(Arc::clone(caller));
        }
        let identity = context.extensions.get::<http::request::Parts>().and_then(|p| p.extensions.get::<Identity>());
        identity
            .map(|identity| Arc::clone(&identity.0))
            .ok_or_else(|| ErrorData::internal_error("the request came without an identity", None))
    }

    /// The least severe log message that this request's client wants, if any.
    fn level(&self, era: Era, context: &RequestContext<RoleServer>) -> Option<LogLevel> {
        if era.is_modern() {
            let wanted = context.meta.log_level()?;
            return serde_json::to_value(wanted).and_then(serde_json::from_value).ok();
        }
        match self.link {
            Link::Request => None,
            Link::Session | Link::Pipe(_) | Link::Stream(..) => Some(level_of(self.level.load(Ordering::Relaxed))),
        }
    }
}

const LEVELS: [LogLevel; 8] = [
    LogLevel::Debug,
    LogLevel::Info,
    LogLevel::Notice,
    LogLevel::Warning,
    LogLevel::Error,
    LogLevel::Critical,
    LogLevel::Alert,
    LogLevel::Emergency,
];

fn level_of(number: u8) -> LogLevel {
    LEVELS.get(usize::from(number)).copied().unwrap_or(LogLevel::Info)
}

/// The version that this request speaks.
pub(super) fn era_of(context: &RequestContext<RoleServer>) -> Era {
    context.protocol_version().and_then(|version| Era::parse(version.as_str())).unwrap_or(Era::UNNAMED)
}

#[expect(deprecated, reason = "logging and resources/subscribe are deprecated in 2026-07-28 and live on before it")]
impl ServerHandler for Handler {
    fn get_info(&self) -> InitializeResult {
        let mut capabilities = ServerCapabilities::builder()
            .enable_logging()
            .enable_completions()
            .enable_prompts()
            .enable_prompts_list_changed()
            .enable_resources()
            .enable_resources_list_changed()
            .enable_resources_subscribe()
            .enable_tools()
            .enable_tool_list_changed()
            .enable_tasks()
            .build();
        capabilities.extensions.get_or_insert_default().extend(super::skills::extension());
        InitializeResult::new(capabilities)
            .with_server_info(super::server_info())
            .with_protocol_version(ProtocolVersion::V_2025_11_25)
    }

    async fn initialize(
        &self,
        request: InitializeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<InitializeResult, ErrorData> {
        context.peer.set_peer_info(request.clone());
        let mut agreed = self.negotiate_initialize(&request)?;
        agreed.instructions = Some(self.instructions(&context).await?);
        // The tasks of the extension are those of 2026-07-28.
        if let Some(extensions) = &mut agreed.capabilities.extensions {
            extensions.remove(rmcp::model::TASKS_EXTENSION_ID);
        }
        Ok(agreed)
    }

    async fn discover(&self, context: RequestContext<RoleServer>) -> Result<DiscoverResult, ErrorData> {
        let versions = self.supported_protocol_versions().into_owned();
        let info = self.get_info().with_instructions(self.instructions(&context).await?);
        Ok(DiscoverResult::from_server_info(versions, info).with_ttl_ms(DISCOVER_TTL_MS))
    }

    async fn set_level(
        &self,
        request: rmcp::model::SetLevelRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        if era_of(&context).is_modern() {
            return Err(ErrorData::method_not_found::<rmcp::model::SetLevelRequestMethod>());
        }
        let level: LogLevel = serde_json::to_value(request.level)
            .and_then(serde_json::from_value)
            .map_err(|error| ErrorData::invalid_params(format!("bad level: {error}"), None))?;
        self.level.store(level as u8, Ordering::Relaxed);
        Ok(())
    }

    async fn list_tools(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let caller = self.caller(&context)?;
        let list = self.shared.domain.list(&caller).await.map_err(error::from_call)?;
        let cursor = request.and_then(|request| request.cursor);
        let page = self.shared.pages.page(&list, era_of(&context), cursor.as_deref()).await;
        page.map_err(|error| ErrorData::invalid_params(error.to_string(), None))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let route = self.route(&context)?;
        call::call(&self.shared.domain, route, request, context).await
    }

    async fn get_task(
        &self,
        request: GetTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetTaskResult, ErrorData> {
        let caller = self.caller(&context)?;
        let view = self.shared.domain.task(&caller, &request.task_id).await.map_err(error::from_call)?;
        tasks::get(view)
    }

    async fn update_task(
        &self,
        request: UpdateTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let caller = self.caller(&context)?;
        let answers = request.input_responses.into_iter().collect();
        let answered = self.shared.domain.answer_task(&caller, &request.task_id, answers).await;
        answered.map_err(error::from_call)
    }

    async fn cancel_task(
        &self,
        request: CancelTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let caller = self.caller(&context)?;
        self.shared.domain.cancel_task(&caller, &request.task_id).await.map_err(error::from_call)
    }

    async fn list_resources(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        self.resources(request, &context).await
    }

    async fn list_resource_templates(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        self.templates(request, &context).await
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        self.read(request, context).await
    }

    async fn list_prompts(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        self.prompts(request, &context).await
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        self.prompt(request, context).await
    }

    async fn complete(
        &self,
        request: CompleteRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        self.suggestions(request, context).await
    }

    async fn list_skills(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListSkillsResult, ErrorData> {
        self.skills(request, &context).await
    }

    async fn get_skill(
        &self,
        request: GetSkillRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetSkillResult, ErrorData> {
        self.skill(&request.uri, &context).await
    }

    async fn read_resource_directory(
        &self,
        request: ReadResourceDirectoryRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        self.directory(request, &context).await
    }

    async fn subscribe(
        &self,
        request: SubscribeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let added = self.subscriptions(&context)?.add(request.uri);
        added.map_err(|error| ErrorData::invalid_params(error.to_string(), None))
    }

    async fn unsubscribe(
        &self,
        request: UnsubscribeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.subscriptions(&context)?.remove(&request.uri);
        Ok(())
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        CALLED_TOOL.try_with(Clone::clone).ok().flatten().filter(|tool| tool.name == name)
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        Some(news::accepted(requested))
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        self.follow(context).await
    }

    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        self.bring_news(&context.peer).await;
    }

    /// A known method whose parameters rmcp could not read arrives here too: that is not an unknown method.
    async fn on_custom_request(
        &self,
        request: CustomRequest,
        context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        if request.method == LISTEN && request.params.as_ref().is_some_and(|params| params["notifications"].is_array())
        {
            return self.listen_to_tasks(&request, context).await;
        }
        const KNOWN: [&str; 18] = [
            "tools/list",
            "tools/call",
            "resources/list",
            "resources/templates/list",
            "resources/read",
            "resources/subscribe",
            "resources/unsubscribe",
            "resources/directory/read",
            "prompts/list",
            "prompts/get",
            "completion/complete",
            "skills/list",
            "skills/get",
            "logging/setLevel",
            LISTEN,
            "tasks/get",
            "tasks/update",
            "tasks/cancel",
        ];
        if KNOWN.contains(&&*request.method) {
            let text = format!("the parameters of `{}` do not have the shape that its schema asks for", request.method);
            return Err(ErrorData::invalid_params(text, None));
        }
        Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, format!("Method not found: `{}`", request.method), None))
    }
}
