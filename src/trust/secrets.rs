//! Secrets: sealed at rest, given to runs that were granted them, shown to nobody.

use http::StatusCode;
use serde::Serialize;
use serde_json::json;

use super::{KeyError, Sealer, ServerKey};
use crate::model::{Caller, Network, NetworkEntry, PrincipalId, Scope, SecretNameError, Timestamp, check_secret_name};
use crate::store::{AuditEntry, SealedSecret, Store, StoreError};

/// The longest value.
const VALUE_BYTES: usize = 16 << 10;
/// The most hosts of one.
const HOSTS: usize = 64;

/// The secrets of a store.
#[derive(Clone, Debug)]
pub struct Secrets {
    store: Store,
    sealer: Sealer,
}

/// What anybody may see of a secret.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SecretSummary {
    /// Its name: that of the variable.
    pub name: String,
    /// The only hosts that a run with it may reach; empty for any.
    pub hosts: Vec<String>,
    /// When it was set first.
    pub created_at: Timestamp,
    /// When it was set last.
    pub updated_at: Timestamp,
    /// By whom.
    pub updated_by: PrincipalId,
}

/// Why there is no secret, or no run with it.
#[derive(Debug, thiserror::Error)]
pub enum SecretError {
    /// The caller may not.
    #[error("this needs the scope `admin`, which the credential does not carry")]
    Forbidden,
    /// It can't have that name.
    #[error("`name`: {0}")]
    Name(#[from] SecretNameError),
    /// It can't have that value, or be for that host.
    #[error("{0}")]
    Wrong(String),
    /// None is set.
    #[error(
        "the secret `{0}` is not set; an administrator sets it with `omniforge secret set {0}` or on the page Secrets"
    )]
    NotSet(String),
    /// Another key sealed it.
    #[error("the secret `{0}` can't be opened with this server's key; put the key back, or set the secret again")]
    Sealed(String),
    /// The version may reach more than the secret is for.
    #[error("the secret `{name}` is for {hosts}, but the version may also reach {entry}")]
    TooFar {
        /// The secret.
        name: String,
        /// Its hosts.
        hosts: String,
        /// An entry of the version's network beyond them.
        entry: String,
    },
    /// The system gives no random bytes.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl SecretError {
    /// The HTTP status that fits.
    pub fn status(&self) -> StatusCode {
        match self {
            Self::Forbidden => StatusCode::FORBIDDEN,
            Self::Name(_) | Self::Wrong(_) => StatusCode::BAD_REQUEST,
            Self::NotSet(_) => StatusCode::NOT_FOUND,
            Self::Sealed(_) | Self::TooFar { .. } => StatusCode::CONFLICT,
            Self::Key(_) | Self::Store(_) => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }
}

impl Secrets {
    /// The secrets in this store, sealed with this key.
    pub fn new(store: Store, key: &ServerKey) -> Self {
        Self { store, sealer: key.sealer("secret") }
    }

    /// Keeps a secret, in place of the one of that name.
    ///
    /// # Errors
    /// [`SecretError`]; a refusal is recorded.
    pub async fn set(&self, caller: &Caller, name: &str, value: &str, hosts: &[String]) -> Result<(), SecretError> {
        let done = self.try_set(caller, name, value, hosts).await;
        self.record(caller, "secret.set", name, (json!({"hosts": hosts}), &done)).await?;
        done
    }

    async fn try_set(&self, caller: &Caller, name: &str, value: &str, hosts: &[String]) -> Result<(), SecretError> {
        allowed(caller)?;
        check_secret_name(name)?;
        let wrong = |text: String| Err(SecretError::Wrong(text));
        if value.is_empty() || value.len() > VALUE_BYTES || value.contains('\0') {
            return wrong(format!("`value`: it has 1 to {VALUE_BYTES} bytes, none of them 0"));
        }
        if hosts.len() > HOSTS {
            return wrong(format!("`hosts`: at most {HOSTS} are allowed"));
        }
        let hosts = match Network::parse(hosts) {
            Ok(Network::Full) => return wrong("`hosts`: leave it out for a secret that is for any host".to_owned()),
            Ok(network) => network.entries(),
            Err(error) => return wrong(format!("`hosts`: {error}")),
        };
        let sealed = self.sealer.seal(value.as_bytes(), name.as_bytes())?;
        self.store.set_secret(name, &sealed, &hosts, &caller.principal).await?;
        Ok(())
    }

    /// Forgets a secret; says whether there was one.
    ///
    /// # Errors
    /// [`SecretError`]; a refusal is recorded.
    pub async fn delete(&self, caller: &Caller, name: &str) -> Result<bool, SecretError> {
        let done = match allowed(caller) {
            Ok(()) => self.store.delete_secret(name).await.map_err(SecretError::from),
            Err(refused) => Err(refused),
        };
        if !matches!(done, Ok(false)) {
            self.record(caller, "secret.delete", name, (json!({}), &done)).await?;
        }
        done
    }

    /// What there is, without values: for those who may approve of its use too.
    ///
    /// # Errors
    /// [`SecretError`].
    pub async fn list(&self, caller: &Caller) -> Result<Vec<SecretSummary>, SecretError> {
        if !caller.scopes.has(Scope::Approve) {
            allowed(caller)?;
        }
        let secrets = self.store.sealed_secrets().await?;
        let summary = |secret: SealedSecret| SecretSummary {
            name: secret.name,
            hosts: secret.hosts,
            created_at: secret.created_at,
            updated_at: secret.updated_at,
            updated_by: secret.updated_by,
        };
        Ok(secrets.into_iter().map(summary).collect())
    }

    /// The values for a run with these grants: name and value.
    ///
    /// # Errors
    /// [`SecretError`] names the first one that it can't have.
    pub async fn values(&self, names: &[String], network: &[String]) -> Result<Vec<(String, String)>, SecretError> {
        if names.is_empty() {
            return Ok(Vec::new());
        }
        let secrets = self.store.sealed_secrets().await?;
        let value = |name: &String| {
            let secret = secrets.iter().find(|secret| secret.name == *name);
            let secret = secret.ok_or_else(|| SecretError::NotSet(name.clone()))?;
            within(secret, network)?;
            let value =
                self.sealer.open(&secret.sealed, name.as_bytes()).and_then(|bytes| String::from_utf8(bytes).ok());
            Ok((name.clone(), value.ok_or_else(|| SecretError::Sealed(name.clone()))?))
        };
        names.iter().map(value).collect()
    }

    async fn record<T>(
        &self,
        caller: &Caller,
        action: &str,
        subject: &str,
        (detail, done): (serde_json::Value, &Result<T, SecretError>),
    ) -> Result<(), StoreError> {
        let outcome = match done {
            Ok(_) => "ok",
            Err(SecretError::Key(_) | SecretError::Store(_)) => "failed",
            Err(_) => "refused",
        };
        let entry = AuditEntry {
            principal: Some(caller.principal.clone()),
            token: caller.token_id.clone(),
            source: caller.source.clone(),
            action: action.to_owned(),
            // Who gets the order wrong gives the value for the name.
            subject: if check_secret_name(subject).is_ok() { subject.to_owned() } else { "(no name)".to_owned() },
            detail,
            outcome: outcome.to_owned(),
            ..AuditEntry::default()
        };
        self.store.append_audit(&entry).await.map(drop)
    }
}

fn allowed(caller: &Caller) -> Result<(), SecretError> {
    if caller.scopes.has(Scope::Admin) { Ok(()) } else { Err(SecretError::Forbidden) }
}

/// Whether all that a version may reach is among the hosts that a secret is for.
fn within(secret: &SealedSecret, network: &[String]) -> Result<(), SecretError> {
    if secret.hosts.is_empty() {
        return Ok(());
    }
    let parse = |entries: &[String]| -> Vec<NetworkEntry> {
        entries.iter().filter_map(|entry| NetworkEntry::parse(entry).ok()).collect()
    };
    let hosts = parse(&secret.hosts);
    let beyond = network.iter().find(|entry| match NetworkEntry::parse(entry) {
        Ok(entry) => !hosts.iter().any(|host| entry.is_within(host)),
        // `full`.
        Err(_) => true,
    });
    match beyond {
        None => Ok(()),
        Some(entry) => {
            Err(SecretError::TooFar { name: secret.name.clone(), hosts: secret.hosts.join(", "), entry: entry.clone() })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secret(hosts: &[&str]) -> SealedSecret {
        SealedSecret {
            name: "KEY".into(),
            sealed: String::new(),
            hosts: hosts.iter().map(|host| (*host).to_owned()).collect(),
            created_at: Timestamp(0),
            updated_at: Timestamp(0),
            updated_by: PrincipalId("p".into()),
        }
    }

    #[test]
    fn a_secret_for_hosts_goes_no_further() {
        let fits = |hosts: &[&str], network: &[&str]| {
            let network: Vec<String> = network.iter().map(|entry| (*entry).to_owned()).collect();
            within(&secret(hosts), &network).is_ok()
        };
        assert!(fits(&[], &["full"]) && fits(&["a.example"], &[]));
        assert!(fits(&["a.example"], &["a.example", "a.example:443", "a.example:8443"]));
        assert!(fits(&["*.a.example"], &["x.a.example", "*.b.a.example", "*.a.example"]));
        assert!(fits(&["a.example:8443"], &["a.example:8443"]));
        for (hosts, network) in [
            (&["a.example"][..], &["full"][..]),
            (&["a.example"], &["a.example", "b.example"]),
            (&["x.a.example"], &["*.a.example"]),
            (&["*.a.example"], &["a.example"]),
            (&["a.example:8443"], &["a.example"]),
            (&["a.example:8443"], &["a.example:443"]),
            (&["192.0.2.1"], &["192.0.2.2"]),
        ] {
            assert!(!fits(hosts, network), "{hosts:?} {network:?}");
        }
    }
}
