//! `tools/call`: from the request to the domain, its events to the client while it runs, its reply in the words of the
//! caller's era.

use std::sync::Arc;
use std::time::Duration;

use rmcp::model::{CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ErrorData, Role};
use rmcp::service::{Peer, RequestContext, RoleServer};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::era::Era;
use super::outlet::Outlet;
use super::{RawArguments, ask, error};
use crate::model::{Audience, Block, CallReply, Caller, ClientFacts, Content, Json, LogLevel, RunEvent};
use crate::tools::{Answer, CallError, CallRequest, Domain, Resume, Step};

/// How many events may wait for a client that reads slowly.
const EVENTS: usize = 256;

/// How long a cancelled call may take to end before it is dropped.
const CANCEL_GRACE: Duration = Duration::from_secs(5);

/// Where `_meta` holds the key that makes a repeated call the same call; the header `Idempotency-Key` stands for it.
const IDEMPOTENCY_KEY: &str = "omniforge/idempotency-key";

/// Who calls, in which version, and what logs they want.
pub(super) struct Route {
    pub(super) caller: Arc<Caller>,
    pub(super) era: Era,
    pub(super) level: Option<LogLevel>,
}

/// Calls a tool.
///
/// # Errors
/// The protocol error of the caller's era.
///
/// # Cancellation
/// The request's token cancels the run; the domain then has five seconds to end it in good order.
pub(super) async fn call(
    domain: &Arc<dyn Domain>,
    route: Route,
    params: CallToolRequestParams,
    context: RequestContext<RoleServer>,
) -> Result<CallToolResponse, ErrorData> {
    let request = request(&route, params, &context)?;
    let answer = attend(&route, &context, |resume, events, stop| {
        let mut request = request.clone();
        request.resume = resume.unwrap_or(request.resume);
        async {
            Ok(match domain.call(&route.caller, request, events, stop).await? {
                Answer::Asking(asking) => Step::Asking(asking),
                other => Step::Done(other),
            })
        }
    });
    match answer.await {
        Ok(Step::Asking(asking) | Step::Done(Answer::Asking(asking))) => {
            ask::input_required(asking).map(CallToolResponse::InputRequired)
        }
        Ok(Step::Done(Answer::Reply(reply))) => Ok(CallToolResponse::Complete(result(reply, route.era))),
        Ok(Step::Done(Answer::Handle(handle))) if has_tasks(route.era, &context) => Ok(ask::task(&handle)),
        Ok(Step::Done(Answer::Handle(handle))) => Ok(CallToolResponse::Complete(result(handle.reply, route.era))),
        // The code is 2026-07-28's: in older versions it is for the tool to say.
        Err(CallError::MissingCapability { text, .. }) if !route.era.is_modern() => {
            Ok(CallToolResponse::Complete(result(CallReply::error(text), route.era)))
        }
        Err(error) => Err(error::from_call(error)),
    }
}

/// Works for a request whose run may send events and ask its client: events go to the client while the work goes on;
/// what is asked is put to a client that waits with its request open, and handed to any other.
///
/// `start` begins the work, or goes on with it when there are answers.
///
/// # Cancellation
/// The request's token cancels the run; the work then has five seconds to end in good order.
pub(super) async fn attend<T, E, Work>(
    route: &Route,
    context: &RequestContext<RoleServer>,
    start: impl Fn(Option<Resume>, mpsc::Sender<RunEvent>, CancellationToken) -> Work,
) -> Result<Step<T>, E>
where
    E: From<CallError>,
    Work: Future<Output = Result<Step<T>, E>>,
{
    let (sender, receiver) = mpsc::channel(EVENTS);
    let stop = context.ct.clone();
    let outlet = Outlet::new(route, context);
    let done = CancellationToken::new();
    let work = async {
        let step = converse(route, &context.peer, &stop, |resume| start(resume, sender.clone(), stop.clone())).await;
        done.cancel();
        step
    };
    let both = async { tokio::join!(work, outlet.forward(receiver, done.clone(), stop.clone())).0 };
    let overdue = async {
        stop.cancelled().await;
        tokio::time::sleep(CANCEL_GRACE).await;
    };
    tokio::select! {
        step = both => step,
        () = overdue => Err(CallError::Cancelled.into()),
    }
}

/// Goes on until there is an answer, or something to ask of a client that comes back with its own.
async fn converse<T, E, Work>(
    route: &Route,
    peer: &Peer<RoleServer>,
    stop: &CancellationToken,
    start: impl Fn(Option<Resume>) -> Work,
) -> Result<Step<T>, E>
where
    Work: Future<Output = Result<Step<T>, E>>,
{
    let mut resume = None;
    loop {
        let asking = match start(resume).await? {
            Step::Asking(asking) if !route.era.is_modern() => asking,
            other => return Ok(other),
        };
        let state = Some(asking.state.clone());
        resume = Some(tokio::select! {
            resume = ask::put(peer, asking) => resume,
            // Comes back once more, so that the run is stopped.
            () = stop.cancelled() => Resume { state, ..Resume::default() },
        });
    }
}

/// Whether the request's client takes tasks.
fn has_tasks(era: Era, context: &RequestContext<RoleServer>) -> bool {
    era.is_modern() && context.client_capabilities().is_some_and(|capabilities| capabilities.supports_tasks())
}

fn request(
    route: &Route,
    params: CallToolRequestParams,
    context: &RequestContext<RoleServer>,
) -> Result<CallRequest, ErrorData> {
    let parts = context.extensions.get::<http::request::Parts>();
    let raw = context.extensions.get::<RawArguments>().or_else(|| parts.and_then(|p| p.extensions.get()));
    let arguments = match (raw, params.arguments) {
        (Some(raw), _) => Some(raw.0.clone()),
        (None, None) => None,
        (None, Some(object)) => {
            Some(Json::of(&object).map_err(|error| ErrorData::internal_error(error.to_string(), None))?)
        }
    };
    let mut meta = context.meta.0.0.clone();
    let key = parts.and_then(|parts| parts.headers.get("idempotency-key")).and_then(|key| key.to_str().ok());
    if let Some(key) = key {
        meta.entry(IDEMPOTENCY_KEY).or_insert_with(|| key.into());
    }
    Ok(CallRequest {
        name: params.name.into_owned(),
        arguments,
        request_id: context.id.to_string(),
        meta,
        client: client(route.era, context),
        door: "mcp",
        resume: Resume {
            state: params.request_state,
            answers: params.input_responses.unwrap_or_default().into_iter().collect(),
            ..Resume::default()
        },
    })
}

/// What the client says of itself; without a handshake or `_meta`, its `User-Agent`.
pub(super) fn client(era: Era, context: &RequestContext<RoleServer>) -> ClientFacts {
    let parts = context.extensions.get::<http::request::Parts>();
    let in_session = parts.is_none_or(|parts| parts.headers.contains_key("mcp-session-id"));
    let known = if era.is_modern() || in_session { context.client_info() } else { None };
    let (name, version) = match known {
        Some(info) => (Some(info.name), Some(info.version)),
        None => {
            let agent = parts.and_then(|p| p.headers.get(http::header::USER_AGENT)).and_then(|v| v.to_str().ok());
            let product = agent.and_then(|agent| agent.split_whitespace().next());
            match product.map(|product| product.split_once('/').unwrap_or((product, ""))) {
                Some((name, "")) => (Some(name.to_owned()), None),
                Some((name, version)) => (Some(name.to_owned()), Some(version.to_owned())),
                None => (None, None),
            }
        }
    };
    let capabilities = context.client_capabilities().and_then(|all| serde_json::to_value(all).ok());
    ClientFacts {
        name,
        version,
        protocol_version: Some(era.as_str().to_owned()),
        capabilities: capabilities.unwrap_or_else(|| serde_json::json!({})),
    }
}

fn result(reply: CallReply, era: Era) -> CallToolResult {
    let content = reply.content.into_iter().map(|block| annotated(block, era)).collect();
    let mut result = CallToolResult::success(content);
    result.is_error = Some(reply.is_error);
    // The protocol layer holds results as values, which round long numbers; the text beside it keeps every digit.
    let structured = reply.structured.filter(|_| era.has_structure()).and_then(|json| json.to_value().ok());
    result.structured_content = structured.filter(|value| era.has_any_output() || value.is_object());
    let meta = reply.meta.map(rmcp::model::MetaObject);
    result.meta = if era.is_modern() { Some(super::server_meta(meta)) } else { meta };
    result
}

/// The block with what is said about it, as far as the caller's era knows that.
fn annotated(block: Block, era: Era) -> ContentBlock {
    let hints = block.annotations.map(|given| {
        let mut hints = rmcp::model::Annotations::default();
        let role = |audience| match audience {
            Audience::User => Role::User,
            Audience::Assistant => Role::Assistant,
        };
        hints.audience = given.audience.map(|all| all.into_iter().map(role).collect());
        // The protocol layer holds a priority in 32 bits.
        hints.priority = given.priority.map(|priority| priority as f32);
        hints.last_modified = given.last_modified.filter(|_| era.has_structure());
        hints
    });
    let meta = block.meta.filter(|_| era.has_structure()).map(rmcp::model::MetaObject);
    let mut made = self::block(block.content, era);
    let (hints_of, meta_of) = match &mut made {
        ContentBlock::Text(block) => (&mut block.annotations, &mut block.meta),
        ContentBlock::Image(block) => (&mut block.annotations, &mut block.meta),
        ContentBlock::Audio(block) => (&mut block.annotations, &mut block.meta),
        ContentBlock::Resource(block) => (&mut block.annotations, &mut block.meta),
        ContentBlock::ResourceLink(block) => (&mut block.annotations, &mut block.meta),
        _ => return made,
    };
    (*hints_of, *meta_of) = (hints, meta);
    made
}

/// The block in the caller's era: what it doesn't know yet becomes text.
pub(super) fn block(content: Content, era: Era) -> ContentBlock {
    match content {
        Content::Text { text } => ContentBlock::text(text),
        Content::Image { data, mime_type } => ContentBlock::image(data, mime_type),
        Content::Audio { data, mime_type } if era.has_annotations() => ContentBlock::audio(data, mime_type),
        Content::Audio { data, mime_type } => {
            ContentBlock::text(format!("[audio, {mime_type}, {} bytes of base64]", data.len()))
        }
        Content::ResourceLink { uri, name, title, description, mime_type, size } if era.has_structure() => {
            let mut link = rmcp::model::Resource::new(uri, name);
            link.title = title;
            link.size = size;
            link.description = description;
            link.mime_type = mime_type;
            ContentBlock::resource_link(link)
        }
        Content::ResourceLink { uri, name, .. } => ContentBlock::text(format!("[{name}]({uri})")),
        Content::Resource { resource } => ContentBlock::resource(super::resources::contents(resource)),
    }
}
