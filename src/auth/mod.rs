//! Who is calling: bearer tokens for programs, sign-in links and sessions for the browser.
//!
//! It says who somebody is and what their credential allows; what a scope is needed for is decided where the thing is
//! done. Secrets leave it once, when they are made; the store holds their hashes.

mod attempts;
mod error;
mod secret;
mod sign_in;
mod token;
mod uses;
mod watch;

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use moka::future::Cache;
use serde_json::json;

use crate::model::{Caller, PrincipalId, Scope, Scopes, Timestamp, ToolsetId};
use crate::store::{AuditEntry, Hash, Principal, PrincipalKind, Store, StoreError, Token};
use attempts::Attempts;
use secret::CredentialKey;
use uses::Uses;

pub use error::AuthError;
pub use sign_in::Session;
pub use token::{Lifetime, TokenRequest, shown_id};

/// The name of the person whose server it is.
pub const OWNER: &str = "owner";
/// The name of whoever starts the program over stdio.
pub const LOCAL: &str = "local";

/// How long a token is taken for good without [`Auth::watch`], which clears the cache with each revocation.
const CACHED_FOR: Duration = Duration::from_secs(5);
const CACHED_TOKENS: u64 = 10_000;

/// Tells who is calling. Clones share their state.
#[derive(Clone, Debug)]
pub struct Auth {
    store: Store,
    anonymous: bool,
    owner: Principal,
    local: Principal,
    first_start: bool,
    /// Tokens that die with the process, by id.
    ephemeral: Arc<Mutex<HashMap<String, Known>>>,
    /// Raised by each revocation. It is part of the cache's key, because an `invalidate` loses to a load in flight.
    generation: Arc<AtomicU64>,
    cache: Cache<(u64, Hash), Arc<Known>>,
    key: CredentialKey,
    uses: Uses,
    attempts: Attempts,
}

/// A token whose secret was checked, or will be against `secret_hash`.
#[derive(Clone, Debug)]
struct Known {
    token: Token,
    principal_name: String,
    secret_hash: Hash,
}

impl Auth {
    /// Requires credentials, whose hashes are keyed with `key`: the server's, for this purpose. Makes the principals `owner`
    /// and `local` when the store has none yet.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn new(store: Store, key: [u8; 32]) -> Result<Self, StoreError> {
        let (owner, first_start) = store.ensure_principal(OWNER, PrincipalKind::Person).await?;
        let (local, _) = store.ensure_principal(LOCAL, PrincipalKind::Local).await?;
        let cache = Cache::builder().max_capacity(CACHED_TOKENS).time_to_live(CACHED_FOR).build();
        Ok(Self {
            store,
            anonymous: false,
            owner,
            local,
            first_start,
            ephemeral: Arc::default(),
            generation: Arc::default(),
            cache,
            key: CredentialKey(key),
            uses: Uses::default(),
            attempts: Attempts::default(),
        })
    }

    /// Takes every request for the owner's, with the scopes `call author` (`--auth none`). What needs `approve` or
    /// `admin` still needs a session, so a sign-in link: anything on the machine can send a request without a
    /// credential, also a model with a shell, and approving waits for a person.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn anonymous(store: Store, key: [u8; 32]) -> Result<Self, StoreError> {
        Ok(Self { anonymous: true, ..Self::new(store, key).await? })
    }

    /// The owner, acting from the command line of the machine itself, where nothing else of this is needed.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn owner_at(store: &Store, scopes: Scopes) -> Result<Caller, StoreError> {
        let (owner, _) = store.ensure_principal(OWNER, PrincipalKind::Person).await?;
        Ok(caller(&owner, scopes).from_source(Some("cli")))
    }

    /// The principal of stdio, in the same way.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn local_at(store: &Store, scopes: Scopes) -> Result<Caller, StoreError> {
        let (local, _) = store.ensure_principal(LOCAL, PrincipalKind::Local).await?;
        Ok(caller(&local, scopes).from_source(Some("cli")))
    }

    /// Whether requests need no credential.
    pub fn is_anonymous(&self) -> bool {
        self.anonymous
    }

    /// Whether this start made the owner: the first on this data directory.
    pub fn is_first_start(&self) -> bool {
        self.first_start
    }

    /// The person whose server it is.
    pub fn owner(&self) -> &Principal {
        &self.owner
    }

    /// The owner, acting from the command line of the machine itself.
    pub fn owner_caller(&self, scopes: Scopes) -> Caller {
        caller(&self.owner, scopes).from_source(Some("cli"))
    }

    /// Whoever talks over stdio, with the scopes that the command line gave them.
    pub fn local_caller(&self, scopes: Scopes) -> Caller {
        caller(&self.local, scopes).from_source(Some("stdio"))
    }

    /// Tells who a request with this `Authorization` header comes from.
    ///
    /// # Errors
    /// [`AuthError`] says what is wrong with the credential; its message is safe to send.
    pub async fn authenticate(&self, authorization_header: Option<&str>) -> Result<Caller, AuthError> {
        if self.anonymous {
            return Ok(caller(&self.owner, Scopes::of(&[Scope::Call, Scope::Author])));
        }
        let (id, secret) = token::parse_header(authorization_header.ok_or(AuthError::Missing)?)?;
        let (known, lifetime) = self.find(id, secret).await?;
        if known.token.revoked_at.is_some() {
            return Err(AuthError::Revoked);
        }
        if self.has_passed(known.token.expires_at) {
            return Err(AuthError::Expired);
        }
        self.uses.note(&known.token, lifetime, self.store.clock().now());
        Ok(Caller {
            principal: known.token.principal.clone(),
            principal_name: known.principal_name.clone(),
            token_id: Some(known.token.id.clone()),
            scopes: known.token.scopes,
            source: None,
            toolset: known.token.toolset.clone(),
        })
    }

    /// The token with this id, if this is its secret.
    async fn find(&self, id: &str, secret: &str) -> Result<(Arc<Known>, Lifetime), AuthError> {
        let ephemeral = self.ephemeral().get(id).cloned();
        if let Some(known) = ephemeral {
            return if self.is_secret_of(&known.token, secret, &known.secret_hash) {
                Ok((Arc::new(known), Lifetime::Process))
            } else {
                Err(AuthError::Invalid)
            };
        }
        let key = (self.generation.load(Ordering::SeqCst), secret::hash(&format!("{id}_{secret}")));
        if let Some(known) = self.cache.get(&key).await {
            return Ok((known, Lifetime::Stored));
        }
        let (token, principal, stored_hash) = self.store.find_token(id).await?.ok_or(AuthError::Invalid)?;
        if !self.is_secret_of(&token, secret, &stored_hash) {
            return Err(AuthError::Invalid);
        }
        let known = Arc::new(Known { token, principal_name: principal.name, secret_hash: stored_hash });
        self.cache.insert(key, known.clone()).await;
        Ok((known, Lifetime::Stored))
    }

    /// Whether this is the token's secret, and the token what it was made to be.
    fn is_secret_of(&self, token: &Token, secret: &str, stored: &Hash) -> bool {
        secret::same(stored, &self.key.of_token(secret, &token::grants(token)))
    }

    /// Makes a token, which is recorded as this caller's deed; the text is shown here and never again.
    ///
    /// # Errors
    /// [`AuthError::BadRequest`] for a request that makes no useful token; [`AuthError::Store`].
    pub async fn create_token(&self, by: &Caller, request: TokenRequest) -> Result<(Token, String), AuthError> {
        if request.scopes == Scopes::default() {
            return Err(AuthError::BadRequest("a token needs at least one of the scopes call, author, approve, admin"));
        }
        let beyond = |scope: &Scope| request.scopes.has(*scope) && !by.scopes.has(*scope);
        if let Some(beyond) = Scope::ALL.into_iter().find(beyond) {
            return Err(AuthError::Beyond(beyond));
        }
        if request.name.trim().is_empty() {
            return Err(AuthError::BadRequest("a token needs a name, so that it can be told from others"));
        }
        if self.has_passed(request.expires_at) {
            return Err(AuthError::BadRequest("the token would have expired already"));
        }
        let principal = self
            .store
            .find_principal(&request.principal)
            .await?
            .ok_or(AuthError::BadRequest("there is no such principal"))?;
        let toolset = self.limit(by, &request).await?;
        let (new, text) = token::make(&request, toolset, &self.key);
        let detail = json!({"name": new.name, "scopes": new.scopes.to_string(), "for": principal.name,
            "expires_at": new.expires_at, "dies_with_process": request.lifetime == Lifetime::Process,
            "toolset": request.toolset});
        let entry = deed(by, "token.create", &new.id, detail);
        let token = match request.lifetime {
            Lifetime::Stored => self.store.insert_token(&new, &entry).await?,
            Lifetime::Process => {
                self.store.append_audit(&entry).await?;
                let token = token::unstored(&new, self.store.clock().now());
                let known =
                    Known { token: token.clone(), principal_name: principal.name, secret_hash: new.secret_hash };
                self.ephemeral().insert(token.id.clone(), known);
                token
            }
        };
        Ok((token, text))
    }

    /// The toolset that a token is to be limited to. What is inside one says nothing of approving or administering, so a
    /// token that may do those can't be limited.
    async fn limit(&self, by: &Caller, request: &TokenRequest) -> Result<Option<ToolsetId>, AuthError> {
        if by.toolset.is_some() {
            return Err(AuthError::BadRequest("a token that is limited to a toolset makes no tokens"));
        }
        let Some(name) = &request.toolset else { return Ok(None) };
        if request.scopes.has(Scope::Approve) || request.scopes.has(Scope::Admin) {
            return Err(AuthError::BadRequest(
                "a token that is limited to a toolset has the scopes call and author alone",
            ));
        }
        let toolset = self.store.get_toolset_by_name(name).await?;
        let toolset = toolset.filter(|toolset| toolset.owner == request.principal);
        let toolset = toolset
            .ok_or(AuthError::BadRequest("there is no such toolset; `omniforge toolset list` shows those there are"))?;
        Ok(Some(toolset.id))
    }

    /// Revokes a token for good, in this process at once, in others within a second; what is open under it ends. Says
    /// whether there was one.
    ///
    /// # Errors
    /// [`StoreError`].
    ///
    /// # Cancellation
    /// Dropping the future does not stop the revocation.
    pub async fn revoke_token(&self, by: &Caller, id: &str) -> Result<bool, StoreError> {
        let removed = self.ephemeral().remove(id);
        let entry = deed(by, "token.revoke", id, json!({}));
        let (auth, id) = (self.clone(), id.to_owned());
        let revocation = tokio::spawn(async move {
            if removed.is_some() {
                auth.uses.end(&id);
                return auth.store.append_audit(&entry).await.map(|_| true);
            }
            let revoked = auth.store.revoke_token(&id, &entry).await;
            auth.generation.fetch_add(1, Ordering::SeqCst);
            if revoked.is_ok() {
                auth.uses.end(&id);
            }
            revoked
        });
        revocation.await.expect("revoking a token does not panic")
    }

    /// The tokens of a principal, or everybody's, newest first; those that die with the process stand first.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn list_tokens(&self, principal: Option<&PrincipalId>) -> Result<Vec<(Token, Lifetime)>, StoreError> {
        let stored = self.store.list_tokens(principal).await?;
        let mut tokens: Vec<Token> = self.ephemeral().values().map(|known| known.token.clone()).collect();
        tokens.retain(|token| principal.is_none_or(|principal| *principal == token.principal));
        tokens.sort_by(|a, b| (b.created_at, &a.id).cmp(&(a.created_at, &b.id)));
        let ephemeral = tokens.into_iter().map(|token| (token, Lifetime::Process));
        let all = ephemeral.chain(stored.into_iter().map(|token| (token, Lifetime::Stored)));
        let used = |token: &Token| token.last_used_at.max(self.uses.last(&token.id));
        Ok(all.map(|(token, lifetime)| (Token { last_used_at: used(&token), ..token }, lifetime)).collect())
    }

    fn ephemeral(&self) -> MutexGuard<'_, HashMap<String, Known>> {
        // The map is whole between any two statements, so a panic elsewhere spoils nothing.
        self.ephemeral.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn has_passed(&self, time: Option<Timestamp>) -> bool {
        time.is_some_and(|time| time <= self.store.clock().now())
    }
}

fn caller(principal: &Principal, scopes: Scopes) -> Caller {
    Caller {
        principal: principal.id.clone(),
        principal_name: principal.name.clone(),
        token_id: None,
        scopes,
        source: None,
        toolset: None,
    }
}

/// What somebody does, for the audit log.
fn deed(by: &Caller, action: &str, subject: &str, detail: serde_json::Value) -> AuditEntry {
    AuditEntry {
        principal: Some(by.principal.clone()),
        token: by.token_id.clone(),
        source: by.source.clone(),
        action: action.to_owned(),
        subject: subject.to_owned(),
        detail,
        outcome: "ok".to_owned(),
        ..AuditEntry::default()
    }
}
