//! The server that rmcp drives: each method of the protocol, answered from the domain.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

use rmcp::ServerHandler;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CancelTaskParams, CustomRequest, CustomResult, DiscoverResult, ErrorCode,
    ErrorData, GetTaskParams, GetTaskResult, InitializeRequestParams, InitializeResult, ListToolsResult,
    PaginatedRequestParams, ProtocolVersion, ServerCapabilities, SubscriptionFilter, Tool, UpdateTaskParams,
};
use rmcp::service::{NotificationContext, RequestContext, RoleServer, SubscriptionContext};
use tokio_util::sync::CancellationToken;

use super::call::{self, Route};
use super::changes::Changes;
use super::era::Era;
use super::listing::Pages;
use super::{Identity, error, tasks};
use crate::model::{Caller, LogLevel};
use crate::tools::Domain;

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
    /// A stream of the first HTTP transport, with the end of its session; who calls is in each request's extensions.
    Stream(CancellationToken),
}

/// One connection's (session's, request's) server.
#[derive(Clone)]
pub(super) struct Handler {
    shared: Arc<Shared>,
    link: Link,
    level: Arc<AtomicU8>,
    /// How many changes a pipe's client was told of.
    told: Arc<AtomicU64>,
}

impl Handler {
    pub(super) fn new(shared: Arc<Shared>, link: Link) -> Self {
        let told = Arc::new(AtomicU64::new(shared.changes.count()));
        Self { shared, link, level: Arc::new(AtomicU8::new(LogLevel::Info as u8)), told }
    }

    fn caller(&self, context: &RequestContext<RoleServer>) -> Result<Arc<Caller>, ErrorData> {
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
            Link::Session | Link::Pipe(_) | Link::Stream(_) => Some(level_of(self.level.load(Ordering::Relaxed))),
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

#[expect(deprecated, reason = "`logging` is deprecated in 2026-07-28 and lives on in every version that we serve")]
impl ServerHandler for Handler {
    fn get_info(&self) -> InitializeResult {
        let capabilities = ServerCapabilities::builder()
            .enable_logging()
            .enable_tools()
            .enable_tool_list_changed()
            .enable_tasks()
            .build();
        InitializeResult::new(capabilities)
            .with_server_info(super::server_info())
            .with_protocol_version(ProtocolVersion::V_2025_11_25)
            .with_instructions(self.shared.domain.instructions())
    }

    async fn initialize(
        &self,
        request: InitializeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<InitializeResult, ErrorData> {
        context.peer.set_peer_info(request.clone());
        let mut agreed = self.negotiate_initialize(&request)?;
        // No version with a handshake knows extensions.
        agreed.capabilities.extensions = None;
        Ok(agreed)
    }

    async fn discover(&self, _context: RequestContext<RoleServer>) -> Result<DiscoverResult, ErrorData> {
        let versions = self.supported_protocol_versions().into_owned();
        Ok(DiscoverResult::from_server_info(versions, self.get_info()).with_ttl_ms(DISCOVER_TTL_MS))
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
        let era = era_of(&context);
        let route = Route { caller: self.caller(&context)?, era, level: self.level(era, &context) };
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

    fn get_tool(&self, name: &str) -> Option<Tool> {
        CALLED_TOOL.try_with(Clone::clone).ok().flatten().filter(|tool| tool.name == name)
    }

    fn accepted_subscription_filter(&self, _requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        Some(SubscriptionFilter::builder().tools_list_changed().build())
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let wanted = context.accepted().tools_list_changed == Some(true);
        let told = Arc::new(AtomicU64::new(self.shared.changes.count()));
        let mut changes = self.shared.changes.listener(told);
        let tell = async {
            if !wanted {
                return self.shared.changes.closed().await;
            }
            while changes.next().await {
                if context.sink().notify_tool_list_changed().await.is_err() {
                    return;
                }
            }
        };
        tokio::select! {
            () = tell => Ok(()),
            () = context.cancelled() => Ok(()),
        }
    }

    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        let ended = match &self.link {
            Link::Pipe(_) => CancellationToken::new(),
            Link::Stream(ended) => ended.clone(),
            // HTTP sessions hear of changes on their GET stream, which follows them itself.
            Link::Request | Link::Session => return,
        };
        let mut changes = self.shared.changes.listener(Arc::clone(&self.told));
        while ended.run_until_cancelled(changes.next()).await == Some(true) {
            if context.peer.notify_tool_list_changed().await.is_err() {
                return;
            }
        }
    }

    /// A known method whose parameters rmcp could not read arrives here too: that is not an unknown method.
    async fn on_custom_request(
        &self,
        request: CustomRequest,
        _context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        const KNOWN: [&str; 7] = [
            "tools/list",
            "tools/call",
            "logging/setLevel",
            "subscriptions/listen",
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
