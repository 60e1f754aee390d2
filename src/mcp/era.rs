//! The protocol versions we speak, and what each of them knows.

/// A protocol version, oldest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Era {
    /// The first release.
    V2024_11_05,
    /// Streamable HTTP, annotations, audio, batches.
    V2025_03_26,
    /// Structured results, titles, resource links; no batches.
    V2025_06_18,
    /// Icons, resumable POST streams.
    V2025_11_25,
    /// Stateless; no handshake.
    V2026_07_28,
}

/// The methods of 2026-07-28 and of its extensions for tasks and skills.
const MODERN_METHODS: [&str; 16] = [
    "server/discover",
    "tools/list",
    "tools/call",
    "resources/list",
    "resources/templates/list",
    "resources/read",
    "prompts/list",
    "prompts/get",
    "completion/complete",
    "subscriptions/listen",
    "tasks/get",
    "tasks/update",
    "tasks/cancel",
    "skills/list",
    "skills/get",
    "resources/directory/read",
];

impl Era {
    /// Every version served, oldest first.
    pub const ALL: [Self; 5] =
        [Self::V2024_11_05, Self::V2025_03_26, Self::V2025_06_18, Self::V2025_11_25, Self::V2026_07_28];

    /// What a client that names no version is taken for, as the specification says.
    pub const UNNAMED: Self = Self::V2025_03_26;

    /// The newest version that has an `initialize` handshake.
    pub const NEWEST_LEGACY: Self = Self::V2025_11_25;

    /// The version as the wire writes it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::V2024_11_05 => "2024-11-05",
            Self::V2025_03_26 => "2025-03-26",
            Self::V2025_06_18 => "2025-06-18",
            Self::V2025_11_25 => "2025-11-25",
            Self::V2026_07_28 => "2026-07-28",
        }
    }

    /// Parses a version that we serve.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|era| era.as_str() == text)
    }

    /// The version that `initialize` agrees on: the one asked for when we serve it with a handshake, else our newest
    /// legacy one; never an echo.
    pub fn negotiate(asked: &str) -> Self {
        Self::parse(asked).filter(|era| !era.is_modern()).unwrap_or(Self::NEWEST_LEGACY)
    }

    /// Whether every request stands alone: no handshake, no session.
    pub fn is_modern(self) -> bool {
        self >= Self::V2026_07_28
    }

    /// Whether a method may exist. The handshake versions leave that to the protocol layer; 2026-07-28 took methods away
    /// that it still knows.
    pub(crate) fn may_have(self, method: &str) -> bool {
        !self.is_modern() || MODERN_METHODS.contains(&method)
    }

    /// Whether tools have annotations and results may hold audio.
    pub(crate) fn has_annotations(self) -> bool {
        self >= Self::V2025_03_26
    }

    /// Whether there are titles, output schemas, structured results, resource links and `_meta` on tools.
    pub(crate) fn has_structure(self) -> bool {
        self >= Self::V2025_06_18
    }

    /// Whether tools have icons.
    pub(crate) fn has_icons(self) -> bool {
        self >= Self::V2025_11_25
    }

    /// Whether output schemas and structured results may be other things than objects.
    pub(crate) fn has_any_output(self) -> bool {
        self.is_modern()
    }

    /// Whether clients understand the empty event that makes a POST's stream resumable (older ones try to parse it).
    pub(crate) fn has_priming_events(self) -> bool {
        self >= Self::V2025_11_25
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_version_gets_our_newest_legacy_one() {
        assert_eq!(Era::negotiate("1999-01-01"), Era::V2025_11_25);
        assert_eq!(Era::negotiate("2026-07-28"), Era::V2025_11_25);
        assert_eq!(Era::negotiate("2024-11-05"), Era::V2024_11_05);
    }

    #[test]
    fn we_serve_exactly_what_the_sdk_knows() {
        let sdk: Vec<&str> = rmcp::model::ProtocolVersion::KNOWN_VERSIONS.iter().map(|v| v.as_str()).collect();
        assert_eq!(sdk, Era::ALL.map(Era::as_str));
    }
}
