//! The operations of the management API that the built-in tools do: one table, from which both the routes and the OpenAPI
//! document are made.

use std::sync::Arc;

use axum::Extension;
use axum::Router;
use axum::extract::{Path, Request, State};
use axum::response::Response;
use axum::routing::{MethodFilter, on};
use http::header::IF_MATCH;
use http::{HeaderMap, Method, StatusCode};
use serde_json::{Map, Value, json};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::ApiState;
use super::call::{ended, plain, refused};
use super::door::answer;
use crate::http::{problem, read_body};
use crate::model::{CallReply, Caller, Content, Json};
use crate::tools::{Answer, Domain as _, SAVED, state_tag};

/// One operation.
pub(super) struct Operation {
    /// The HTTP method.
    pub(super) method: Method,
    /// The path, with the names of the built-in's arguments in braces.
    pub(super) path: &'static str,
    /// Its name in the OpenAPI document.
    pub(super) id: &'static str,
    /// What it does.
    pub(super) summary: &'static str,
    /// The built-in tool that does it.
    pub(super) builtin: &'static str,
    /// The arguments of the built-in that it takes, besides those in the path; empty for all.
    pub(super) takes: &'static [&'static str],
    /// Arguments that are always the same.
    pub(super) fixed: &'static [(&'static str, &'static str)],
    /// Whether it writes something that can be read, so that `If-Match` must say what.
    pub(super) conditional: bool,
    /// The status of its success.
    pub(super) status: StatusCode,
}

fn get(
    path: &'static str,
    id: &'static str,
    (builtin, takes): (&'static str, &'static [&'static str]),
    summary: &'static str,
) -> Operation {
    let (fixed, conditional, status) = (&[], false, StatusCode::OK);
    Operation { method: Method::GET, path, id, summary, builtin, takes, fixed, conditional, status }
}

fn write(
    method: Method,
    path: &'static str,
    id: &'static str,
    builtin: &'static str,
    summary: &'static str,
) -> Operation {
    let (takes, fixed, conditional, status) = (&[] as &[_], &[] as &[_], true, StatusCode::OK);
    Operation { method, path, id, summary, builtin, takes, fixed, conditional, status }
}

fn act(path: &'static str, id: &'static str, builtin: &'static str, summary: &'static str) -> Operation {
    Operation { conditional: false, ..write(Method::POST, path, id, builtin, summary) }
}

fn of(kind: &'static [(&'static str, &'static str)], operation: Operation) -> Operation {
    Operation { fixed: kind, ..operation }
}

const RESOURCE: &[(&str, &str)] = &[("kind", "resource")];
const PROMPT: &[(&str, &str)] = &[("kind", "prompt")];
const SKILL: &[(&str, &str)] = &[("kind", "skill")];
const LIST: &str = "omniforge_list_content";
const DELETE: &str = "omniforge_delete_content";
const LIST_TOOLS: (&str, &[&str]) = ("omniforge_list_tools", &["query", "tag", "limit", "offset"]);
const LIST_RUNS: (&str, &[&str]) = ("omniforge_list_runs", &["tool", "ending", "before", "limit"]);
const FIND: (&str, &[&str]) = (LIST, &["query", "limit", "offset"]);
const SHOW: (&str, &[&str]) = (LIST, &["version"]);
const SHOW_URI: (&str, &[&str]) = (LIST, &["name", "version"]);

/// Every operation.
pub(super) fn all() -> Vec<Operation> {
    use Method as M;
    vec![
        get("/api/v1/guide", "guide", ("omniforge_instructions", &[]), "How to write tools"),
        get("/api/v1/tools", "listTools", LIST_TOOLS, "Search the tools"),
        Operation {
            status: StatusCode::CREATED,
            ..act("/api/v1/tools", "createTool", "omniforge_create_tool", "Save a new tool")
        },
        get("/api/v1/tools/{name}", "getTool", ("omniforge_get_tool", &["version"]), "Show a tool"),
        write(M::PATCH, "/api/v1/tools/{name}", "updateTool", "omniforge_update_tool", "Change fields of a tool"),
        write(M::DELETE, "/api/v1/tools/{name}", "deleteTool", "omniforge_delete_tool", "Delete a tool"),
        write(
            M::PUT,
            "/api/v1/tools/{name}/enabled",
            "setToolEnabled",
            "omniforge_set_enabled",
            "Switch a tool on or off",
        ),
        get(
            "/api/v1/tools/{name}/versions",
            "listToolVersions",
            ("omniforge_tool_history", &["from", "to"]),
            "The versions of a tool; with `from` or `to` the difference of two",
        ),
        write(
            M::POST,
            "/api/v1/tools/{name}/rollback",
            "rollbackTool",
            "omniforge_rollback_tool",
            "Return to a version, as a new one",
        ),
        Operation {
            takes: &["version", "arguments", "learn"],
            ..act("/api/v1/tools/{name}/test", "testTool", "omniforge_test_tool", "Run a saved version once")
        },
        act("/api/v1/test", "testCode", "omniforge_test_tool", "Run code once without saving it"),
        get("/api/v1/runs", "listRuns", LIST_RUNS, "Runs, newest first"),
        get("/api/v1/runs/{run_id}", "getRun", ("omniforge_get_run", &[]), "Show a run"),
        act("/api/v1/runs/{run_id}/cancel", "cancelRun", "omniforge_cancel_run", "Stop a run"),
        of(RESOURCE, get("/api/v1/resources", "listResources", FIND, "Search the resources")),
        of(RESOURCE, get("/api/v1/resource", "getResource", SHOW_URI, "Show the resource with the URI `name`")),
        write(M::PUT, "/api/v1/resource", "saveResource", "omniforge_save_resource", "Save a resource"),
        of(RESOURCE, write(M::DELETE, "/api/v1/resource", "deleteResource", DELETE, "Delete the resource `name`")),
        of(PROMPT, get("/api/v1/prompts", "listPrompts", FIND, "Search the prompts")),
        of(PROMPT, get("/api/v1/prompts/{name}", "getPrompt", SHOW, "Show a prompt")),
        write(M::PUT, "/api/v1/prompts/{name}", "savePrompt", "omniforge_save_prompt", "Save a prompt"),
        of(PROMPT, write(M::DELETE, "/api/v1/prompts/{name}", "deletePrompt", DELETE, "Delete a prompt")),
        of(SKILL, get("/api/v1/skills", "listSkills", FIND, "Search the skills")),
        of(SKILL, get("/api/v1/skills/{name}", "getSkill", SHOW, "Show a skill")),
        write(M::PUT, "/api/v1/skills/{name}", "saveSkill", "omniforge_save_skill", "Save a skill"),
        of(SKILL, write(M::DELETE, "/api/v1/skills/{name}", "deleteSkill", DELETE, "Delete a skill")),
    ]
}

impl Operation {
    /// Whether its arguments come in the query and not in a body.
    pub(super) fn by_query(&self) -> bool {
        self.method == Method::GET || self.method == Method::DELETE
    }

    /// The names in the path.
    pub(super) fn in_path(&self) -> impl Iterator<Item = &'static str> {
        self.path.split('{').skip(1).filter_map(|rest| rest.split_once('}')).map(|(name, _)| name)
    }
}

/// The routes of these operations.
pub(super) fn routes() -> Router<Arc<ApiState>> {
    all().into_iter().fold(Router::new(), |router, operation| {
        let filter = MethodFilter::try_from(operation.method.clone()).expect("the methods in the table have filters");
        let (path, operation) = (operation.path, Arc::new(operation));
        let handler =
            move |state: State<Arc<ApiState>>,
                  caller: Extension<Caller>,
                  path: Path<Vec<(String, String)>>,
                  request: Request| { serve(Arc::clone(&operation), state, caller, (path, request)) };
        router.route(path, on(filter, handler))
    })
}

async fn serve(
    operation: Arc<Operation>,
    State(api): State<Arc<ApiState>>,
    Extension(caller): Extension<Caller>,
    (Path(path), request): (Path<Vec<(String, String)>>, Request),
) -> Response {
    let (parts, body) = request.into_parts();
    let schema = api.tools.builtin_schema(operation.builtin).unwrap_or_default();
    let mut arguments = if operation.by_query() {
        match from_query(parts.uri.query().unwrap_or_default(), &operation, &schema) {
            Ok(arguments) => arguments,
            Err(text) => return problem(StatusCode::BAD_REQUEST, text),
        }
    } else {
        match read_body(body, super::BODY.0, super::BODY.1).await {
            Ok(bytes) => match from_body(&bytes) {
                Ok(arguments) => arguments,
                Err(text) => return problem(StatusCode::BAD_REQUEST, text),
            },
            Err(refused) => return refused,
        }
    };
    for (name, value) in path {
        arguments.insert(name, Value::String(value));
    }
    for (name, value) in operation.fixed {
        arguments.insert((*name).to_owned(), json!(value));
    }
    let mut call = plain(operation.builtin.to_owned(), Some(Json::from(&Value::Object(arguments))));
    if operation.conditional {
        call.meta.insert(crate::tools::IF_MATCH.to_owned(), condition(&parts.headers));
    }
    let (events, _nobody_listens) = mpsc::channel(1);
    match api.tools.call(&caller, call, events, CancellationToken::new()).await {
        Ok(Answer::Reply(reply)) if reply.is_error && !is_test(&operation) => error(&reply),
        Ok(Answer::Reply(reply)) => shown(&operation, &reply),
        Ok(Answer::Handle(handle)) => shown(&operation, &handle.reply),
        Ok(Answer::Asking(asking)) => {
            let _stopped = api.tools.cancel_task(&caller, &asking.run.to_string()).await;
            problem(StatusCode::CONFLICT, "the code asks its caller something, which needs an MCP client")
        }
        Err(crate::tools::CallError::UnknownTool { .. }) => {
            problem(StatusCode::FORBIDDEN, "this needs the scope `author`, which the credential does not carry")
        }
        Err(error) => refused(&error),
    }
}

/// Code that was tried and failed is what was asked for.
fn is_test(operation: &Operation) -> bool {
    operation.builtin == "omniforge_test_tool"
}

fn condition(headers: &HeaderMap) -> Value {
    headers.get(IF_MATCH).map_or(Value::Null, |tag| json!(String::from_utf8_lossy(tag.as_bytes()).trim()))
}

fn error(reply: &CallReply) -> Response {
    ended(reply, false)
}

/// The built-in's value, or its text as `message`.
fn shown(operation: &Operation, reply: &CallReply) -> Response {
    if is_test(operation) && reply.fault.is_some() {
        return error(reply);
    }
    let Some(value) = reply.structured.as_ref().filter(|_| !is_test(operation)) else {
        let texts: Vec<&str> = reply
            .content
            .iter()
            .filter_map(|block| match &block.content {
                Content::Text { text } => Some(&**text),
                _ => None,
            })
            .collect();
        let mut body = json!({"message": texts.join("\n")});
        if let Some(saved) = reply.meta.as_ref().and_then(|meta| meta.get(SAVED)).and_then(Value::as_object) {
            body.as_object_mut().expect("it was written as an object").extend(saved.clone());
        }
        if is_test(operation) {
            body["is_error"] = json!(reply.is_error);
        }
        return answer(operation.status, &body);
    };
    let mut response = answer(operation.status, value);
    if let Some(tag) = tag_of(value) {
        response.headers_mut().insert(http::header::ETAG, tag);
    }
    response
}

/// The tag of a tool or of saved content that is shown.
fn tag_of(value: &Json) -> Option<http::HeaderValue> {
    #[derive(serde::Deserialize)]
    struct Shown {
        versions: Versions,
        enabled: bool,
    }
    #[derive(serde::Deserialize)]
    struct Versions {
        latest: i64,
    }
    let shown: Shown = serde_json::from_str(value.get()).ok()?;
    http::HeaderValue::from_str(&format!("\"{}\"", state_tag(shown.versions.latest, shown.enabled))).ok()
}

fn from_body(bytes: &[u8]) -> Result<Map<String, Value>, String> {
    if bytes.trim_ascii().is_empty() {
        return Ok(Map::new());
    }
    match serde_json::from_slice(bytes) {
        Ok(Value::Object(map)) => Ok(map),
        Ok(_) => Err("the body must be a JSON object".to_owned()),
        Err(error) => Err(format!("the body is no JSON: {error}")),
    }
}

/// The arguments in a query: texts, and numbers where the built-in takes numbers.
fn from_query(query: &str, operation: &Operation, schema: &Value) -> Result<Map<String, Value>, String> {
    let mut arguments = Map::new();
    for (name, value) in form(query)? {
        let known = operation.takes.contains(&name.as_str())
            || (operation.takes.is_empty() && !schema["properties"][&name].is_null() && name != "kind");
        if !known {
            return Err(format!("the query parameter `{name}` is unknown; known are {}", operation.takes.join(", ")));
        }
        let wants_number = schema["properties"][&name]["type"] == "integer";
        let parsed = match wants_number {
            true => value.parse::<i64>().map(Value::from).map_err(|_| format!("`{name}`: `{value}` is no number"))?,
            false => Value::String(value),
        };
        arguments.insert(name, parsed);
    }
    Ok(arguments)
}

fn form(query: &str) -> Result<Vec<(String, String)>, String> {
    let decode = |text: &str| {
        let text = text.replace('+', " ");
        let decoded = percent_encoding::percent_decode_str(&text).decode_utf8();
        decoded.map(std::borrow::Cow::into_owned).map_err(|_| "the query is no UTF-8 text".to_owned())
    };
    let pairs = query.split('&').filter(|pair| !pair.is_empty());
    pairs
        .map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            Ok((decode(name)?, decode(value)?))
        })
        .collect()
}
