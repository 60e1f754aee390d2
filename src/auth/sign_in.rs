//! Signing in to the web UI: a link's code is spent on a session, whose id is the cookie's value.

use std::net::IpAddr;
use std::time::Duration;

use tracing::warn;

use super::secret::{SECRET_LENGTH, hash, is_random_text, random_text, same};
use super::{Auth, AuthError, caller, deed};
use crate::model::{Caller, Scope, Scopes};
use crate::store::{AuditEntry, Principal, SessionEntry, StoreError};

const LINK_LIFETIME: Duration = Duration::from_secs(15 * 60);
const SESSION_IDLE: Duration = Duration::from_secs(12 * 60 * 60);
/// How often the use of a session is recorded: pages are read far more often than that.
const SESSION_TOUCH: Duration = Duration::from_secs(5 * 60);

/// Somebody who has signed in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Session {
    /// Who that is.
    pub caller: Caller,
    /// What each form and each change must carry.
    pub csrf: String,
}

impl Session {
    /// Whether a request that changes something came from one of this session's own pages.
    pub fn accepts_csrf(&self, presented: &str) -> bool {
        same(&hash(&self.csrf), &hash(presented))
    }
}

impl Auth {
    /// Makes the code of a link that signs the owner in, once, within 15 minutes.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn new_sign_in_link(&self) -> Result<String, StoreError> {
        let code = random_text(SECRET_LENGTH);
        let expires_at = self.store.clock().later(LINK_LIFETIME);
        self.store.insert_sign_in_link(&self.key.hash(&code), &self.owner.id, expires_at).await?;
        Ok(code)
    }

    /// Spends a link's code on a new session and returns its id, the value of the cookie. A peer whose attempts failed too
    /// often must wait.
    ///
    /// # Errors
    /// [`AuthError::BadSignInCode`], [`AuthError::TooManyAttempts`], [`AuthError::Store`].
    pub async fn spend_sign_in_code(&self, code: &str, peer: Option<IpAddr>) -> Result<String, AuthError> {
        let clock = self.store.clock();
        if let Some(seconds) = self.attempts.wait(peer, clock) {
            return Err(AuthError::TooManyAttempts { seconds });
        }
        let session = random_text(SECRET_LENGTH);
        let principal = if is_random_text(code, SECRET_LENGTH) {
            self.store
                .spend_sign_in_link(&self.key.hash(code), &self.key.hash(&session), from(peer, "sign_in.use"))
                .await?
        } else {
            None
        };
        if principal.is_none() {
            self.attempts.failed(peer, clock);
        }
        principal.map(|_| session).ok_or(AuthError::BadSignInCode)
    }

    /// The session with this cookie, unless it was idle for 12 hours.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn session(&self, cookie: &str) -> Result<Option<Session>, StoreError> {
        if !is_random_text(cookie, SECRET_LENGTH) {
            return Ok(None);
        }
        let (id_hash, clock) = (self.key.hash(cookie), self.store.clock());
        let Some(row) = self.store.find_session(&id_hash).await? else { return Ok(None) };
        if row.last_seen_at <= clock.earlier(SESSION_IDLE) {
            return Ok(None);
        }
        if row.last_seen_at <= clock.earlier(SESSION_TOUCH)
            && let Err(error) = self.store.touch_session(&id_hash).await
        {
            // Whoever is signed in stays so; at worst the session ends early.
            warn!(error = &error as &dyn std::error::Error, "Cannot record that a session is in use");
        }
        let caller = caller(&row.principal, self.session_scopes(&row.principal));
        Ok(Some(Session { caller, csrf: csrf(cookie) }))
    }

    /// Ends a session; says whether there was one.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn sign_out(&self, cookie: &str, peer: Option<IpAddr>) -> Result<bool, StoreError> {
        self.store.delete_session(&self.key.hash(cookie), from(peer, "session.end")).await
    }

    /// The sessions of whoever is signed in with this cookie, the last used first; with each, whether it is that one.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn sessions(&self, caller: &Caller, cookie: &str) -> Result<Vec<(SessionEntry, bool)>, StoreError> {
        let own = blake3::Hash::from(self.key.hash(cookie)).to_hex().to_string();
        let since = self.store.clock().earlier(SESSION_IDLE);
        let sessions = self.store.list_sessions(&caller.principal, since).await?;
        Ok(sessions
            .into_iter()
            .map(|session| (session.hash == own, session))
            .map(|(own, entry)| (entry, own))
            .collect())
    }

    /// Ends one of the caller's sessions, by what [`Auth::sessions`] calls it; says whether there was one.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn end_session(&self, caller: &Caller, session: &str) -> Result<bool, StoreError> {
        let entry = deed(caller, "session.end", "web", serde_json::json!({"session": session}));
        self.store.end_session(&caller.principal, session, &entry).await
    }

    /// Forgets sessions and links whose time is over; says how many. For a task that runs now and then.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn forget_expired(&self) -> Result<u64, StoreError> {
        self.store.delete_expired_sign_ins(self.store.clock().earlier(SESSION_IDLE)).await
    }

    /// The owner may do everything; anybody else what their tokens could.
    fn session_scopes(&self, principal: &Principal) -> Scopes {
        if principal.id == self.owner.id { Scopes::of(&Scope::ALL) } else { Scopes::of(&[Scope::Call, Scope::Author]) }
    }
}

/// What came from there, for the audit log; whose deed it was, the store finds out.
fn from(peer: Option<IpAddr>, action: &str) -> AuditEntry {
    AuditEntry {
        source: peer.map(|peer| peer.to_string()),
        action: action.to_owned(),
        subject: "web".to_owned(),
        outcome: "ok".to_owned(),
        ..AuditEntry::default()
    }
}

/// Derived from the session's id, so that it needs no column and differs with each session.
fn csrf(cookie: &str) -> String {
    blake3::Hash::from(blake3::derive_key("omniforge session form token", cookie.as_bytes())).to_hex().to_string()
}
