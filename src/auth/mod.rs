//! Who is calling: bearer tokens for programs, sign-in links and sessions for the browser.
//!
//! It says who somebody is and what their credential allows; what a scope is needed for is decided where the thing is
//! done. Secrets leave it once, when they are made; the store holds their hashes.

mod error;
mod secret;
mod sign_in;
mod token;

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use moka::future::Cache;

use crate::model::{Caller, PrincipalId, Scope, Scopes, Timestamp};
use crate::store::{Hash, Principal, PrincipalKind, Store, StoreError, Token};

pub use error::AuthError;
pub use sign_in::Session;
pub use token::{Lifetime, TokenRequest};

/// The name of the person whose server it is.
pub const OWNER: &str = "owner";
/// The name of whoever starts the program over stdio.
pub const LOCAL: &str = "local";

/// How long another process's revocation may go unnoticed.
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
}

/// A token whose secret was checked, or will be against `secret_hash`.
#[derive(Clone, Debug)]
struct Known {
    token: Token,
    principal_name: String,
    secret_hash: Hash,
}

impl Auth {
    /// Requires credentials. Makes the principals `owner` and `local` when the store has none yet.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn new(store: Store) -> Result<Self, StoreError> {
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
        })
    }

    /// Takes every request for the owner's, with the scopes `call author` (`--auth none`). What needs `approve` or
    /// `admin` still needs a session, so a sign-in link: anything on the machine can send a request without a
    /// credential, also a model with a shell, and approving waits for a person.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn anonymous(store: Store) -> Result<Self, StoreError> {
        Ok(Self { anonymous: true, ..Self::new(store).await? })
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
        caller(&self.owner, scopes)
    }

    /// Whoever talks over stdio, with the scopes that the command line gave them.
    pub fn local_caller(&self, scopes: Scopes) -> Caller {
        caller(&self.local, scopes)
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
        let known = self.find(id, secret).await?;
        if known.token.revoked_at.is_some() {
            return Err(AuthError::Revoked);
        }
        if self.has_passed(known.token.expires_at) {
            return Err(AuthError::Expired);
        }
        Ok(Caller {
            principal: known.token.principal.clone(),
            principal_name: known.principal_name.clone(),
            token_id: Some(known.token.id.clone()),
            scopes: known.token.scopes,
        })
    }

    /// The token with this id, if this is its secret.
    async fn find(&self, id: &str, secret: &str) -> Result<Arc<Known>, AuthError> {
        let secret_hash = secret::hash(secret);
        let ephemeral = self.ephemeral().get(id).cloned();
        if let Some(known) = ephemeral {
            return if secret::same(&known.secret_hash, &secret_hash) {
                Ok(Arc::new(known))
            } else {
                Err(AuthError::Invalid)
            };
        }
        let key = (self.generation.load(Ordering::SeqCst), secret::hash(&format!("{id}_{secret}")));
        if let Some(known) = self.cache.get(&key).await {
            return Ok(known);
        }
        let (token, principal, stored_hash) = self.store.find_token(id).await?.ok_or(AuthError::Invalid)?;
        if !secret::same(&stored_hash, &secret_hash) {
            return Err(AuthError::Invalid);
        }
        let known = Arc::new(Known { token, principal_name: principal.name, secret_hash });
        self.cache.insert(key, known.clone()).await;
        Ok(known)
    }

    /// Makes a token; the text is shown here and never again.
    ///
    /// # Errors
    /// [`AuthError::BadRequest`] for a request that makes no useful token; [`AuthError::Store`].
    pub async fn create_token(&self, request: TokenRequest) -> Result<(Token, String), AuthError> {
        if request.scopes == Scopes::default() {
            return Err(AuthError::BadRequest("a token needs at least one of the scopes call, author, approve, admin"));
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
        let (new, text) = token::make(&request);
        let token = match request.lifetime {
            Lifetime::Stored => self.store.insert_token(&new).await?,
            Lifetime::Process => {
                let token = token::unstored(&new, self.store.clock().now());
                let known =
                    Known { token: token.clone(), principal_name: principal.name, secret_hash: new.secret_hash };
                self.ephemeral().insert(token.id.clone(), known);
                token
            }
        };
        Ok((token, text))
    }

    /// Revokes a token for good, in this process at once, in others within 5 seconds; says whether there was one.
    ///
    /// # Errors
    /// [`StoreError`].
    ///
    /// # Cancellation
    /// Dropping the future does not stop the revocation.
    pub async fn revoke_token(&self, id: &str) -> Result<bool, StoreError> {
        if self.ephemeral().remove(id).is_some() {
            return Ok(true);
        }
        let (store, generation, id) = (self.store.clone(), self.generation.clone(), id.to_owned());
        let revocation = tokio::spawn(async move {
            let revoked = store.revoke_token(&id).await;
            generation.fetch_add(1, Ordering::SeqCst);
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
        Ok(ephemeral.chain(stored.into_iter().map(|token| (token, Lifetime::Stored))).collect())
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
    Caller { principal: principal.id.clone(), principal_name: principal.name.clone(), token_id: None, scopes }
}
