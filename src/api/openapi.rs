//! `/openapi.json`: the management API and each saved tool that the caller sees, as OpenAPI 3.1. Made from the same table as
//! the routes, from the built-ins' schemas and from the tools' own.

use std::sync::Arc;

use axum::Extension;
use axum::extract::State;
use axum::response::Response;
use http::StatusCode;
use http::header::HOST;
use http::{HeaderMap, Method};
use serde_json::{Map, Value, json};

use super::ApiState;
use super::call::refused;
use super::door::answer;
use super::operations::{self, Operation};
use crate::model::Caller;
use crate::tools::{Domain as _, ListedTool};

/// An operation that no built-in tool does: method, path, name, what it does, the schema of its body, whether `If-Match`
/// says what it writes.
type Other = (Method, &'static str, &'static str, &'static str, Option<Value>, bool);

fn others() -> Vec<Other> {
    let (text, texts) = (json!({"type": "string"}), json!({"type": "array", "items": {"type": "string"}}));
    let flag = json!({"type": "boolean"});
    let content = json!({"type": "array", "items": {"type": "object", "properties": {
        "kind": {"enum": ["resource", "prompt", "skill"]}, "name": text}, "required": ["kind", "name"],
        "additionalProperties": false}});
    let toolset = json!({"description": text, "instructions": text, "tags": texts, "everything": flag, "search": flag,
        "portable": flag, "tools": texts, "content": content});
    let mut new_toolset = toolset.clone();
    new_toolset["name"] = text.clone();
    vec![
        (
            Method::GET,
            "/api/v1/runs/{run_id}/log",
            "followRun",
            "What a run says, live, as server-sent events",
            None,
            false,
        ),
        (Method::GET, "/api/v1/runs/{run_id}/outputs/{stream}", "getRunOutput", "What a run printed", None, false),
        (Method::GET, "/api/v1/toolsets", "listToolsets", "The toolsets", None, false),
        (Method::POST, "/api/v1/toolsets", "createToolset", "Make a toolset", object(new_toolset, &["name"]), false),
        (Method::GET, "/api/v1/toolsets/{name}", "getToolset", "Show a toolset", None, false),
        (Method::PATCH, "/api/v1/toolsets/{name}", "updateToolset", "Change a toolset", object(toolset, &[]), true),
        (Method::DELETE, "/api/v1/toolsets/{name}", "deleteToolset", "Delete a toolset", None, true),
        (Method::GET, "/api/v1/tokens", "listTokens", "The tokens, without their secrets", None, false),
        (
            Method::POST,
            "/api/v1/tokens",
            "createToken",
            "Make a token; its text is in this answer and never again",
            object(
                json!({"name": text, "scope": text, "expires_at": {"type": "integer"}, "toolset": text}),
                &["name", "scope"],
            ),
            false,
        ),
        (Method::DELETE, "/api/v1/tokens/{id}", "revokeToken", "Revoke a token", None, false),
        (Method::GET, "/api/v1/audit", "listAudit", "The audit log, newest first", None, false),
        (Method::GET, "/api/v1/server", "getServer", "Version, sandbox, runtimes and limits", None, false),
    ]
}

/// Those of approvals and secrets.
fn of_trust() -> Vec<Other> {
    let (text, texts) = (json!({"type": "string"}), json!({"type": "array", "items": {"type": "string"}}));
    vec![
        (Method::GET, "/api/v1/approvals", "listApprovals", "What waits for a person", None, false),
        (Method::GET, "/api/v1/approvals/{id}", "getApproval", "What something asks for", None, false),
        (
            Method::POST,
            "/api/v1/approvals/{id}",
            "approve",
            "Approve of a version",
            object(
                json!({"version": {"type": "integer"}, "fingerprint": text, "note": text}),
                &["version", "fingerprint"],
            ),
            false,
        ),
        (Method::DELETE, "/api/v1/approvals/{id}", "revokeApproval", "Take an approval back", None, false),
        (Method::GET, "/api/v1/secrets", "listSecrets", "The secrets, without their values", None, false),
        (
            Method::PUT,
            "/api/v1/secrets/{name}",
            "setSecret",
            "Set a secret",
            object(json!({"value": text, "hosts": texts}), &["value"]),
            false,
        ),
        (Method::DELETE, "/api/v1/secrets/{name}", "deleteSecret", "Delete a secret", None, false),
    ]
}

fn object(properties: Value, required: &[&str]) -> Option<Value> {
    Some(json!({"type": "object", "properties": properties, "required": required, "additionalProperties": false}))
}

/// The document for this caller.
pub(super) async fn document(
    State(api): State<Arc<ApiState>>,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
) -> Response {
    let list = match api.tools.list(&caller).await {
        Ok(list) => list,
        Err(error) => return refused(&error),
    };
    let mut paths = Map::new();
    for operation in operations::all() {
        let schema = api.tools.builtin_schema(operation.builtin).unwrap_or_default();
        put(&mut paths, operation.path, &operation.method, built_in(&operation, &schema));
    }
    for other in others().into_iter().chain(of_trust()) {
        put(&mut paths, other.1, &other.0, hand_made(&other));
    }
    for tool in list.tools.iter().filter(|tool| api.tools.builtin_schema(&tool.name).is_none()) {
        put(&mut paths, &format!("/tools/{}", tool.name), &Method::POST, of_tool(tool));
    }
    let host = headers.get(HOST).and_then(|host| host.to_str().ok()).unwrap_or("localhost");
    let url = api.public_url.clone().unwrap_or_else(|| format!("http://{host}"));
    let document = json!({
        "openapi": "3.1.0",
        "info": {"title": "OmniForge", "version": env!("CARGO_PKG_VERSION"),
            "description": "The management API, and one operation for each saved tool that the caller sees."},
        "servers": [{"url": url.trim_end_matches('/')}],
        "security": [{"bearer": []}],
        "paths": paths,
        "components": {
            "securitySchemes": {"bearer": {"type": "http", "scheme": "bearer"}},
            "schemas": {"Problem": {"type": "object", "description": "RFC 9457", "required": ["title", "status", "detail"],
                "properties": {"type": {"type": "string"}, "title": {"type": "string"}, "status": {"type": "integer"},
                    "detail": {"type": "string"}}}},
        },
    });
    answer(StatusCode::OK, &document)
}

fn put(paths: &mut Map<String, Value>, path: &str, method: &Method, operation: Value) {
    let entry = paths.entry(path).or_insert_with(|| json!({}));
    entry[method.as_str().to_ascii_lowercase()] = operation;
}

fn built_in(operation: &Operation, schema: &Value) -> Value {
    let in_path: Vec<&str> = operation.in_path().collect();
    let fixed: Vec<&str> = operation.fixed.iter().map(|(name, _)| *name).collect();
    let given = |name: &str| {
        let taken = operation.takes.is_empty() || operation.takes.contains(&name);
        taken && !in_path.contains(&name) && !fixed.contains(&name)
    };
    let none = Map::new();
    let properties = schema["properties"].as_object().unwrap_or(&none);
    let required = |name: &str| schema["required"].as_array().is_some_and(|all| all.iter().any(|one| one == name));
    let mut parameters = parameters(&in_path, operation.conditional);
    let mut written = json!({"operationId": operation.id, "summary": operation.summary, "tags": ["management"]});
    if operation.by_query() {
        for (name, schema) in properties.iter().filter(|(name, _)| given(name)) {
            let needed = required(name) || (name == "name" && operation.path.ends_with("/resource"));
            parameters.push(json!({"name": name, "in": "query", "required": needed, "schema": schema}));
        }
    } else {
        let body: Map<String, Value> =
            properties.iter().filter(|(name, _)| given(name)).map(|(name, it)| (name.clone(), it.clone())).collect();
        let needed: Vec<&String> = body.keys().filter(|name| required(name)).collect();
        let schema = json!({"type": "object", "properties": body, "required": needed, "additionalProperties": false});
        written["requestBody"] =
            json!({"required": !needed.is_empty(), "content": {"application/json": {"schema": schema}}});
    }
    written["parameters"] = json!(parameters);
    written["responses"] = responses(operation.status.as_u16(), json!({"type": "object"}), "application/json");
    written
}

fn hand_made((_, path, id, summary, body, conditional): &Other) -> Value {
    let in_path: Vec<&str> =
        path.split('{').skip(1).filter_map(|rest| rest.split_once('}')).map(|(name, _)| name).collect();
    let mut parameters = parameters(&in_path, *conditional);
    let query: &[(&str, &str)] = match *id {
        "getRunOutput" => &[("offset", "integer")],
        "listAudit" => &[("action", "string"), ("subject", "string"), ("before", "string"), ("limit", "integer")],
        _ => &[],
    };
    for (name, kind) in query {
        let mut schema = json!({"type": kind});
        if *kind == "integer" {
            schema["minimum"] = json!(0);
        }
        parameters.push(json!({"name": name, "in": "query", "required": false, "schema": schema}));
    }
    let mut written = json!({"operationId": id, "summary": summary, "tags": ["management"], "parameters": parameters});
    if let Some(schema) = body {
        written["requestBody"] = json!({"required": true, "content": {"application/json": {"schema": schema}}});
    }
    let (kind, schema) = match *id {
        "followRun" => ("text/event-stream", json!({"type": "string"})),
        _ => ("application/json", json!({"type": "object"})),
    };
    let status = if matches!(*id, "createToolset" | "createToken") { 201 } else { 200 };
    written["responses"] = responses(status, schema, kind);
    written
}

fn parameters(in_path: &[&str], conditional: bool) -> Vec<Value> {
    let mut parameters: Vec<Value> = in_path
        .iter()
        .map(|name| {
            let schema = match *name {
                "stream" => json!({"enum": ["stdout", "stderr"]}),
                _ => json!({"type": "string", "minLength": 1}),
            };
            json!({"name": name, "in": "path", "required": true, "schema": schema})
        })
        .collect();
    if conditional {
        parameters.push(json!({"name": "If-Match", "in": "header", "required": true, "schema": {"type": "string"},
            "description": "The ETag of what was read, or * for whatever is there"}));
    }
    parameters
}

fn of_tool(tool: &ListedTool) -> Value {
    let output = tool.output_schema.as_ref().filter(|schema| schema["type"] == "object");
    let result = output.map_or_else(|| json!({}), crate::tools::self_contained);
    let schema = json!({"type": "object", "properties": {"result": result}, "required": ["result"]});
    let mut responses = responses(200, schema, "application/json");
    responses["202"] = json!({"description": "It goes on: `job_id` is the run's id",
        "content": {"application/json": {"schema": {"type": "object"}}}});
    json!({
        "operationId": tool.name, "summary": tool.title.as_ref().unwrap_or(&tool.name), "description": tool.description,
        "tags": ["tools"],
        "parameters": [{"name": "Idempotency-Key", "in": "header", "required": false,
                "schema": {"type": "string", "minLength": 1, "maxLength": 256}},
            {"name": "compat", "in": "query", "required": false, "schema": {"enum": ["nanohub"]}}],
        "requestBody": {"content": {"application/json": {"schema": crate::tools::self_contained(&tool.input_schema)}}},
        "responses": responses,
    })
}

fn responses(status: u16, schema: Value, kind: &str) -> Value {
    let problem = |text: &str| {
        json!({"description": text, "content": {"application/problem+json": {"schema":
            {"$ref": "#/components/schemas/Problem"}}}})
    };
    let mut all = json!({
        "400": problem("The request is not what is taken here"),
        "401": problem("There is no valid bearer token"),
        "403": problem("The token does not carry the scope, or the request comes from where none may"),
        "404": problem("There is none"),
        "408": problem("The body did not arrive in time"),
        "409": problem("Something stands in the way"),
        "412": problem("It has changed since it was read"),
        "413": problem("The body is too large"),
        "422": problem("The tool failed, or what was to be saved is wrong"),
        "428": problem("If-Match is missing"),
        "429": problem("Too much is going on"),
        "504": problem("The time was over"),
    });
    all[status.to_string()] = json!({"description": "Done", "content": {kind: {"schema": schema}}});
    all
}
