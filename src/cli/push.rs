//! `omniforge tool push`: saves folders of tools, resources, prompts and skills on a running server, or on a data
//! directory when none runs.

use std::path::PathBuf;

use anyhow::{Context, anyhow, bail};
use serde_json::{Map, Value, json};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::folder::{self, Folder};
use super::{plain, runtime};
use crate::app::App;
use crate::config::{Options, Settings};
use crate::model::{ClientFacts, Content, Json, Scope, Scopes};
use crate::runner::Spawner;
use crate::tools::{Answer, CallRequest, Domain, Resume, SAVED};

/// The command's options.
#[derive(Debug, clap::Args)]
pub struct Push {
    /// A folder with a manifest, or a tree of them
    dir: PathBuf,
    /// The running server, such as http://127.0.0.1:8787
    #[arg(long, value_name = "URL", conflicts_with = "data_dir")]
    url: Option<String>,
    /// A token with the scope `author`
    #[arg(long, env = "OMNIFORGE_TOKEN", hide_env_values = true, requires = "url")]
    token: Option<String>,
    /// The data directory, when no server runs on it [default: $XDG_DATA_HOME/omniforge]
    #[arg(long, env = "OMNIFORGE_DATA_DIR", value_name = "DIR")]
    data_dir: Option<PathBuf>,
    /// Answer in JSON, a line a folder
    #[arg(long)]
    json: bool,
}

/// Where the folders are saved.
enum Target {
    Server { client: reqwest::Client, mcp: String, token: Option<String> },
    Here(Box<App>),
}

/// Pushes every folder; goes on after one that fails.
///
/// # Errors
/// When a folder can't be read, or was not saved.
pub fn run(push: Push) -> anyhow::Result<()> {
    let folders = folder::find(&push.dir)?;
    let folders: Vec<Folder> = folders.iter().map(|dir| folder::read(dir)).collect::<anyhow::Result<_>>()?;
    let here = match &push.url {
        Some(_) => None,
        None => {
            let options = Options { data_dir: push.data_dir.clone(), ..Options::default() };
            Some((Settings::resolve(options)?, Spawner::start()?))
        }
    };
    runtime()?.block_on(async {
        let target = match (&push.url, here) {
            (Some(url), _) => Target::Server {
                client: reqwest::Client::new(),
                mcp: format!("{}/mcp", url.trim_end_matches('/').trim_end_matches("/mcp")),
                token: push.token.clone(),
            },
            (None, Some((settings, spawner))) => Target::Here(Box::new(App::start(&settings, spawner, None).await?)),
            (None, None) => bail!("give `--url URL` or `--data-dir DIR`"),
        };
        let failed = push_all(&target, &folders, push.json).await;
        if let Target::Here(app) = target {
            app.stop().await?;
        }
        match failed? {
            0 => Ok(()),
            count => bail!("{count} of {} folders were not saved", folders.len()),
        }
    })
}

async fn push_all(target: &Target, folders: &[Folder], as_json: bool) -> anyhow::Result<usize> {
    let mut failed = 0;
    for folder in folders {
        let name = &folder.name;
        let Reply { text, is_error, saved } = target.save(folder).await?;
        failed += usize::from(is_error);
        if as_json {
            let (version, unchanged) = (&saved["version"], saved["unchanged"] == true);
            let line =
                json!({"name": name, "saved": !is_error, "version": version, "unchanged": unchanged, "reply": text});
            println!("{line}");
        } else if is_error {
            eprintln!("{name}: not saved\n{}", plain(&text));
        } else {
            println!("{}", plain(text.lines().next().unwrap_or_default()));
        }
    }
    Ok(failed)
}

/// What a save was answered.
struct Reply {
    text: String,
    is_error: bool,
    /// Which version stands now, and whether it is an old one; null where nothing was saved.
    saved: Value,
}

impl Target {
    /// Calls the built-in tool that saves the folder.
    async fn save(&self, folder: &Folder) -> anyhow::Result<Reply> {
        match self {
            Self::Server { client, mcp, token } => remote(client, mcp, token.as_deref(), folder).await,
            Self::Here(app) => local(app, folder).await,
        }
    }
}

async fn local(app: &App, folder: &Folder) -> anyhow::Result<Reply> {
    let owner = app.auth.owner_caller(Scopes::of(&[Scope::Call, Scope::Author]));
    let request = CallRequest {
        name: folder.kind.saved_by().to_owned(),
        arguments: Some(Json::of(&folder.arguments)?),
        request_id: "push".to_owned(),
        meta: Map::new(),
        client: ClientFacts::default(),
        door: "cli",
        resume: Resume::default(),
    };
    let (events, _) = mpsc::channel(1);
    let answer = app.tools.call(&owner, request, events, CancellationToken::new()).await?;
    let Answer::Reply(reply) = answer else { anyhow::bail!("saving was not answered at once") };
    let text = reply.content.iter().filter_map(|block| match &block.content {
        Content::Text { text } => Some(text.as_str()),
        _ => None,
    });
    let saved = reply.meta.as_ref().and_then(|meta| meta.get(SAVED)).cloned().unwrap_or_default();
    Ok(Reply { text: text.collect::<Vec<_>>().join("\n"), is_error: reply.is_error, saved })
}

async fn remote(client: &reqwest::Client, mcp: &str, token: Option<&str>, folder: &Folder) -> anyhow::Result<Reply> {
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": {"name": folder.kind.saved_by(), "arguments": folder.arguments}});
    let mut request = client
        .post(mcp)
        .header("Accept", "application/json, text/event-stream")
        .header("MCP-Protocol-Version", "2025-11-25")
        .json(&body);
    if let Some(token) = token {
        request = request.bearer_auth(token);
    }
    let response = request.send().await.with_context(|| format!("no answer from {mcp}"))?;
    let (status, text) = (response.status(), response.text().await?);
    let message = answer(&text).ok_or_else(|| anyhow!("{mcp} answered {status}: {}", plain(text.trim())))?;
    if let Some(error) = message.get("error") {
        let said = error.get("message").and_then(Value::as_str).unwrap_or_default();
        bail!("{mcp} refused the call: {}", plain(said));
    }
    let result = &message["result"];
    let blocks = result["content"].as_array().into_iter().flatten();
    let said: Vec<&str> = blocks.filter_map(|block| block["text"].as_str()).collect();
    let (is_error, saved) = (result["isError"].as_bool().unwrap_or(false), result["_meta"][SAVED].clone());
    Ok(Reply { text: said.join("\n"), is_error, saved })
}

/// The JSON-RPC response in a body of plain JSON or of server-sent events.
fn answer(text: &str) -> Option<Value> {
    let is_answer = |value: &Value| value.get("result").is_some() || value.get("error").is_some_and(Value::is_object);
    let whole = serde_json::from_str::<Value>(text).ok().filter(is_answer);
    let events = text.lines().filter_map(|line| line.strip_prefix("data:"));
    whole.or_else(|| events.filter_map(|data| serde_json::from_str::<Value>(data).ok()).find(is_answer))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_answer_is_found_in_json_and_in_events() {
        assert!(answer("{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}").is_some());
        let events = ": ping\n\ndata: {\"method\":\"notifications/progress\"}\n\ndata: {\"id\":1,\"result\":{\"isError\":false}}\n\n";
        assert_eq!(answer(events).unwrap()["result"]["isError"], json!(false));
        assert!(answer("{\"title\": \"Unauthorized\"}").is_none());
    }
}
