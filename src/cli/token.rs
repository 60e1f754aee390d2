//! `omniforge token`: make, list and revoke bearer tokens on a data directory, also beside a running server.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{anyhow, bail};
use serde_json::json;

use super::{plain, runtime};
use crate::auth::{Auth, Lifetime, TokenRequest};
use crate::clock::{Clock, rfc3339};
use crate::config::{Options, Settings};
use crate::lifecycle::private_dir;
use crate::model::{Scope, Scopes, Timestamp};
use crate::store::{Store, Token};
use crate::trust::{CREDENTIALS, OperatorKey, ServerKey};

/// What to do with tokens.
#[derive(Debug, clap::Subcommand)]
pub enum Command {
    /// Make a token and print it, this once
    Create(Create),
    /// List the tokens
    List(List),
    /// Revoke a token for good
    Revoke(Revoke),
}

/// A new token.
#[derive(Debug, clap::Args)]
pub struct Create {
    /// A name to tell it from others
    #[arg(long)]
    name: String,
    /// What it allows: call, author, approve, admin
    #[arg(long, default_value = "call,author", value_name = "SCOPES")]
    scope: String,
    /// From when on it is refused, such as 12h or 30d [default: never]
    #[arg(long, value_name = "TIME")]
    expires: Option<String>,
    /// The toolset that it is limited to: it sees, saves and calls what is inside, and nothing else
    #[arg(long, value_name = "NAME")]
    toolset: Option<String>,
    #[command(flatten)]
    place: Place,
}

/// Which data directory, and how to answer.
#[derive(Debug, clap::Args)]
pub struct Place {
    /// Where everything is kept [default: $XDG_DATA_HOME/omniforge]
    #[arg(long, env = "OMNIFORGE_DATA_DIR", value_name = "DIR")]
    data_dir: Option<PathBuf>,
    /// The key's file [default: $OMNIFORGE_KEY, else `server.key` in the data directory]
    #[arg(long, env = "OMNIFORGE_KEY_FILE", value_name = "FILE")]
    key_file: Option<PathBuf>,
    /// Answer in JSON
    #[arg(long)]
    pub json: bool,
}

impl Place {
    /// The store of the data directory, with the key of its audit log. Another key than the servers' is refused: what it
    /// wrote would count as forged.
    pub async fn store(&self) -> anyhow::Result<Store> {
        Ok(self.open().await?.0)
    }

    async fn open(&self) -> anyhow::Result<(Store, ServerKey)> {
        let options =
            Options { data_dir: self.data_dir.clone(), key_file: self.key_file.clone(), ..Options::default() };
        let Settings { data_dir, key, .. } = Settings::resolve(options)?;
        private_dir(&data_dir)?;
        let operator = OperatorKey::open(&key, &data_dir)?;
        let store = Store::open(&data_dir, Clock::system()).await?;
        let key = ServerKey::open_as_before(&store, &operator).await?;
        Ok((store, key))
    }
}

/// All tokens.
#[derive(Debug, clap::Args)]
pub struct List {
    #[command(flatten)]
    place: Place,
}

/// One token.
#[derive(Debug, clap::Args)]
pub struct Revoke {
    /// The token's id: what stands between `ofk_` and the next `_`
    id: String,
    #[command(flatten)]
    place: Place,
}

/// Does what was asked.
///
/// # Errors
/// What was wrong and what would be right.
pub fn run(command: Command) -> anyhow::Result<()> {
    runtime()?.block_on(async {
        match command {
            Command::Create(create) => self::create(create).await,
            Command::List(list) => self::list(list).await,
            Command::Revoke(revoke) => self::revoke(revoke).await,
        }
    })
}

async fn open(place: &Place) -> anyhow::Result<(Store, Auth)> {
    let (store, key) = place.open().await?;
    let auth = Auth::new(store.clone(), key.derive(CREDENTIALS)).await?;
    Ok((store, auth))
}

async fn create(create: Create) -> anyhow::Result<()> {
    let scopes = super::scopes(&create.scope)?;
    let lifetime = create.expires.as_deref().map(duration).transpose()?;
    let (store, auth) = open(&create.place).await?;
    let request = TokenRequest {
        principal: auth.owner().id.clone(),
        name: create.name,
        scopes,
        expires_at: lifetime.map(|lifetime| store.clock().later(lifetime)),
        lifetime: Lifetime::Stored,
        toolset: create.toolset,
    };
    let (token, text) = auth.create_token(&auth.owner_caller(scopes), request).await?;
    store.close().await?;
    if create.place.json {
        println!(
            "{}",
            json!({"token": text, "id": token.id, "name": token.name, "scopes": token.scopes.to_string(),
                "toolset": token.toolset})
        );
    } else {
        println!("{text}");
    }
    Ok(())
}

async fn list(list: List) -> anyhow::Result<()> {
    let (store, auth) = open(&list.place).await?;
    let tokens = auth.list_tokens(None).await?;
    store.close().await?;
    let now = store.clock().now();
    let state = |token: &Token| match token {
        Token { revoked_at: Some(_), .. } => "revoked",
        Token { expires_at: Some(at), .. } if *at <= now => "expired",
        _ => "valid",
    };
    if list.place.json {
        let rows: Vec<_> = tokens
            .iter()
            .map(|(token, _)| {
                json!({"id": token.id, "name": token.name, "scopes": token.scopes.to_string(), "state": state(token),
                    "created_at": token.created_at, "expires_at": token.expires_at,
                    "last_used_at": token.last_used_at})
            })
            .collect();
        println!("{}", json!(rows));
        return Ok(());
    }
    for (token, _) in &tokens {
        let time = |at: Option<Timestamp>| at.map_or("never".to_owned(), rfc3339);
        println!("{}  {:8}  {}  {}", token.id, state(token), token.scopes, plain(&token.name));
        println!("    expires {}, last used {}", time(token.expires_at), time(token.last_used_at));
    }
    if tokens.is_empty() {
        println!("There are no tokens. `omniforge token create --name NAME` makes one.");
    }
    Ok(())
}

async fn revoke(revoke: Revoke) -> anyhow::Result<()> {
    let (store, auth) = open(&revoke.place).await?;
    let revoked = auth.revoke_token(&auth.owner_caller(Scopes::of(&[Scope::Admin])), &revoke.id).await?;
    store.close().await?;
    if !revoked {
        bail!("there is no token {}; `omniforge token list` shows those there are", revoke.id);
    }
    println!("Revoked. Running servers refuse it within a second, and end what is open under it.");
    Ok(())
}

/// Parses `90s`, `15m`, `12h`, `30d`.
fn duration(text: &str) -> anyhow::Result<Duration> {
    let wrong = || anyhow!("`--expires {text}` is no time; write a number and s, m, h or d, such as 30d");
    let unit = text.chars().next_back().ok_or_else(wrong)?;
    let number = text.strip_suffix(unit).unwrap_or_default();
    let seconds = match unit {
        's' => 1,
        'm' => 60,
        'h' => 3600,
        'd' => 86_400,
        _ => return Err(wrong()),
    };
    let number: u64 = number.parse().map_err(|_| wrong())?;
    number.checked_mul(seconds).filter(|seconds| *seconds > 0).map(Duration::from_secs).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_a_number_and_a_unit() {
        assert_eq!(duration("30d").unwrap(), Duration::from_secs(30 * 86_400));
        assert_eq!(duration("90s").unwrap(), Duration::from_secs(90));
        for wrong in ["", "d", "30", "0d", "-1h", "1y", "ü"] {
            assert!(duration(wrong).is_err(), "{wrong}");
        }
    }
}
