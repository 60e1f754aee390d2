//! The hosts that a version asks to reach: parsed and normalised when it is saved, read the same way when it runs.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// What a version may reach.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Network {
    /// Nothing.
    None,
    /// Every public host.
    Full,
    /// These hosts.
    Hosts(Vec<NetworkEntry>),
}

/// A host, and the one port of it where one is named.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NetworkEntry {
    /// Which host or hosts.
    pub host: HostPattern,
    /// The port; `None`: those of HTTP and HTTPS.
    pub port: Option<u16>,
}

/// Which hosts an entry means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HostPattern {
    /// The host of this name (lower case, punycode).
    Name(String),
    /// Every host below this name, not the name itself.
    Below(String),
    /// This address.
    Address(IpAddr),
}

/// An entry that names no host.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{entry}` {problem}")]
pub struct NetworkError {
    /// The entry as it was given.
    pub entry: String,
    /// What is wrong with it, and what would be right.
    pub problem: String,
}

/// The most hosts that a version may name.
const MOST_HOSTS: usize = 100;

impl Network {
    /// Parses a list of entries: none at all, `none` or `full` by itself, or hosts. Repeated hosts count once.
    ///
    /// # Errors
    /// The first [`NetworkError`].
    pub fn parse(entries: &[impl AsRef<str>]) -> Result<Self, NetworkError> {
        let mut hosts: Vec<NetworkEntry> = Vec::new();
        for entry in entries.iter().map(|entry| entry.as_ref().trim()) {
            match (entry, entries.len()) {
                ("none", 1) => return Ok(Self::None),
                ("full", 1) => return Ok(Self::Full),
                ("none" | "full", _) => return Err(wrong(entry, "stands by itself; leave the other entries out")),
                _ => {}
            }
            let host = NetworkEntry::parse(entry)?;
            if !hosts.contains(&host) {
                if hosts.len() == MOST_HOSTS {
                    return Err(wrong(
                        entry,
                        "is one too many; name at most 100 hosts, or take them together (`*.example.org`)",
                    ));
                }
                hosts.push(host);
            }
        }
        Ok(if hosts.is_empty() { Self::None } else { Self::Hosts(hosts) })
    }

    /// The entries as they are kept: normalised, and none for `none`.
    pub fn entries(&self) -> Vec<String> {
        match self {
            Self::None => Vec::new(),
            Self::Full => vec!["full".to_owned()],
            Self::Hosts(hosts) => hosts.iter().map(ToString::to_string).collect(),
        }
    }
}

impl Network {
    /// Whether a host (a name in lower case and punycode, or an address) may be reached at a port. `full` means named hosts
    /// only.
    pub fn covers(&self, host: &str, port: u16) -> bool {
        let address = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>().ok();
        match self {
            Self::None => false,
            Self::Full => address.is_none() && matches!(port, 80 | 443),
            Self::Hosts(entries) => entries.iter().any(|entry| {
                let port_fits = entry.port.map_or(matches!(port, 80 | 443), |named| named == port);
                port_fits && entry.host.means(host, address)
            }),
        }
    }
}

impl HostPattern {
    /// Whether this is what it means: a name in lower case and punycode, or the address that it is.
    pub fn means(&self, host: &str, address: Option<IpAddr>) -> bool {
        match self {
            Self::Name(name) => name == host,
            Self::Below(base) => {
                host.strip_suffix(base.as_str()).is_some_and(|rest| rest.len() > 1 && rest.ends_with('.'))
            }
            Self::Address(granted) => address == Some(*granted),
        }
    }
}

impl NetworkEntry {
    /// Whether all that this entry means is among what the other one means; one without a port means every port there.
    pub fn is_within(&self, other: &Self) -> bool {
        let ports = other.port.is_none() || other.port == self.port;
        let below = |name: &str, base: &str| name.strip_suffix(base).is_some_and(|rest| rest.ends_with('.'));
        ports
            && match (&self.host, &other.host) {
                (HostPattern::Name(name), HostPattern::Below(base)) => below(name, base),
                (HostPattern::Below(inner), HostPattern::Below(outer)) => inner == outer || below(inner, outer),
                (one, another) => one == another,
            }
    }

    /// Parses `host` or `host:port`.
    ///
    /// # Errors
    /// [`NetworkError`] says what is wrong and what would be right.
    pub fn parse(entry: &str) -> Result<Self, NetworkError> {
        if let Some((scheme, rest)) = entry.split_once("://") {
            let port = if scheme.eq_ignore_ascii_case("http") { 80 } else { 443 };
            let host = rest.split(['/', '?', '#', ':']).next().unwrap_or_default();
            return Err(wrong(entry, format!("is a URL; name the host alone, such as `{host}:{port}`")));
        }
        if entry.contains('/') {
            return Err(wrong(entry, "has a `/`; name single hosts, such as `api.example.org:443`"));
        }
        let (host, port) = parts(entry)?;
        Ok(Self { host: HostPattern::parse(entry, host)?, port: port.map(|port| parse_port(entry, port)).transpose()? })
    }
}

/// The host and what stands behind its colon.
fn parts(entry: &str) -> Result<(&str, Option<&str>), NetworkError> {
    if entry.starts_with('[') {
        let end = entry.find(']').ok_or_else(|| wrong(entry, "has no `]`; write `[2001:db8::1]:443`"))?;
        return match entry[end + 1..].strip_prefix(':') {
            Some(port) => Ok((&entry[..=end], Some(port))),
            None if end + 1 == entry.len() => Ok((entry, None)),
            None => Err(wrong(entry, "has something between `]` and the port; write `[2001:db8::1]:443`")),
        };
    }
    Ok(match entry.split_once(':') {
        Some((_, rest)) if rest.contains(':') => (entry, None),
        Some((host, port)) => (host, Some(port)),
        None => (entry, None),
    })
}

fn parse_port(entry: &str, port: &str) -> Result<u16, NetworkError> {
    let digits = !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
    let number = digits.then(|| port.parse::<u16>().ok()).flatten().filter(|port| *port > 0);
    number.ok_or_else(|| wrong(entry, format!("has `{port}` for a port; a port is a number from 1 to 65535")))
}

impl HostPattern {
    fn parse(entry: &str, host: &str) -> Result<Self, NetworkError> {
        if host.starts_with('[') || host.contains(':') {
            let bare = host.trim_start_matches('[').trim_end_matches(']');
            let address = bare.parse::<Ipv6Addr>();
            return address
                // An IPv4 address in IPv6's clothes is that IPv4 address.
                .map(|address| Self::Address(IpAddr::V6(address).to_canonical()))
                .map_err(|_| wrong(entry, "holds no IPv6 address; write `[2001:db8::1]:443`, or the name of a host"));
        }
        if let Some(base) = host.strip_prefix("*.") {
            let base = name(entry, base)?;
            if base.parse::<Ipv4Addr>().is_ok() || ends_in_a_number(&base) {
                return Err(wrong(entry, "puts a `*` before an address; name addresses one by one"));
            }
            if !base.contains('.') {
                return Err(wrong(entry, "takes in a whole top-level domain; name more, as in `*.example.org`"));
            }
            return Ok(Self::Below(base));
        }
        if host == "*" {
            return Err(wrong(entry, "means every host; ask for `full` instead, by itself"));
        }
        if host.contains('*') {
            return Err(wrong(entry, "has a `*` that is not the first label by itself, as in `*.example.org`"));
        }
        let name = name(entry, host)?;
        if let Ok(address) = name.parse::<Ipv4Addr>() {
            return Ok(Self::Address(address.into()));
        }
        if ends_in_a_number(&name) {
            return Err(wrong(entry, "is neither a name nor an IPv4 address of four numbers, such as `192.0.2.1`"));
        }
        Ok(Self::Name(name))
    }
}

/// A host's name in lower case and punycode.
fn name(entry: &str, host: &str) -> Result<String, NetworkError> {
    let host = host.strip_suffix('.').unwrap_or(host);
    if host.is_empty() {
        return Err(wrong(entry, "names no host; write one such as `api.example.org:443`"));
    }
    idna::domain_to_ascii_strict(host)
        .map_err(|_| wrong(entry, "is no host; write a name such as `api.example.org:443` (letters, digits, `-`, `.`)"))
}

/// Names that end so are read as addresses in odd notations by some programs.
fn ends_in_a_number(name: &str) -> bool {
    let last = name.rsplit('.').next().unwrap_or_default();
    last.bytes().all(|byte| byte.is_ascii_digit())
        || last.strip_prefix("0x").is_some_and(|rest| rest.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

fn wrong(entry: &str, problem: impl Into<String>) -> NetworkError {
    NetworkError { entry: entry.to_owned(), problem: problem.into() }
}

impl fmt::Display for NetworkEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.host {
            HostPattern::Name(name) => f.write_str(name)?,
            HostPattern::Below(name) => write!(f, "*.{name}")?,
            HostPattern::Address(IpAddr::V4(address)) => write!(f, "{address}")?,
            HostPattern::Address(IpAddr::V6(address)) => write!(f, "[{address}]")?,
        }
        self.port.map_or(Ok(()), |port| write!(f, ":{port}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn normalised(entry: &str) -> String {
        NetworkEntry::parse(entry).unwrap().to_string()
    }

    #[test]
    fn hosts_are_normalised_and_read_back_as_they_are_kept() {
        for (given, kept) in [
            ("API.Example.org:443", "api.example.org:443"),
            ("api.example.org.", "api.example.org"),
            ("*.Example.org", "*.example.org"),
            ("*.example.org:8443", "*.example.org:8443"),
            ("müller.example", "xn--mller-kva.example"),
            ("*.bücher.example:80", "*.xn--bcher-kva.example:80"),
            ("example。org", "example.org"),
            ("localhost:5432", "localhost:5432"),
            ("192.0.2.1:65535", "192.0.2.1:65535"),
            ("[2001:DB8:0:0::1]:443", "[2001:db8::1]:443"),
            ("2001:db8::1", "[2001:db8::1]"),
        ] {
            assert_eq!(normalised(given), kept, "{given}");
            assert_eq!(normalised(kept), kept);
        }
    }

    #[test]
    fn a_hundred_hosts_and_no_more() {
        let mut hosts: Vec<String> = (0..MOST_HOSTS).map(|number| format!("h{number}.example")).collect();
        hosts.push("H0.example".to_owned());
        assert_eq!(Network::parse(&hosts).unwrap().entries().len(), MOST_HOSTS);
        hosts.push("more.example".to_owned());
        assert!(Network::parse(&hosts).unwrap_err().to_string().contains("`more.example` is one too many"));
    }

    #[test]
    fn what_is_no_host_is_named_with_what_would_be_right() {
        for (entry, words) in [
            ("", "names no host"),
            ("not a host", "is no host"),
            ("https://api.example.org/v1?a", "`api.example.org:443`"),
            ("http://api.example.org:8080", "`api.example.org:80`"),
            ("10.0.0.0/8", "has a `/`"),
            ("user@example.org", "is no host"),
            ("example.org:", "1 to 65535"),
            ("example.org:0", "1 to 65535"),
            ("example.org:65536", "1 to 65535"),
            ("example.org:+443", "1 to 65535"),
            ("example.org:https", "1 to 65535"),
            (":443", "names no host"),
            ("*", "`full`"),
            ("*:443", "`full`"),
            ("*.org", "top-level domain"),
            ("*.1.2.3", "before an address"),
            ("api.*.org", "first label"),
            ("*api.example.org", "first label"),
            ("127.1", "four numbers"),
            ("0x7f.0x1", "four numbers"),
            ("1.2.3.256", "four numbers"),
            ("[::1", "no `]`"),
            ("[::1]443", "between"),
            ("[fe80::1%eth0]:1", "no IPv6 address"),
            ("-a.example.org", "is no host"),
            ("a..example.org", "is no host"),
            ("a_b.example.org", "is no host"),
            ("a\u{0}.example.org", "is no host"),
            ("exa\u{202e}mple.org", "is no host"),
        ] {
            let error = NetworkEntry::parse(entry).unwrap_err();
            assert_eq!(error.entry, entry);
            assert!(error.problem.contains(words), "{error}");
        }
        assert!(NetworkEntry::parse(&format!("{}.example.org", "a".repeat(64))).is_err());
    }

    #[test]
    fn none_and_full_stand_by_themselves() {
        assert_eq!(Network::parse(&[""; 0]).unwrap(), Network::None);
        assert_eq!(Network::parse(&["none"]).unwrap().entries(), Vec::<String>::new());
        assert_eq!(Network::parse(&["full"]).unwrap().entries(), ["full"]);
        assert!(Network::parse(&["full", "a.example"]).unwrap_err().problem.contains("by itself"));
        let hosts = Network::parse(&["a.example", " A.example ", "a.example:1"]).unwrap();
        assert_eq!(hosts.entries(), ["a.example", "a.example:1"]);
        assert_eq!(Network::parse(&hosts.entries()).unwrap(), hosts);
    }

    #[test]
    fn a_grant_covers_its_hosts_and_ports_alone() {
        let network = |entries: &[&str]| Network::parse(entries).unwrap();
        let hosts =
            network(&["api.example.org", "db.example.org:5432", "*.cdn.example.org", "192.0.2.1:80", "[2001:db8::1]"]);
        for (host, port) in [
            ("api.example.org", 443),
            ("api.example.org", 80),
            ("db.example.org", 5432),
            ("a.b.cdn.example.org", 443),
            ("192.0.2.1", 80),
            ("[2001:db8::1]", 443),
        ] {
            assert!(hosts.covers(host, port), "{host}:{port}");
        }
        for (host, port) in [
            ("api.example.org", 22),
            ("db.example.org", 443),
            ("cdn.example.org", 443),
            ("xcdn.example.org", 443),
            ("api.example.org.evil.test", 443),
            ("192.0.2.1", 443),
            ("192.0.2.2", 80),
        ] {
            assert!(!hosts.covers(host, port), "{host}:{port}");
        }
        assert!(network(&["full"]).covers("any.example.org", 443) && !network(&["full"]).covers("192.0.2.1", 443));
        assert!(!network(&[]).covers("any.example.org", 443));
    }
}
