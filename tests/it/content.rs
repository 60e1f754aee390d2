//! Saved content through the real door: resources, prompts, skills, suggestions, news, and the outputs of runs.

mod guide;
mod news;
mod outputs;
mod prompts;
mod resources;
mod skills;
mod versions;

use serde_json::{Value, json};

use crate::server::Server;

/// Saves something that must be accepted; the reply's text.
async fn save(server: &Server, tool: &str, arguments: Value) -> String {
    let (text, is_error) = server.call(tool, arguments).await;
    assert!(!is_error, "{text}");
    text
}

/// The contents read under a URI.
async fn read(server: &Server, uri: &str) -> Value {
    let answer = server.rpc("resources/read", json!({"uri": uri})).await;
    answer["result"].get("contents").unwrap_or_else(|| panic!("{uri}: {answer}")).clone()
}

/// The error of a request that must fail: its code and message.
async fn refused(server: &Server, method: &str, params: Value) -> (i64, String) {
    let answer = server.rpc(method, params).await;
    let error = answer.get("error").unwrap_or_else(|| panic!("{answer}"));
    (error["code"].as_i64().unwrap(), error["message"].as_str().unwrap().to_owned())
}
