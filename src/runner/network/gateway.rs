//! The way out: resolves a name once, refuses what isn't the public internet's, and connects to the very address that it
//! checked.

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::time::Duration;

use ipnet::IpNet;
use tokio::net::TcpStream;

use super::address::inside;

/// How long one address may take to answer.
const CONNECT: Duration = Duration::from_secs(10);
/// How many addresses of a name are tried.
const ADDRESSES: usize = 4;

/// What the server's owner says of the network.
#[derive(Clone, Debug, Default)]
pub struct NetworkOptions {
    /// Internal addresses that grants may open by naming the host.
    pub private_allow: Vec<IpNet>,
    /// Addresses of names, in place of what the system's resolver answers.
    pub hosts: BTreeMap<String, IpAddr>,
    /// Where this server listens: no run reaches it.
    pub own: Option<SocketAddr>,
}

/// Why there is no connection.
#[derive(Debug)]
pub(super) enum NoWay {
    /// The policy refuses it.
    Refused(String),
    /// It can't be reached.
    Failed(String),
}

impl NetworkOptions {
    /// Connects. `named`: the grant names this very host, which opens the internal addresses that the owner allows.
    pub(super) async fn connect(&self, host: &str, port: u16, named: bool) -> Result<TcpStream, NoWay> {
        let addresses = self.resolve(host, port).await?;
        let mut refused = None;
        let mut allowed = Vec::new();
        for address in addresses {
            match self.refusal(address, port, named).await {
                None => allowed.push(address),
                Some(why) => refused = refused.or(Some((address, why))),
            }
        }
        let mut failed = None;
        for address in allowed.into_iter().take(ADDRESSES) {
            match tokio::time::timeout(CONNECT, TcpStream::connect((address, port))).await {
                Ok(Ok(stream)) => {
                    // Small writes of the run's go on as they come.
                    let _only_slower = stream.set_nodelay(true);
                    return Ok(stream);
                }
                Ok(Err(error)) => failed = Some(described(&error)),
                Err(_) => failed = Some(format!("no answer within {} s", CONNECT.as_secs())),
            }
        }
        Err(match (failed, refused) {
            (Some(failed), _) => NoWay::Failed(failed),
            (None, Some((address, why))) if host == address.to_string() => NoWay::Refused(format!("it is {why}")),
            (None, Some((address, why))) => NoWay::Refused(format!("it resolves to {address}, {why}")),
            (None, None) => NoWay::Failed("its name has no address".to_owned()),
        })
    }

    async fn resolve(&self, host: &str, port: u16) -> Result<Vec<IpAddr>, NoWay> {
        if let Ok(address) = host.parse() {
            return Ok(vec![address]);
        }
        if let Some(address) = self.hosts.get(host) {
            return Ok(vec![*address]);
        }
        match tokio::net::lookup_host((host, port)).await {
            Ok(found) => Ok(found.map(|address| address.ip()).collect()),
            Err(error) => Err(NoWay::Failed(format!("its name can't be resolved: {}", described(&error)))),
        }
    }

    /// Why this address is refused.
    async fn refusal(&self, address: IpAddr, port: u16, named: bool) -> Option<String> {
        let same_port = self.own.is_some_and(|own| own.port() == port);
        if same_port && (self.own.is_some_and(|own| own.ip() == address) || is_this_machine(address).await) {
            return Some("this server's own".to_owned());
        }
        let kind = inside(address)?;
        let opened = self.private_allow.iter().any(|range| range.contains(&address));
        match (opened, named) {
            (true, true) => None,
            (true, false) => Some(format!("{kind}, which only a grant that names the host opens")),
            (false, _) => Some(kind.to_owned()),
        }
    }
}

/// Whether the address is one of this machine's: only such can be bound.
async fn is_this_machine(address: IpAddr) -> bool {
    let address = address.to_canonical();
    address.is_loopback() || address.is_unspecified() || UdpSocket::bind((address, 0)).is_ok()
}

fn described(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::ConnectionRefused => "the host refused the connection".to_owned(),
        io::ErrorKind::NetworkUnreachable | io::ErrorKind::HostUnreachable => "no route to the host".to_owned(),
        _ => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options() -> NetworkOptions {
        NetworkOptions {
            private_allow: vec!["127.0.0.0/8".parse().unwrap()],
            hosts: [("inner.example".to_owned(), "10.0.0.1".parse().unwrap())].into(),
            own: Some("127.0.0.1:8787".parse().unwrap()),
        }
    }

    async fn refused(host: &str, port: u16, named: bool) -> String {
        match options().connect(host, port, named).await {
            Err(NoWay::Refused(why)) => why,
            other => panic!("{host}:{port}: {other:?}"),
        }
    }

    #[tokio::test]
    async fn addresses_of_the_inside_are_refused_after_resolution() {
        assert_eq!(refused("inner.example", 443, true).await, "it resolves to 10.0.0.1, a private address");
        assert!(refused("169.254.169.254", 80, true).await.contains("metadata"));
        assert!(refused("127.0.0.1", 1, false).await.contains("names the host"));
    }

    #[tokio::test]
    async fn the_server_itself_stays_out_of_reach() {
        for host in ["127.0.0.1", "127.9.9.9", "0.0.0.0", "::1", "::ffff:127.0.0.1"] {
            assert_eq!(refused(host, 8787, true).await, "it is this server's own", "{host}");
        }
    }
}
