//! `omniforge approval`: see what waits for a person, approve of it, take that back; also beside a running server.

use std::io::{BufRead as _, IsTerminal as _, Write as _};

use anyhow::bail;
use serde_json::json;

use super::{plain, runtime};
use crate::app;
use crate::auth::Auth;
use crate::clock::Clock;
use crate::config::{Options, Settings};
use crate::lifecycle::private_dir;
use crate::model::{Caller, Scope, Scopes};
use crate::store::{Serving, Store};
use crate::trust::{Approvals, ApproveRequest, OperatorKey, Review, ServerKey};

/// What to do with approvals.
#[derive(Debug, clap::Subcommand)]
pub enum Command {
    /// List what waits for a person
    List(List),
    /// Show what the newest version of something asks for, and how it differs from what was approved
    Show(Show),
    /// Approve of the newest version, after showing it
    Approve(Approve),
    /// Take an approval back
    Revoke(Revoke),
}

/// Everything that waits.
#[derive(Debug, clap::Args)]
pub struct List {
    /// Answer in JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    options: Options,
}

/// One thing that may wait.
#[derive(Debug, clap::Args)]
pub struct Show {
    /// A tool's name, `resource:URI`, `prompt:NAME`, or an id
    name: String,
    /// Answer in JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    options: Options,
}

/// A decision.
#[derive(Debug, clap::Args)]
pub struct Approve {
    /// A tool's name, `resource:URI`, `prompt:NAME`, or an id
    name: String,
    /// The fingerprint that you looked at: nobody asks you then
    #[arg(long)]
    fingerprint: Option<String>,
    /// A note for the history
    #[arg(long, default_value = "")]
    note: String,
    #[command(flatten)]
    options: Options,
}

/// A decision to take back.
#[derive(Debug, clap::Args)]
pub struct Revoke {
    /// A tool's name, `resource:URI`, `prompt:NAME`, or an id
    name: String,
    #[command(flatten)]
    options: Options,
}

/// A data directory, as the person at its machine.
struct Place {
    store: Store,
    approvals: Approvals,
    caller: Caller,
}

impl Place {
    async fn open(options: Options) -> anyhow::Result<Self> {
        let settings = Settings::resolve(options)?;
        private_dir(&settings.data_dir)?;
        let operator = OperatorKey::open(&settings.key, &settings.data_dir)?;
        let store = Store::open(&settings.data_dir, Clock::system()).await?;
        let key = ServerKey::open_as_before(&store, &operator).await?;
        let approvals = app::approvals(&settings, &store, &key);
        let caller = Auth::owner_at(&store, Scopes::of(&[Scope::Approve, Scope::Admin])).await?;
        Ok(Self { caller, store, approvals })
    }
}

/// Does what was asked.
///
/// # Errors
/// What was wrong and what would be right.
pub fn run(command: Command) -> anyhow::Result<()> {
    runtime()?.block_on(async {
        match command {
            Command::List(list) => self::list(list).await,
            Command::Show(show) => self::show(show).await,
            Command::Approve(approve) => self::approve(approve).await,
            Command::Revoke(revoke) => self::revoke(revoke).await,
        }
    })
}

async fn list(list: List) -> anyhow::Result<()> {
    let place = Place::open(list.options).await?;
    let waiting = place.approvals.waiting().await?;
    place.store.close().await?;
    if list.json {
        println!("{}", json!(waiting));
        return Ok(());
    }
    for entry in &waiting {
        let meanwhile = entry.serving_version.map_or("none serves".to_owned(), |n| format!("version {n} serves"));
        println!("{} {}, version {} ({meanwhile})", entry.kind, plain(&entry.name), entry.version);
        for ask in &entry.asks {
            println!("    {}", plain(ask));
        }
    }
    if waiting.is_empty() {
        println!("Nothing waits for a person.");
    }
    Ok(())
}

async fn show(show: Show) -> anyhow::Result<()> {
    let place = Place::open(show.options).await?;
    let review = place.approvals.review(&place.approvals.find(&show.name).await?).await?;
    place.store.close().await?;
    if show.json {
        println!("{}", json!(review));
    } else {
        print(&review);
    }
    Ok(())
}

fn print(review: &Review) {
    let entry = &review.entry;
    println!("{} {}, version {}", entry.kind, plain(&entry.name), entry.version);
    println!("fingerprint {}", review.fingerprint);
    for asked in &review.reach {
        println!("  {} {}", if asked.new { "new:" } else { "    " }, plain(&asked.what));
    }
    if review.reach.is_empty() {
        println!("  It asks for no reach.");
    }
    match review.base_version {
        Some(base) => println!("\nThe difference to version {base}:\n{}", plain(&review.diff)),
        None => println!("\nThe whole of it:\n{}", plain(&review.diff)),
    }
    println!("{}", if review.waits { "It waits for a person." } else { "It needs no approval now, or has one." });
}

async fn approve(approve: Approve) -> anyhow::Result<()> {
    let place = Place::open(approve.options).await?;
    let reviewed = place.approvals.find(&approve.name).await?;
    let review = place.approvals.review(&reviewed).await?;
    let fingerprint = match approve.fingerprint {
        Some(fingerprint) => fingerprint,
        None => {
            print(&review);
            asked(&review)?;
            review.fingerprint.clone()
        }
    };
    let version = review.entry.version;
    let request = ApproveRequest { version, fingerprint, note: approve.note };
    // A call installs what is missing; a server that runs installed it when the version was saved.
    place.approvals.approve(&place.caller, &reviewed, request, Serving::Now).await?;
    place.store.close().await?;
    println!("Approved: version {version} of {} serves.", plain(reviewed.name()));
    Ok(())
}

/// Asks the person at the terminal.
fn asked(review: &Review) -> anyhow::Result<()> {
    if !std::io::stdin().is_terminal() {
        bail!("nobody can be asked here; look at it with `approval show`, then give `--fingerprint` as shown there");
    }
    print!("Approve of version {}? Type yes: ", review.entry.version);
    std::io::stdout().flush()?;
    let mut answer = String::new();
    std::io::stdin().lock().read_line(&mut answer)?;
    if answer.trim() != "yes" {
        bail!("not approved");
    }
    Ok(())
}

async fn revoke(revoke: Revoke) -> anyhow::Result<()> {
    let place = Place::open(revoke.options).await?;
    let reviewed = place.approvals.find(&revoke.name).await?;
    let revoked = place.approvals.revoke(&place.caller, &reviewed.of(), reviewed.name()).await?;
    place.store.close().await?;
    match revoked {
        Some(approval) => println!("Taken back: version {} no longer counts as approved.", approval.version),
        None => bail!("`{}` has no approval that is active", plain(&revoke.name)),
    }
    Ok(())
}
