//! `omniforge secret`: set, list and delete secrets on a data directory, and replace the key that opens them; also beside a
//! running server.

use std::io::{IsTerminal as _, Read as _, Write as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use serde_json::json;

use super::{plain, runtime};
use crate::auth::Auth;
use crate::clock::Clock;
use crate::config::{KeySource, Options, Settings};
use crate::lifecycle::private_dir;
use crate::model::{Caller, Scope, Scopes};
use crate::store::{AuditEntry, Store};
use crate::trust::{OperatorKey, Secrets, ServerKey};

/// What to do with secrets.
#[derive(Debug, clap::Subcommand)]
pub enum Command {
    /// Set a secret; its value is read from standard input, or asked for
    Set(Set),
    /// List the secrets, without their values
    List(List),
    /// Delete a secret
    Delete(Delete),
    /// Replace the key that opens approvals and secrets
    RotateKey(RotateKey),
}

/// A value to keep.
#[derive(Debug, clap::Args)]
pub struct Set {
    /// Its name: that of the variable that a run with the grant gets
    name: String,
    /// The only hosts that a run with it may reach, such as api.example.com or *.example.org:8443
    #[arg(long = "host", value_name = "HOST")]
    hosts: Vec<String>,
    #[command(flatten)]
    place: Place,
}

/// Every secret.
#[derive(Debug, clap::Args)]
pub struct List {
    /// Answer in JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    place: Place,
}

/// A secret to forget.
#[derive(Debug, clap::Args)]
pub struct Delete {
    /// Its name
    name: String,
    #[command(flatten)]
    place: Place,
}

/// Another key.
#[derive(Debug, clap::Args)]
pub struct RotateKey {
    /// The file of the new key, made where there is none; needed where the key is not in the data directory
    #[arg(long, value_name = "FILE")]
    new_key_file: Option<PathBuf>,
    /// Forget what other keys than the present one open
    #[arg(long, conflicts_with = "new_key_file")]
    finish: bool,
    #[command(flatten)]
    place: Place,
}

/// Which data directory, and which key.
#[derive(Debug, clap::Args)]
pub struct Place {
    /// Where everything is kept [default: $XDG_DATA_HOME/omniforge]
    #[arg(long, env = "OMNIFORGE_DATA_DIR", value_name = "DIR")]
    data_dir: Option<PathBuf>,
    /// The key's file [default: $OMNIFORGE_KEY, else `server.key` in the data directory]
    #[arg(long, env = "OMNIFORGE_KEY_FILE", value_name = "FILE")]
    key_file: Option<PathBuf>,
}

/// A data directory, as the person at its machine.
struct Opened {
    store: Store,
    caller: Caller,
    operator: OperatorKey,
    source: KeySource,
    data_dir: PathBuf,
}

impl Place {
    async fn open(self) -> anyhow::Result<Opened> {
        let options = Options { data_dir: self.data_dir, key_file: self.key_file, ..Options::default() };
        let Settings { data_dir, key: source, .. } = Settings::resolve(options)?;
        private_dir(&data_dir)?;
        let operator = OperatorKey::open(&source, &data_dir)?;
        let store = Store::open(&data_dir, Clock::system()).await?;
        let caller = Auth::owner_at(&store, Scopes::of(&[Scope::Admin])).await?;
        Ok(Opened { store, caller, operator, source, data_dir })
    }
}

impl Opened {
    async fn secrets(&self) -> anyhow::Result<Secrets> {
        Ok(Secrets::new(self.store.clone(), &ServerKey::open_as_before(&self.store, &self.operator).await?))
    }
}

/// Does what was asked.
///
/// # Errors
/// What was wrong and what would be right.
pub fn run(command: Command) -> anyhow::Result<()> {
    runtime()?.block_on(async {
        match command {
            Command::Set(set) => self::set(set).await,
            Command::List(list) => self::list(list).await,
            Command::Delete(delete) => self::delete(delete).await,
            Command::RotateKey(rotate) => rotate_key(rotate).await,
        }
    })
}

async fn set(set: Set) -> anyhow::Result<()> {
    let opened = set.place.open().await?;
    let value = value(&set.name)?;
    opened.secrets().await?.set(&opened.caller, &set.name, &value, &set.hosts).await?;
    opened.store.close().await?;
    println!("Set. Runs of approved versions that ask for {} get it from now on.", set.name);
    Ok(())
}

/// The value: what is piped in, without the line's end; else what the person types, unseen.
fn value(name: &str) -> anyhow::Result<String> {
    let mut text = String::new();
    if std::io::stdin().is_terminal() {
        print!("Value of {name} (not shown): ");
        std::io::stdout().flush()?;
        text = super::unseen::line().context("cannot read the value")?;
        println!();
    } else {
        std::io::stdin().take(1 << 20).read_to_string(&mut text).context("the value on standard input is no text")?;
    }
    let value = text.strip_suffix('\n').unwrap_or(&text);
    Ok(value.strip_suffix('\r').unwrap_or(value).to_owned())
}

async fn list(list: List) -> anyhow::Result<()> {
    let opened = list.place.open().await?;
    let secrets = opened.secrets().await?.list(&opened.caller).await?;
    opened.store.close().await?;
    if list.json {
        println!("{}", json!(secrets));
        return Ok(());
    }
    for secret in &secrets {
        let hosts = if secret.hosts.is_empty() { "any host".to_owned() } else { secret.hosts.join(", ") };
        println!("{:32}  for {}", secret.name, plain(&hosts));
    }
    if secrets.is_empty() {
        println!("There are no secrets. `omniforge secret set NAME` sets one.");
    }
    Ok(())
}

async fn delete(delete: Delete) -> anyhow::Result<()> {
    let opened = delete.place.open().await?;
    let deleted = opened.secrets().await?.delete(&opened.caller, &delete.name).await?;
    opened.store.close().await?;
    if !deleted {
        bail!("there is no secret `{}`; `omniforge secret list` shows those there are", plain(&delete.name));
    }
    println!("Deleted.");
    Ok(())
}

/// At every moment one of the two keys opens everything: first the new one seals the server's key too, then it takes the old
/// one's place, and only then is what the old one sealed forgotten.
async fn rotate_key(rotate: RotateKey) -> anyhow::Result<()> {
    let opened = rotate.place.open().await?;
    let key = ServerKey::open_as_before(&opened.store, &opened.operator).await?;
    let said = match (&opened.source, rotate.new_key_file) {
        _ if rotate.finish => {
            let outdated = ServerKey::outdated(&opened.store, &opened.operator).await?;
            forget(&opened, &outdated.iter().map(|key| key.id.as_str()).collect::<Vec<_>>()).await?;
            format!("Forgotten: {} key(s) other than the present one open nothing here any more.", outdated.len())
        }
        (_, Some(file)) => {
            key.seal_anew(&opened.store, &OperatorKey::open_or_create(&file)?).await?;
            format!(
                "The key in {} opens this data directory too. Start the servers with it, then run `omniforge secret \
                 rotate-key --finish` with it.",
                file.display()
            )
        }
        (KeySource::DataDirectory, None) => replace(&opened, &key).await?,
        (KeySource::File(_) | KeySource::Text(_), None) => {
            bail!("the key is not in the data directory; name the file of the new one: --new-key-file FILE")
        }
    };
    record(&opened, rotate.finish).await?;
    opened.store.close().await?;
    println!("{said}");
    Ok(())
}

async fn replace(opened: &Opened, key: &ServerKey) -> anyhow::Result<String> {
    let (new, place) = OperatorKey::prepare_next(&opened.data_dir)?;
    let old = key.seal_anew(&opened.store, &new).await?;
    place.put()?;
    forget(opened, &old.iter().map(|key| key.id.as_str()).collect::<Vec<_>>()).await?;
    let file: &Path = &opened.data_dir.join("server.key");
    Ok(format!(
        "Replaced: {} is the new key. Servers that run go on; put the new key into your backups.",
        file.display()
    ))
}

async fn forget(opened: &Opened, ids: &[&str]) -> anyhow::Result<()> {
    for id in ids {
        opened.store.forget_sealed_key(id).await?;
    }
    Ok(())
}

async fn record(opened: &Opened, finish: bool) -> anyhow::Result<()> {
    let entry = AuditEntry {
        principal: Some(opened.caller.principal.clone()),
        source: opened.caller.source.clone(),
        action: "secret.rotate_key".to_owned(),
        subject: "server key".to_owned(),
        detail: json!({"finish": finish}),
        outcome: "ok".to_owned(),
        ..AuditEntry::default()
    };
    opened.store.append_audit(&entry).await?;
    Ok(())
}
