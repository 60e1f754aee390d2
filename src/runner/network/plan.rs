//! What a run may reach, as listeners inside its namespace: which address stands for which host.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use super::super::sandbox::spec::SandboxNetwork;
use crate::model::{HostPattern, Network, NetworkEntry, NetworkError};

/// The ports of an entry that names none.
const WEB_PORTS: [u16; 2] = [80, 443];
/// Where the HTTP proxy listens.
const PROXY: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(127, 77, 255, 1)), 3128);

/// What a listener inside the namespace leads to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// One host and port, byte by byte.
    Host(String, u16),
    /// The proxy for HTTP.
    Proxy,
}

/// The policy of one run.
#[derive(Debug)]
pub(crate) struct Plan {
    network: Network,
    /// Nothing is let out; what is tried is recorded.
    pub(super) learn: bool,
    /// The listeners and what they are for, in the order in which they are bound.
    pub(super) listeners: Vec<(SocketAddr, Role)>,
    /// The addresses that stand for names.
    pub(super) names: BTreeMap<String, Ipv4Addr>,
}

/// What the policy says of a target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It is listed by its own name or address.
    Named,
    /// A wildcard or `full` takes it in.
    TakenIn,
    /// It isn't granted, for this reason.
    Refused(String),
}

impl Plan {
    /// The plan for these entries; none where there is nothing to reach and nothing to learn.
    ///
    /// # Errors
    /// An entry that names no host. Those that were saved do.
    pub(crate) fn new(entries: &[String], learn: bool) -> Result<Option<Self>, NetworkError> {
        let network = if learn { Network::None } else { Network::parse(entries)? };
        if network == Network::None && !learn {
            return Ok(None);
        }
        let mut plan = Self { network, learn, listeners: Vec::new(), names: BTreeMap::new() };
        plan.place();
        Ok(Some(plan))
    }

    fn place(&mut self) {
        let entries = match &self.network {
            Network::Hosts(entries) => entries.clone(),
            Network::None | Network::Full => Vec::new(),
        };
        let mut listeners: Vec<(SocketAddr, Role)> = Vec::new();
        let needs_proxy =
            self.network == Network::Full || entries.iter().any(|entry| matches!(entry.host, HostPattern::Below(_)));
        if needs_proxy {
            listeners.push((PROXY, Role::Proxy));
        }
        for entry in &entries {
            let (address, host) = match &entry.host {
                HostPattern::Name(name) => (self.address_of(name).into(), name.clone()),
                HostPattern::Address(address) => (*address, address.to_string()),
                HostPattern::Below(_) => continue,
            };
            if address.is_unspecified() || address.is_multicast() {
                continue;
            }
            for port in ports(entry) {
                let place = SocketAddr::new(address, port);
                if !listeners.iter().any(|(taken, _)| *taken == place) {
                    listeners.push((place, Role::Host(host.clone(), port)));
                }
            }
        }
        self.listeners = listeners;
    }

    /// The loopback address that stands for a name.
    fn address_of(&mut self, name: &str) -> Ipv4Addr {
        let place = u8::try_from(self.names.len() + 1).expect("`Network` holds at most 100 hosts");
        let fresh = if name == "localhost" { Ipv4Addr::LOCALHOST } else { Ipv4Addr::new(127, 77, 0, place) };
        *self.names.entry(name.to_owned()).or_insert(fresh)
    }

    /// What the sandbox has to make.
    pub(crate) fn spec(&self) -> SandboxNetwork {
        let mut hosts = String::new();
        for (name, address) in self.names.iter().filter(|(name, _)| *name != "localhost") {
            let _infallible = writeln!(hosts, "{address} {name}");
        }
        SandboxNetwork { listeners: self.listeners.iter().map(|(address, _)| *address).collect(), hosts }
    }

    /// The variables that announce the proxy, where there is one.
    pub(crate) fn variables(&self) -> Vec<(&'static str, String)> {
        if !self.listeners.iter().any(|(_, role)| *role == Role::Proxy) {
            return Vec::new();
        }
        let url = format!("http://{PROXY}");
        let names = ["HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"];
        let mut variables: Vec<_> = names.into_iter().map(|name| (name, url.clone())).collect();
        variables.extend(["NO_PROXY", "no_proxy"].map(|name| (name, "localhost,127.0.0.1,::1".to_owned())));
        variables.push(("NODE_USE_ENV_PROXY", "1".to_owned()));
        variables
    }

    /// What the policy says of this host (a name in lower case, or an address) and port.
    pub(super) fn verdict(&self, host: &str, port: u16) -> Verdict {
        let refused = |reason: &str| Verdict::Refused(reason.to_owned());
        if self.learn {
            return refused("learning lets nothing out");
        }
        let entries = match &self.network {
            Network::None => return refused("not granted"),
            Network::Full if WEB_PORTS.contains(&port) => return Verdict::TakenIn,
            Network::Full => return refused("not granted: `full` means ports 80 and 443; name the host and port"),
            Network::Hosts(entries) => entries,
        };
        let address = host.parse::<IpAddr>().ok();
        let matching: Vec<(&NetworkEntry, Verdict)> = entries
            .iter()
            .filter(|entry| entry.host.means(host, address))
            .map(|entry| match entry.host {
                HostPattern::Below(_) => (entry, Verdict::TakenIn),
                HostPattern::Name(_) | HostPattern::Address(_) => (entry, Verdict::Named),
            })
            .collect();
        // One that names the host says more than one that takes it in.
        let mut granted = matching.iter().filter(|(entry, _)| ports(entry).contains(&port)).map(|(_, verdict)| verdict);
        if let Some(verdict) = granted.clone().find(|verdict| **verdict == Verdict::Named).or_else(|| granted.next()) {
            return verdict.clone();
        }
        let others: Vec<String> =
            matching.iter().flat_map(|(entry, _)| ports(entry)).map(|port| port.to_string()).collect();
        if others.is_empty() {
            return refused("not granted");
        }
        Verdict::Refused(format!("not granted: this host is granted at port {}", others.join(", ")))
    }

    /// The names that addresses of the namespace stand for.
    pub(super) fn names_by_address(&self) -> HashMap<Ipv4Addr, String> {
        self.names.iter().map(|(name, address)| (*address, name.clone())).collect()
    }
}

fn ports(entry: &NetworkEntry) -> Vec<u16> {
    entry.port.map_or(WEB_PORTS.to_vec(), |port| vec![port])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(entries: &[&str]) -> Plan {
        let entries: Vec<String> = entries.iter().map(|entry| (*entry).to_owned()).collect();
        Plan::new(&entries, false).unwrap().unwrap()
    }

    #[test]
    fn nothing_to_reach_costs_nothing() {
        assert!(Plan::new(&[], false).unwrap().is_none());
        assert!(Plan::new(&["full".to_owned()], true).unwrap().unwrap().listeners.is_empty());
    }

    #[test]
    fn named_hosts_get_listeners_and_lines_of_their_own() {
        let plan = plan(&["a.example", "b.example:5432", "192.0.2.1:1", "a.example:8080", "localhost:9"]);
        let listeners: Vec<String> = plan.listeners.iter().map(|(address, _)| address.to_string()).collect();
        let expected =
            ["127.77.0.1:80", "127.77.0.1:443", "127.77.0.2:5432", "192.0.2.1:1", "127.77.0.1:8080", "127.0.0.1:9"];
        assert_eq!(listeners, expected);
        assert_eq!(plan.spec().hosts, "127.77.0.1 a.example\n127.77.0.2 b.example\n");
        assert!(plan.variables().is_empty());
        assert_eq!(plan.listeners[2].1, Role::Host("b.example".to_owned(), 5432));
    }

    #[test]
    fn verdicts_name_the_ports_that_are_granted() {
        let plan = plan(&["a.example:8443", "*.b.example", "x.b.example:443"]);
        assert_eq!(plan.verdict("a.example", 8443), Verdict::Named);
        assert_eq!(plan.verdict("y.b.example", 443), Verdict::TakenIn);
        assert_eq!(plan.verdict("x.b.example", 443), Verdict::Named);
        for (host, port, words) in [
            ("a.example", 443, "granted at port 8443"),
            ("b.example", 443, "not granted"),
            ("evilb.example", 443, "not granted"),
            (".b.example", 443, "not granted"),
            ("y.b.example", 22, "granted at port 80, 443"),
        ] {
            let Verdict::Refused(reason) = plan.verdict(host, port) else { panic!("{host}:{port}") };
            assert!(reason.contains(words), "{host}:{port}: {reason}");
        }
    }

    #[test]
    fn full_is_the_web_alone_and_through_the_proxy() {
        let plan = plan(&["full"]);
        assert_eq!(plan.verdict("a.example", 443), Verdict::TakenIn);
        assert!(matches!(plan.verdict("a.example", 22), Verdict::Refused(_)));
        assert_eq!(plan.listeners, [(PROXY, Role::Proxy)]);
        assert!(plan.variables().contains(&("NODE_USE_ENV_PROXY", "1".to_owned())));
    }
}
