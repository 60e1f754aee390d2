//! `omniforge stdio`: MCP on standard input and output, alone on the store or beside a running server.

use std::sync::Arc;

use crate::app::{App, stop_on_signal};
use crate::config::{Options, Settings};
use crate::runner::Spawner;

/// The command's options.
#[derive(Debug, clap::Args)]
pub struct Stdio {
    #[command(flatten)]
    pub options: Options,
    /// What the client may do
    #[arg(long, default_value = "call,author", value_name = "SCOPES")]
    pub scope: String,
}

/// Serves until the input ends or a signal says stop.
///
/// # Errors
/// What failed and what to do about it.
pub async fn run(settings: Settings, spawner: Spawner, scope: String) -> anyhow::Result<()> {
    let scopes = super::scopes(&scope)?;
    let app = App::start(&settings, spawner, None).await?;
    let caller = app.auth.local_caller(scopes);
    let (input, output) = (tokio::io::stdin(), tokio::io::stdout());
    tokio::spawn(stop_on_signal(app.lifecycle.clone()));
    let served = crate::stdio::serve(Arc::new(app.tools.clone()), caller, input, output, app.lifecycle.clone()).await;
    app.stop().await?;
    Ok(served?)
}
