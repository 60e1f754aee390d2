//! What a run did with the network: counted, and named where it was kept from it.

use std::fmt;

use serde::{Deserialize, Serialize};

/// What a run sent, received and tried in vain.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NetworkUse {
    /// Connections that were made for it.
    pub connections: u64,
    /// Bytes that it sent over them.
    pub sent_bytes: u64,
    /// Bytes that it received.
    pub received_bytes: u64,
    /// What kept all of it from the network, where its sandbox has none to give.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notice: Option<String>,
    /// What it tried and did not reach, each once, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unreached: Vec<Unreached>,
}

/// Something that a run tried to reach and did not.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unreached {
    /// The host's name (punycode) or address.
    pub host: String,
    /// The port; none where the name was only looked up.
    pub port: Option<u16>,
    /// Whether it was UDP.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub udp: bool,
    /// Whether the policy refused it; else it could not be reached.
    pub refused: bool,
    /// Why.
    pub reason: String,
}

impl Unreached {
    /// `HOST:PORT`, as a grant names it.
    pub fn target(&self) -> String {
        let host = if self.host.contains(':') { format!("[{}]", self.host) } else { self.host.clone() };
        self.port.map_or(host.clone(), |port| format!("{host}:{port}"))
    }
}

impl fmt::Display for Unreached {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = if self.refused { "refused" } else { "failed" };
        let kind = if self.udp { " (UDP)" } else { "" };
        write!(f, "[network] {word} {}{kind}: {}", self.target(), self.reason)
    }
}
