//! `omniforge serve`: listen, say where, and stop in order.

use std::sync::Arc;

use anyhow::Context;
use serde_json::json;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};

use super::App;
use super::doors::{Bearer, StoreReady};
use crate::api::{self, ApiState};
use crate::auth::{Lifetime, TokenRequest};
use crate::config::{AuthMode, Settings};
use crate::http::{self, HttpOptions, TrustedProxies};
use crate::lifecycle::Lifecycle;
use crate::model::{SandboxLevel, Scope, Scopes};
use crate::runner::Spawner;
use crate::web::{self, WebState};

/// What `serve` prints when it accepts connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServeOutput {
    /// For people: sign-in link, address, a snippet.
    Text,
    /// One line of JSON, for scripts.
    Json,
}

/// Serves until a signal says stop.
///
/// # Errors
/// What failed and what to do about it.
pub async fn serve(settings: Settings, spawner: Spawner, output: ServeOutput) -> anyhow::Result<()> {
    let listener = TcpListener::bind(settings.listen).await.with_context(|| {
        format!(
            "cannot listen on {}; is another server running there? `--listen ADDRESS:PORT` chooses another",
            settings.listen
        )
    })?;
    let listen = listener.local_addr()?;
    raise_open_files();
    let public_url = settings.public_url.map(|url| url.trim_end_matches('/').to_owned());
    let settings = Settings { listen, public_url, ..settings };
    let url = settings.public_url.clone().unwrap_or_else(|| format!("http://{listen}"));
    let app = App::start(&settings, spawner, Some(&url)).await?;
    let router = router(&app, &settings, listen)?;
    match output {
        ServeOutput::Json => println!("{}", ready_json(&app, &settings, &url).await?),
        ServeOutput::Text => print!("{}", banner(&app, &settings, &url).await?),
    }
    tokio::spawn(stop_on_signal(app.lifecycle.clone()));
    http::serve(listener, router, &app.lifecycle).await;
    app.stop().await
}

/// As many open files as this user may have: each run with a network holds its listeners and connections here. What tools
/// may open is their own limit.
fn raise_open_files() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    // It stays as it was where the system refuses.
    let _unchanged = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
}

fn router(app: &App, settings: &Settings, listen: std::net::SocketAddr) -> anyhow::Result<http::Router> {
    let options = HttpOptions {
        allowed_hosts: settings.allowed_hosts.clone(),
        allowed_origins: settings.allowed_origins.clone(),
        public_url: settings.public_url.clone(),
        ready: Some(Arc::new(StoreReady(app.store.clone()))),
        ..HttpOptions::new(listen)
    };
    let identify = Arc::new(Bearer(app.auth.clone(), app.refusals.clone()));
    let pages = WebState {
        gate: options.gate()?,
        auth: Arc::new(app.auth.clone()),
        tools: app.tools.clone(),
        clock: app.store.clock().clone(),
        listen,
        public_url: settings.public_url.clone(),
    };
    let api = ApiState {
        gate: options.gate()?,
        identify: identify.clone(),
        tools: app.tools.clone(),
        auth: app.auth.clone(),
        public_url: settings.public_url.clone(),
    };
    let tools = Arc::new(app.tools.clone());
    let others = web::router(pages.clone()).merge(api::router(api));
    let routes = http::router(tools, identify, options, &app.lifecycle, others)?;
    let routes = web::error_pages(pages, routes);
    let trusted = TrustedProxies::new(settings.trusted_proxies.clone());
    Ok(http::behind_proxy(routes, settings.public_url.as_deref(), trusted))
}

/// The first signal ends streams, refuses new calls and drains the running ones; a second one kills those at once, a
/// third one cuts their connections.
pub async fn stop_on_signal(lifecycle: Lifecycle) {
    let (Ok(mut terminate), Ok(mut interrupt)) = (signal(SignalKind::terminate()), signal(SignalKind::interrupt()))
    else {
        tracing::error!("Signals can't be received; only SIGKILL will stop this server");
        return;
    };
    for (step, what) in [
        (&lifecycle.closing, format!("no new calls; running ones have {} s", lifecycle.drain_time().as_secs_f64())),
        (&lifecycle.killing, "running calls are killed".to_owned()),
        (&lifecycle.ended, "connections are cut".to_owned()),
    ] {
        tokio::select! { _ = terminate.recv() => {} _ = interrupt.recv() => {} }
        tracing::info!("Stopping: {what}");
        step.cancel();
    }
}

async fn token(app: &App, name: &str, scopes: &[Scope], lifetime: Lifetime) -> anyhow::Result<String> {
    let request = TokenRequest {
        principal: app.auth.owner().id.clone(),
        name: name.to_owned(),
        scopes: Scopes::of(scopes),
        expires_at: None,
        lifetime,
        toolset: None,
    };
    Ok(app.auth.create_token(&app.auth.owner_caller(request.scopes), request).await?.1)
}

async fn ready_json(app: &App, settings: &Settings, url: &str) -> anyhow::Result<String> {
    let mut ready = json!({"url": url, "mcp": format!("{url}/mcp"), "listen": settings.listen});
    if settings.auth == AuthMode::Token {
        let admin = [Scope::Call, Scope::Author, Scope::Approve, Scope::Admin];
        ready["token"] = json!(token(app, "ready", &[Scope::Call, Scope::Author], Lifetime::Process).await?);
        ready["admin_token"] = json!(token(app, "ready admin", &admin, Lifetime::Process).await?);
    }
    ready["sign_in"] = json!(format!("{url}/signin/{}", app.auth.new_sign_in_link().await?));
    ready["sandbox"] = json!(app.runner.sandbox().as_str());
    ready["pid"] = json!(std::process::id());
    Ok(ready.to_string())
}

async fn banner(app: &App, settings: &Settings, url: &str) -> anyhow::Result<String> {
    let mut text = format!("OmniForge {} is ready.\n\n", env!("CARGO_PKG_VERSION"));
    if app.runner.sandbox() != SandboxLevel::Full {
        text +=
            &format!("  WARNING     the sandbox is `{}`: scripts are less confined\n", app.runner.sandbox().as_str());
    }
    text += &format!("  MCP         {url}/mcp\n");
    let code = app.auth.new_sign_in_link().await?;
    text += &format!("  Sign in     {url}/signin/{code}   (once, within 15 minutes)\n");
    text += &format!("  Data        {}\n\n", settings.data_dir.display());
    let header = match settings.auth {
        AuthMode::None => {
            text += "Anybody on this machine may call: `--auth none`.\n";
            String::new()
        }
        AuthMode::Token if app.auth.is_first_start() => {
            let token = token(app, "first start", &[Scope::Call, Scope::Author], Lifetime::Stored).await?;
            text += &format!("  Token       {token}   (call and author; shown this once)\n\n");
            format!(" --header \"Authorization: Bearer {token}\"")
        }
        AuthMode::Token => {
            text += "A new token: omniforge token create --name NAME --scope call,author\n";
            " --header \"Authorization: Bearer YOUR_TOKEN\"".to_owned()
        }
    };
    text += &format!("Connect Claude Code:\n  claude mcp add --transport http omniforge {url}/mcp{header}\n\n");
    Ok(text)
}
