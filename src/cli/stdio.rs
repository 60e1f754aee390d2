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
    /// The toolset that the client is kept within
    #[arg(long, value_name = "NAME")]
    pub toolset: Option<String>,
}

/// Serves until the input ends or a signal says stop.
///
/// # Errors
/// What failed and what to do about it.
pub async fn run(
    settings: Settings,
    spawner: Spawner,
    (scope, toolset): (String, Option<String>),
) -> anyhow::Result<()> {
    let scopes = super::scopes(&scope)?;
    let app = App::start(&settings, spawner, None).await?;
    let caller = app.auth.local_caller(scopes);
    let caller = match toolset {
        None => caller,
        Some(name) => match app.tools.toolsets().within(&caller, &name).await? {
            Some(within) => within,
            None => {
                app.stop().await?;
                anyhow::bail!("there is no toolset `{name}` of the principal `local`");
            }
        },
    };
    let (input, output) = (tokio::io::stdin(), tokio::io::stdout());
    tokio::spawn(stop_on_signal(app.lifecycle.clone()));
    let served = crate::stdio::serve(Arc::new(app.tools.clone()), caller, input, output, app.lifecycle.clone()).await;
    app.stop().await?;
    Ok(served?)
}
