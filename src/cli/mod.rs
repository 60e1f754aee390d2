//! The command line: what was asked, and the exit status (0 done, 1 failed, 2 not understood).

mod approval;
mod audit;
mod content_folder;
mod doctor;
mod folder;
mod push;
mod secret;
mod stdio;
mod token;
mod toolset;
mod unseen;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::app::{self, ServeOutput};
use crate::config::{Options, Settings};
use crate::model::{Scopes, visible};
use crate::runner::Spawner;
use crate::telemetry;

/// OmniForge turns scripts into tools that every MCP client can call, safely.
///
/// Exit status: 0 done, 1 failed, 2 the command line was not understood.
#[derive(Debug, Parser)]
#[command(name = "omniforge", version, max_term_width = 100)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Serve MCP over HTTP, and the pages
    Serve(Serve),
    /// Serve MCP over standard input and output, as the principal `local`
    Stdio(stdio::Stdio),
    /// Tools
    #[command(subcommand)]
    Tool(Tool),
    /// What waits for a person, and what one has approved
    #[command(subcommand)]
    Approval(approval::Command),
    /// Secrets, and the key that opens them
    #[command(subcommand)]
    Secret(secret::Command),
    /// Bearer tokens
    #[command(subcommand)]
    Token(token::Command),
    /// Named groups of tools
    #[command(subcommand)]
    Toolset(toolset::Command),
    /// The log of every change and every refusal
    #[command(subcommand)]
    Audit(audit::Command),
    /// Say what this machine can enforce, and how to repair what it can't
    Doctor(doctor::Doctor),
}

#[derive(Debug, clap::Args)]
struct Serve {
    #[command(flatten)]
    options: Options,
    /// Print one line of JSON when the server accepts connections
    #[arg(long)]
    ready_json: bool,
}

#[derive(Debug, Subcommand)]
enum Tool {
    /// Save the tool folders in DIR
    Push(push::Push),
}

/// Runs the program and returns its exit status.
pub fn main() -> ExitCode {
    // Without a process-wide TLS provider the HTTP client can't be made; a second installation is no error.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let done = match Arguments::parse().command {
        Command::Serve(serve) => with_runner(serve.options, |settings, spawner| {
            let output = if serve.ready_json { ServeOutput::Json } else { ServeOutput::Text };
            app::serve(settings, spawner, output)
        }),
        Command::Stdio(stdio) => {
            let within = (stdio.scope, stdio.toolset);
            with_runner(stdio.options, move |settings, spawner| stdio::run(settings, spawner, within))
        }
        Command::Tool(Tool::Push(push)) => push::run(push),
        Command::Approval(command) => approval::run(command),
        Command::Secret(command) => secret::run(command),
        Command::Token(command) => token::run(command),
        Command::Toolset(command) => toolset::run(command),
        Command::Audit(command) => audit::run(command),
        Command::Doctor(doctor) => doctor::run(doctor),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("omniforge: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Resolves the settings, starts the spawner while this process is small and has one thread, then the async world.
fn with_runner<F, T>(options: Options, run: impl FnOnce(Settings, Spawner) -> F) -> anyhow::Result<T>
where
    F: Future<Output = anyhow::Result<T>>,
{
    let settings = Settings::resolve(options)?;
    let spawner = Spawner::start()?;
    telemetry::start(&settings.log);
    let runtime = runtime()?;
    let done = runtime.block_on(run(settings, spawner));
    // Everything of ours was waited for; a read of standard input can't be ended.
    runtime.shutdown_background();
    done
}

fn runtime() -> std::io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_multi_thread().enable_all().build()
}

/// The scopes that `--scope` names.
fn scopes(text: &str) -> anyhow::Result<Scopes> {
    Scopes::parse(text)
        .map_err(|word| anyhow::anyhow!("`--scope {text}`: `{word}` is no scope; use call, author, approve, admin"))
}

/// A text without control sequences, so that no tool's words can drive the terminal. Where a carriage return would begin a
/// line for an interpreter, one begins here; what else hides or reorders text is shown by its number.
fn plain(text: &str) -> String {
    let lines = text.replace("\r\n", "\n").replace('\r', "\n");
    visible(&lines.chars().filter(|c| !c.is_control() || matches!(c, '\n' | '\t')).collect::<String>())
}
