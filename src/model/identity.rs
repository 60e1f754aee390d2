//! Who is calling: principals, scopes and the facts about the client.

use serde::{Deserialize, Serialize};

use super::{Holder, ToolsetId};

/// The id of a person, client or the local user (UUIDv7 text).
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct PrincipalId(pub String);

/// One thing that a token allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Scope {
    /// List and call tools.
    Call,
    /// Save, change and delete tools.
    Author,
    /// Approve reach.
    Approve,
    /// Everything about the server.
    Admin,
}

impl Scope {
    /// Every scope, weakest first.
    pub const ALL: [Self; 4] = [Self::Call, Self::Author, Self::Approve, Self::Admin];

    /// The name used in tokens, JSON and SQL.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Call => "call",
            Self::Author => "author",
            Self::Approve => "approve",
            Self::Admin => "admin",
        }
    }
}

/// A set of scopes, written `call author`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Scopes(u8);

impl Scopes {
    /// The set of these scopes.
    pub fn of(scopes: &[Scope]) -> Self {
        Self(scopes.iter().fold(0, |bits, scope| bits | 1 << *scope as u8))
    }

    /// Whether the set holds this scope.
    pub fn has(self, scope: Scope) -> bool {
        self.0 & (1 << scope as u8) != 0
    }

    /// The same set without this scope.
    #[must_use]
    pub fn without(self, scope: Scope) -> Self {
        Self(self.0 & !(1 << scope as u8))
    }

    /// Parses scopes parted by spaces or commas.
    ///
    /// # Errors
    /// The first word that is no scope.
    pub fn parse(text: &str) -> Result<Self, String> {
        let words = text.split([' ', ',']).filter(|word| !word.is_empty());
        let scopes: Result<Vec<Scope>, String> = words
            .map(|word| Scope::ALL.into_iter().find(|s| s.as_str() == word).ok_or_else(|| word.to_owned()))
            .collect();
        Ok(Self::of(&scopes?))
    }
}

impl std::fmt::Display for Scopes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names: Vec<&str> = Scope::ALL.into_iter().filter(|s| self.has(*s)).map(Scope::as_str).collect();
        f.write_str(&names.join(" "))
    }
}

/// The authenticated source of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller {
    /// Whose tools and runs these are.
    pub principal: PrincipalId,
    /// The principal's name, for pages, logs and audit rows.
    pub principal_name: String,
    /// The token that was shown, where there was one.
    pub token_id: Option<String>,
    /// What the token allows.
    pub scopes: Scopes,
    /// Where the request came from, for the audit log: a peer's address, `stdio` or `cli`.
    pub source: Option<String>,
    /// The toolset that the caller sees, saves and calls within, because its token is limited to it or its request says
    /// so.
    pub toolset: Option<ToolsetId>,
}

impl Caller {
    /// The same caller, from there.
    #[must_use]
    pub fn from_source(self, source: Option<impl ToString>) -> Self {
        Self { source: source.map(|source| source.to_string()), ..self }
    }

    /// Whose tools and runs this caller sees; `None`: everybody's.
    pub fn sees_only(&self) -> Option<&PrincipalId> {
        (!self.scopes.has(Scope::Admin)).then_some(&self.principal)
    }

    /// Whether this caller sees a run of that principal's that was asked for within that toolset.
    pub fn sees_run(&self, of: &PrincipalId, within: Option<&ToolsetId>) -> bool {
        self.sees(of) && self.toolset.as_ref().is_none_or(|own| within == Some(own))
    }

    /// Whose a session is that this caller opens.
    pub fn holder(&self) -> Holder {
        Holder { principal: self.principal.clone(), toolset: self.toolset.clone() }
    }

    /// Whether this caller sees what belongs to that principal.
    pub fn sees(&self, owner: &PrincipalId) -> bool {
        self.sees_only().is_none_or(|only| only == owner)
    }
}

/// What a client says of itself (unverified).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ClientFacts {
    /// `clientInfo.name`.
    pub name: Option<String>,
    /// `clientInfo.version`.
    pub version: Option<String>,
    /// The protocol version spoken, such as `2025-11-25`.
    pub protocol_version: Option<String>,
    /// The declared client capabilities, as JSON.
    pub capabilities: serde_json::Value,
}
