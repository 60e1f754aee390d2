//! `omniforge audit`: read the log of changes and refusals, and see whether it is whole; also beside a running server.

use anyhow::{anyhow, bail};
use serde_json::json;

use super::token::Place;
use super::{plain, runtime};
use crate::clock::rfc3339;
use crate::store::{AuditFilter, AuditRow, NotedHead};

/// What to do with the audit log.
#[derive(Debug, clap::Subcommand)]
pub enum Command {
    /// List entries, newest first
    List(List),
    /// See whether the log is what the server wrote; exit status 1 names the first entry that is not
    Verify(Verify),
}

/// Which entries.
#[derive(Debug, clap::Args)]
pub struct List {
    /// Only this action, or those that begin with it and a dot, such as `tool` or `tool.delete`
    #[arg(long)]
    action: Option<String>,
    /// Only what was done to this, such as a tool's name
    #[arg(long)]
    subject: Option<String>,
    /// How many
    #[arg(long, default_value_t = 50, value_name = "N")]
    limit: u32,
    #[command(flatten)]
    place: Place,
}

/// A look along the whole log.
#[derive(Debug, clap::Args)]
pub struct Verify {
    /// What an earlier `audit verify` printed: the log must still hold that
    #[arg(long, value_name = "COUNT:HEAD")]
    noted: Option<String>,
    #[command(flatten)]
    place: Place,
}

/// Does what was asked.
///
/// # Errors
/// What was wrong and what would be right; for `verify`, what is wrong with the log.
pub fn run(command: Command) -> anyhow::Result<()> {
    runtime()?.block_on(async {
        match command {
            Command::List(list) => self::list(list).await,
            Command::Verify(verify) => self::verify(verify).await,
        }
    })
}

async fn list(list: List) -> anyhow::Result<()> {
    let store = list.place.store().await?;
    let filter = AuditFilter { action: list.action, subject: list.subject, ..AuditFilter::default() };
    let rows = store.list_audit(&filter, list.limit).await?;
    let principals = store.list_principals().await?;
    store.close().await?;
    if list.place.json {
        println!("{}", json!(rows.iter().map(as_json).collect::<Vec<_>>()));
        return Ok(());
    }
    let name = |row: &AuditRow| {
        let id = row.entry.principal.as_ref();
        let named = principals.iter().find(|principal| Some(&principal.id) == id).map(|found| found.name.clone());
        named.or(id.map(|id| id.0.clone())).unwrap_or("-".to_owned())
    };
    for row in &rows {
        let entry = &row.entry;
        let source = entry.source.as_deref().unwrap_or("-");
        let line = format!(
            "{:6}  {}  {:16}  {:8}  {} from {source}  {}  {}",
            row.number,
            rfc3339(row.at),
            entry.action,
            entry.outcome,
            name(row),
            entry.subject,
            entry.detail
        );
        println!("{}", plain(&line).replace('\n', " "));
    }
    if rows.is_empty() {
        println!("There are no such entries.");
    }
    Ok(())
}

fn as_json(row: &AuditRow) -> serde_json::Value {
    let entry = &row.entry;
    json!({"number": row.number, "id": row.id, "at": rfc3339(row.at), "principal": entry.principal,
        "token": entry.token, "source": entry.source, "action": entry.action, "subject": entry.subject,
        "detail": entry.detail, "before": entry.before, "fingerprint": entry.fingerprint, "outcome": entry.outcome})
}

async fn verify(verify: Verify) -> anyhow::Result<()> {
    let noted = verify.noted.as_deref().map(noted).transpose()?;
    let store = verify.place.store().await?;
    let verified = store.verify_audit(noted.as_ref()).await?;
    store.close().await?;
    let head = match verified {
        Ok(head) => head,
        Err(fault) => {
            if verify.place.json {
                println!("{}", json!({"whole": false, "number": fault.number, "problem": fault.problem}));
            }
            bail!("the audit log is not whole. Entry {}: {}", fault.number, fault.problem);
        }
    };
    if verify.place.json {
        let state = json!({"whole": true, "count": head.count, "head": head.head, "pruned": head.pruned,
            "adopted": head.adopted});
        println!("{state}");
        return Ok(());
    }
    println!("The audit log is whole.\ncount  {}\nhead   {}", head.count, head.head);
    if head.pruned > 0 {
        println!("The first {} entries were pruned.", head.pruned);
    }
    if head.adopted > 0 {
        println!("The first {} entries are older than the chain: they were taken in as they stood then.", head.adopted);
    }
    println!("Note `{}:{}` elsewhere: `--noted` then tells this log from an older copy of it.", head.count, head.head);
    Ok(())
}

/// Parses what `verify` printed.
fn noted(text: &str) -> anyhow::Result<NotedHead> {
    let wrong = || anyhow!("`--noted {text}` is not what `audit verify` prints: COUNT:HEAD, with 64 hex digits");
    let (count, head) = text.split_once(':').ok_or_else(wrong)?;
    let count = count.parse().map_err(|_| wrong())?;
    let is_hex = head.len() == 64 && head.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_hex.then(|| NotedHead { count, head: head.to_ascii_lowercase() }).ok_or_else(wrong)
}
