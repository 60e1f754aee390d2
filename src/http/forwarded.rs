//! Behind a reverse proxy: the path prefix under which it serves us, and the client that it speaks for.

use std::net::{IpAddr, SocketAddr};

use axum::Router;
use axum::extract::{ConnectInfo, Request};
use axum::middleware::{Next, from_fn};
use http::Uri;
use http::uri::PathAndQuery;
use ipnet::IpNet;

/// Who may say for whom it speaks: addresses, or networks such as `10.0.0.0/8`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TrustedProxies(Vec<IpNet>);

impl TrustedProxies {
    /// These networks.
    pub fn new(networks: Vec<IpNet>) -> Self {
        Self(networks)
    }

    fn trusts(&self, peer: IpAddr) -> bool {
        let peer = peer.to_canonical();
        self.0.iter().any(|network| network.contains(&peer))
    }

    /// The client that a request came from: the last one in `X-Forwarded-For` that is no trusted proxy, where the peer is one.
    fn client(&self, peer: IpAddr, forwarded: &[&str]) -> IpAddr {
        let mut client = peer;
        let named = forwarded.iter().flat_map(|line| line.split(',')).map(str::trim);
        for address in named.rev() {
            if !self.trusts(client) {
                break;
            }
            let Ok(address) = address.parse() else { break };
            client = address;
        }
        client
    }
}

/// The routes, with and without the prefix of the public URL, and with the client's address in the place of a trusted
/// proxy's. What others say of their origin is not heard.
pub fn behind_proxy(routes: Router, public_url: Option<&str>, trusted: TrustedProxies) -> Router {
    let prefix = public_url.and_then(|url| url.parse::<Uri>().ok());
    let prefix = prefix.map(|url| url.path().trim_end_matches('/').to_owned()).unwrap_or_default();
    // A middleware of the routes would run behind the routing.
    let rewrite = move |mut request: Request, next: Next| {
        if let Some(stripped) = without(request.uri(), &prefix) {
            *request.uri_mut() = stripped;
        }
        let forwarded: Vec<&str> =
            request.headers().get_all("x-forwarded-for").iter().filter_map(|value| value.to_str().ok()).collect();
        let peer = request.extensions().get::<ConnectInfo<SocketAddr>>().map(|ConnectInfo(peer)| *peer);
        if let Some(peer) = peer {
            let client = trusted.client(peer.ip(), &forwarded);
            if client != peer.ip() {
                request.extensions_mut().insert(ConnectInfo(SocketAddr::new(client, 0)));
            }
        }
        async move { next.run(request).await }
    };
    Router::new().fallback_service(routes).layer(from_fn(rewrite))
}

/// The URI without the prefix; `None` where it does not begin with it.
fn without(uri: &Uri, prefix: &str) -> Option<Uri> {
    if prefix.is_empty() {
        return None;
    }
    let rest = uri.path().strip_prefix(prefix).filter(|rest| rest.is_empty() || rest.starts_with('/'))?;
    let path = if rest.is_empty() { "/" } else { rest };
    let text = uri.query().map_or_else(|| path.to_owned(), |query| format!("{path}?{query}"));
    let mut parts = uri.clone().into_parts();
    parts.path_and_query = Some(PathAndQuery::try_from(text).ok()?);
    Uri::from_parts(parts).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_trusted_proxies_are_heard_and_only_as_far_as_they_go() {
        let proxies =
            TrustedProxies::new(["127.0.0.1/32", "10.0.0.0/8", "::1/128"].map(|it| it.parse().unwrap()).into());
        let client = |peer: &str, forwarded: &[&str]| proxies.client(peer.parse().unwrap(), forwarded).to_string();
        assert_eq!(client("127.0.0.1", &["203.0.113.9"]), "203.0.113.9");
        assert_eq!(client("192.0.2.1", &["203.0.113.9"]), "192.0.2.1");
        assert_eq!(client("127.0.0.1", &["1.1.1.1, 203.0.113.9, 10.1.2.3"]), "203.0.113.9", "the rest is hearsay");
        assert_eq!(client("127.0.0.1", &["1.1.1.1", "203.0.113.9"]), "203.0.113.9");
        assert_eq!(client("127.0.0.1", &["unknown"]), "127.0.0.1");
        assert_eq!(client("::1", &[]), "::1");
    }

    #[test]
    fn the_prefix_is_taken_away_at_a_slash_alone() {
        let stripped = |uri: &str| without(&uri.parse().unwrap(), "/forge").map(|uri| uri.to_string());
        assert_eq!(stripped("/forge/mcp?a=b").as_deref(), Some("/mcp?a=b"));
        assert_eq!(stripped("/forge").as_deref(), Some("/"));
        assert_eq!(stripped("/forgery/mcp"), None);
        assert_eq!(stripped("/mcp"), None);
    }
}
