//! Principals and their tokens.

use serde::Serialize;

use super::error::corrupt;
use super::{AuditEntry, Store, StoreError};
use crate::model::{PrincipalId, Scopes, Timestamp, ToolsetId};

/// A BLAKE3 hash. Secrets are stored as nothing else.
pub type Hash = [u8; 32];

/// What a principal is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum PrincipalKind {
    /// Somebody who signs in.
    Person,
    /// A program.
    Client,
    /// Whoever starts the program over stdio.
    Local,
}

impl PrincipalKind {
    /// The name used in JSON and SQL.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Person => "person",
            Self::Client => "client",
            Self::Local => "local",
        }
    }

    fn parse(text: &str) -> Result<Self, StoreError> {
        [Self::Person, Self::Client, Self::Local]
            .into_iter()
            .find(|kind| kind.as_str() == text)
            .ok_or_else(|| corrupt("principal kind", text))
    }
}

/// Somebody or something that owns tools, runs, tokens and sessions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Principal {
    /// Its id.
    pub id: PrincipalId,
    /// Its name; no two share one.
    pub name: String,
    /// What it is.
    pub kind: PrincipalKind,
    /// When it was made.
    pub created_at: Timestamp,
}

/// A token, without its secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token {
    /// Its public part.
    pub id: String,
    /// Whose it is.
    pub principal: PrincipalId,
    /// A name for people.
    pub name: String,
    /// What it allows.
    pub scopes: Scopes,
    /// When it was made.
    pub created_at: Timestamp,
    /// From when on it is refused.
    pub expires_at: Option<Timestamp>,
    /// When it was revoked.
    pub revoked_at: Option<Timestamp>,
    /// When it was used last, to the minute.
    pub last_used_at: Option<Timestamp>,
    /// The toolset that it is limited to.
    pub toolset: Option<ToolsetId>,
}

/// A token to store.
#[derive(Clone, Debug)]
pub struct NewToken {
    /// Its public part.
    pub id: String,
    /// Whose it is.
    pub principal: PrincipalId,
    /// A name for people.
    pub name: String,
    /// What it allows.
    pub scopes: Scopes,
    /// BLAKE3 of its secret.
    pub secret_hash: Hash,
    /// From when on it is refused.
    pub expires_at: Option<Timestamp>,
    /// The toolset that it is limited to.
    pub toolset: Option<ToolsetId>,
}

/// The columns of `principals`.
pub(super) struct PrincipalColumns {
    pub id: String,
    pub name: String,
    pub kind: String,
    pub created_at: i64,
}

impl TryFrom<PrincipalColumns> for Principal {
    type Error = StoreError;

    fn try_from(row: PrincipalColumns) -> Result<Self, StoreError> {
        Ok(Self {
            id: PrincipalId(row.id),
            name: row.name,
            kind: PrincipalKind::parse(&row.kind)?,
            created_at: Timestamp(row.created_at),
        })
    }
}

struct TokenColumns {
    id: String,
    principal: String,
    name: String,
    scopes: String,
    created_at: i64,
    expires_at: Option<i64>,
    revoked_at: Option<i64>,
    last_used_at: Option<i64>,
    toolset: Option<String>,
}

impl TryFrom<TokenColumns> for Token {
    type Error = StoreError;

    fn try_from(row: TokenColumns) -> Result<Self, StoreError> {
        Ok(Self {
            id: row.id,
            principal: PrincipalId(row.principal),
            name: row.name,
            scopes: Scopes::parse(&row.scopes).map_err(|word| corrupt("token scope", word))?,
            created_at: Timestamp(row.created_at),
            expires_at: row.expires_at.map(Timestamp),
            revoked_at: row.revoked_at.map(Timestamp),
            last_used_at: row.last_used_at.map(Timestamp),
            toolset: row.toolset.map(ToolsetId),
        })
    }
}

/// Reads a stored hash.
fn hash(bytes: Vec<u8>) -> Result<Hash, StoreError> {
    let length = bytes.len();
    bytes.try_into().map_err(|_| corrupt("hash", format!("it has {length} bytes, not 32")))
}

impl Store {
    /// The principal of this name, made now if there is none; and whether it was made.
    ///
    /// # Errors
    /// [`StoreError::Database`].
    pub async fn ensure_principal(&self, name: &str, kind: PrincipalKind) -> Result<(Principal, bool), StoreError> {
        let (id, kind, now) = (self.clock.new_id().to_string(), kind.as_str(), self.clock.now().0);
        let mut transaction = self.write().await?;
        let made = sqlx::query!(
            "INSERT INTO principals (id, name, kind, created_at) VALUES ($1, $2, $3, $4) ON CONFLICT (name) DO NOTHING",
            id,
            name,
            kind,
            now
        )
        .execute(&mut *transaction)
        .await?;
        let row = sqlx::query_as!(
            PrincipalColumns,
            "SELECT id, name, kind, created_at FROM principals WHERE name = $1",
            name
        )
        .fetch_one(&mut *transaction)
        .await?;
        transaction.commit().await?;
        Ok((row.try_into()?, made.rows_affected() == 1))
    }

    /// The principal with this id.
    ///
    /// # Errors
    /// [`StoreError::Database`].
    pub async fn find_principal(&self, id: &PrincipalId) -> Result<Option<Principal>, StoreError> {
        sqlx::query_as!(PrincipalColumns, "SELECT id, name, kind, created_at FROM principals WHERE id = $1", id.0)
            .fetch_optional(self.read())
            .await?
            .map(Principal::try_from)
            .transpose()
    }

    /// The principal of this name.
    ///
    /// # Errors
    /// [`StoreError::Database`].
    pub async fn find_principal_by_name(&self, name: &str) -> Result<Option<Principal>, StoreError> {
        sqlx::query_as!(PrincipalColumns, "SELECT id, name, kind, created_at FROM principals WHERE name = $1", name)
            .fetch_optional(self.read())
            .await?
            .map(Principal::try_from)
            .transpose()
    }

    /// Every principal, oldest first.
    ///
    /// # Errors
    /// [`StoreError::Database`].
    pub async fn list_principals(&self) -> Result<Vec<Principal>, StoreError> {
        sqlx::query_as!(PrincipalColumns, "SELECT id, name, kind, created_at FROM principals ORDER BY created_at, id")
            .fetch_all(self.read())
            .await?
            .into_iter()
            .map(Principal::try_from)
            .collect()
    }

    /// Stores a token, and the entry of the audit log with it.
    ///
    /// # Errors
    /// [`StoreError::Database`], also when the principal does not exist or the id is taken.
    pub async fn insert_token(&self, token: &NewToken, entry: &AuditEntry) -> Result<Token, StoreError> {
        let created_at = self.clock.now();
        let (scopes, hash) = (token.scopes.to_string(), token.secret_hash.as_slice());
        let expires_at = token.expires_at.map(|at| at.0);
        let toolset = token.toolset.as_ref().map(|toolset| toolset.0.as_str());
        let mut transaction = self.write().await?;
        sqlx::query!(
            "INSERT INTO tokens (id, principal, name, scopes, secret_hash, created_at, expires_at, toolset)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8)",
            token.id,
            token.principal.0,
            token.name,
            scopes,
            hash,
            created_at.0,
            expires_at,
            toolset
        )
        .execute(&mut *transaction)
        .await?;
        self.record(&mut transaction, entry).await?;
        transaction.commit().await?;
        Ok(Token {
            id: token.id.clone(),
            principal: token.principal.clone(),
            name: token.name.clone(),
            scopes: token.scopes,
            created_at,
            expires_at: token.expires_at,
            revoked_at: None,
            last_used_at: None,
            toolset: token.toolset.clone(),
        })
    }

    /// The token with this id (also a revoked or expired one), its principal and the hash of its secret.
    ///
    /// # Errors
    /// [`StoreError::Database`].
    pub async fn find_token(&self, id: &str) -> Result<Option<(Token, Principal, Hash)>, StoreError> {
        let Some(row) = sqlx::query!(
            "SELECT t.id, t.principal, t.name, t.scopes, t.created_at, t.expires_at, t.revoked_at, t.last_used_at,
                    t.toolset, t.secret_hash,
                    p.name AS principal_name, p.kind, p.created_at AS principal_created_at
             FROM tokens t JOIN principals p ON p.id = t.principal WHERE t.id = $1",
            id
        )
        .fetch_optional(self.read())
        .await?
        else {
            return Ok(None);
        };
        let principal = PrincipalColumns {
            id: row.principal.clone(),
            name: row.principal_name,
            kind: row.kind,
            created_at: row.principal_created_at,
        };
        let columns = TokenColumns {
            id: row.id,
            principal: row.principal,
            name: row.name,
            scopes: row.scopes,
            created_at: row.created_at,
            expires_at: row.expires_at,
            revoked_at: row.revoked_at,
            last_used_at: row.last_used_at,
            toolset: row.toolset,
        };
        Ok(Some((columns.try_into()?, principal.try_into()?, hash(row.secret_hash)?)))
    }

    /// The tokens of a principal, or everybody's, newest first.
    ///
    /// # Errors
    /// [`StoreError::Database`].
    pub async fn list_tokens(&self, principal: Option<&PrincipalId>) -> Result<Vec<Token>, StoreError> {
        let principal = principal.map(|principal| principal.0.as_str());
        sqlx::query_as!(
            TokenColumns,
            "SELECT id, principal, name, scopes, created_at, expires_at, revoked_at, last_used_at, toolset
             FROM tokens
             WHERE $1 IS NULL OR principal = $1 ORDER BY created_at DESC, id",
            principal
        )
        .fetch_all(self.read())
        .await?
        .into_iter()
        .map(Token::try_from)
        .collect()
    }

    /// Revokes a token for good, with an entry in the audit log; says whether it was there and not yet revoked.
    ///
    /// # Errors
    /// [`StoreError::Database`].
    pub async fn revoke_token(&self, id: &str, entry: &AuditEntry) -> Result<bool, StoreError> {
        let now = self.clock.now().0;
        let mut transaction = self.write().await?;
        let done = sqlx::query!("UPDATE tokens SET revoked_at = $2 WHERE id = $1 AND revoked_at IS NULL", id, now)
            .execute(&mut *transaction)
            .await?;
        let revoked = done.rows_affected() == 1;
        if revoked {
            self.record(&mut transaction, entry).await?;
        }
        transaction.commit().await?;
        Ok(revoked)
    }

    /// How many revocations there were, of every process: a number that only grows.
    ///
    /// # Errors
    /// [`StoreError::Database`].
    pub async fn count_revocations(&self) -> Result<i64, StoreError> {
        Ok(sqlx::query_scalar!("SELECT revocations FROM meta WHERE id = 1").fetch_one(self.read()).await?)
    }

    /// Records when tokens were used, in one transaction.
    ///
    /// # Errors
    /// [`StoreError::Database`].
    pub async fn touch_tokens(&self, used: &[(String, Timestamp)]) -> Result<(), StoreError> {
        let mut transaction = self.write().await?;
        for (id, at) in used {
            sqlx::query!(
                "UPDATE tokens SET last_used_at = $2 WHERE id = $1 AND (last_used_at IS NULL OR last_used_at < $2)",
                id,
                at.0
            )
            .execute(&mut *transaction)
            .await?;
        }
        transaction.commit().await?;
        Ok(())
    }
}
