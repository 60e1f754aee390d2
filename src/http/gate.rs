//! Host, Origin and CORS: no page of another site, and no name that was rebound to this address, talks to this server.

use std::net::SocketAddr;

use axum::response::Response;
use http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_HEADERS, HOST, ORIGIN, VARY,
};
use http::uri::Authority;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri};

use super::problem::{problem, refuse};

const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
const MCP_HEADERS: &str = "authorization, content-type, accept, mcp-protocol-version, mcp-session-id, mcp-method, \
                           mcp-name, last-event-id, idempotency-key, if-match, traceparent, tracestate";

/// A host name (lower case, without brackets) and the port that was written, if one was.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Place {
    host: String,
    port: Option<u16>,
}

/// A scheme, a host and a port.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Site {
    scheme: String,
    host: String,
    port: u16,
}

/// Which hosts and origins are let in.
#[derive(Clone, Debug)]
pub struct Gate {
    hosts: Vec<Place>,
    origins: Vec<Site>,
    null_origin: bool,
    public: Option<Site>,
}

/// A setting of the gate that makes no sense.
#[derive(Debug, thiserror::Error)]
pub enum GateError {
    /// A bad entry of `allowed_hosts`.
    #[error("`allowed_hosts` has `{0}`; an entry is a host name, with or without a port, such as `example.com:8080`")]
    Host(String),
    /// A bad entry of `allowed_origins`.
    #[error(
        "`allowed_origins` has `{0}`; an entry is a scheme, a host and perhaps a port, such as `https://example.com`"
    )]
    Origin(String),
    /// A bad `public_url`.
    #[error("`public_url` is `{0}`; it must be an http or https URL, such as `https://example.com/forge`")]
    PublicUrl(String),
}

impl Gate {
    /// Builds the gate from the settings.
    ///
    /// # Errors
    /// [`GateError`] names the entry that makes no sense.
    pub fn new(
        listen: SocketAddr,
        public_url: Option<&str>,
        allowed_hosts: &[String],
        allowed_origins: &[String],
    ) -> Result<Self, GateError> {
        let mut hosts = Vec::new();
        for entry in allowed_hosts {
            hosts.push(place(entry).ok_or_else(|| GateError::Host(entry.clone()))?);
        }
        if listen.ip().is_loopback() {
            let names = ["localhost", "127.0.0.1", "::1"];
            hosts.extend(names.map(|host| Place { host: host.to_owned(), port: Some(listen.port()) }));
        }
        let public = match public_url {
            None => None,
            Some(url) => Some(site(url).ok_or_else(|| GateError::PublicUrl(url.to_owned()))?),
        };
        let mut origins = Vec::new();
        for entry in allowed_origins.iter().filter(|entry| *entry != "null") {
            origins.push(site(entry).ok_or_else(|| GateError::Origin(entry.clone()))?);
        }
        let null_origin = allowed_origins.iter().any(|entry| entry == "null");
        Ok(Self { hosts, origins, null_origin, public })
    }

    /// Checks where a request says it was sent to and where it says it comes from.
    ///
    /// `bearer`: a valid bearer token came with it. A browser adds none on its own, so that the host need not be checked
    /// where no `Origin` says that a page sent it.
    ///
    /// # Errors
    /// The response that refuses it and names the setting that would allow it.
    #[expect(clippy::result_large_err, reason = "a response is what the caller sends")]
    pub fn check(&self, uri: &Uri, headers: &HeaderMap, bearer: bool) -> Result<(), Response> {
        let origin = headers.get(ORIGIN);
        if origin.is_none() && headers.get(SEC_FETCH_SITE).is_some_and(|site| site == "cross-site") {
            return Err(forbidden(
                "a page of another site sent this request, without saying which; see `allowed_origins`",
            ));
        }
        if origin.is_none() && bearer {
            return Ok(());
        }
        let host = host_of(uri, headers)
            .ok_or_else(|| problem(StatusCode::BAD_REQUEST, "the request has no usable Host header"))?;
        if !self.knows_host(&host) {
            let name = host.port.map_or_else(|| host.host.clone(), |port| format!("{}:{port}", host.host));
            return Err(forbidden(&format!(
                "the host `{name}` is not one of this server's; the setting `allowed_hosts` (or `public_url`) allows it"
            )));
        }
        match origin {
            None => Ok(()),
            Some(origin) if self.knows_origin(origin, Some(&host)) => Ok(()),
            Some(origin) => Err(forbidden(&format!(
                "the origin `{}` may not use this server; the setting `allowed_origins` allows it",
                String::from_utf8_lossy(origin.as_bytes())
            ))),
        }
    }

    fn knows_host(&self, host: &Place) -> bool {
        let listed = |allowed: &Place| {
            allowed.host == host.host && allowed.port.is_none_or(|port| port == host.port.unwrap_or(80))
        };
        let public = self
            .public
            .as_ref()
            .is_some_and(|public| public.host == host.host && host.port.is_none_or(|port| port == public.port));
        public || self.hosts.iter().any(listed)
    }

    /// Whether this origin is our own or an allowed one; with a host, only after that was checked.
    fn knows_origin(&self, origin: &HeaderValue, host: Option<&Place>) -> bool {
        let Ok(text) = origin.to_str() else { return false };
        if text == "null" {
            return self.null_origin;
        }
        let Some(origin) = site(text) else { return false };
        let own = host.is_some_and(|host| {
            origin.host == host.host && origin.port == host.port.unwrap_or(default_port(&origin.scheme))
        });
        own || self.public.as_ref() == Some(&origin) || self.origins.contains(&origin)
    }

    /// The answer to a CORS preflight from an allowed origin.
    pub fn preflight(&self, headers: &HeaderMap) -> Response {
        let Some(origin) = headers.get(ORIGIN).filter(|origin| self.knows_origin(origin, None)) else {
            return forbidden("this origin may not use this server; the setting `allowed_origins` allows it");
        };
        let mut response = Response::new(axum::body::Body::empty());
        *response.status_mut() = StatusCode::NO_CONTENT;
        let own = response.headers_mut();
        own.insert(ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static("GET, POST, PUT, PATCH, DELETE, OPTIONS"));
        own.insert(ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("600"));
        let allowed = requested_headers(headers).unwrap_or_else(|| HeaderValue::from_static(MCP_HEADERS));
        own.insert(ACCESS_CONTROL_ALLOW_HEADERS, allowed);
        allow(own, origin.clone());
        response
    }

    /// Lets a page of an allowed origin read the response.
    pub fn open_to(&self, origin: Option<&HeaderValue>, response: &mut Response) {
        let Some(origin) = origin.filter(|origin| self.knows_origin(origin, None)) else { return };
        allow(response.headers_mut(), origin.clone());
        let exposed = HeaderValue::from_static("Mcp-Session-Id, WWW-Authenticate, ETag");
        response.headers_mut().insert(ACCESS_CONTROL_EXPOSE_HEADERS, exposed);
    }
}

/// Whether this is a CORS preflight.
pub fn is_preflight(method: &Method, headers: &HeaderMap) -> bool {
    method == Method::OPTIONS && headers.contains_key(http::header::ACCESS_CONTROL_REQUEST_METHOD)
}

/// The MCP headers plus those `Mcp-Param-…` ones that the page wants to send.
fn requested_headers(headers: &HeaderMap) -> Option<HeaderValue> {
    let asked = headers.get(ACCESS_CONTROL_REQUEST_HEADERS)?.to_str().ok()?.to_ascii_lowercase();
    let extra = asked.split(',').map(str::trim).filter(|name| name.starts_with("mcp-param-"));
    let all: Vec<&str> = std::iter::once(MCP_HEADERS).chain(extra).collect();
    HeaderValue::from_str(&all.join(", ")).ok()
}

fn allow(headers: &mut HeaderMap, origin: HeaderValue) {
    headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    headers.append(VARY, HeaderValue::from_static("Origin"));
}

fn forbidden(detail: &str) -> Response {
    refuse(StatusCode::FORBIDDEN, "gate.refused", detail)
}

fn host_of(uri: &Uri, headers: &HeaderMap) -> Option<Place> {
    match headers.get(HOST) {
        Some(host) => place(host.to_str().ok()?),
        None => uri.authority().and_then(|authority| place(authority.as_str())),
    }
}

fn place(text: &str) -> Option<Place> {
    let text = text.trim();
    // A bare IPv6 address is no authority: it wants brackets.
    let bracketed = text.parse::<std::net::Ipv6Addr>().is_ok().then(|| format!("[{text}]"));
    let authority = Authority::try_from(bracketed.as_deref().unwrap_or(text)).ok()?;
    if authority.as_str().contains('@') {
        return None;
    }
    Some(Place { host: bare(authority.host()), port: authority.port_u16() })
}

fn site(text: &str) -> Option<Site> {
    let uri = Uri::try_from(text.trim()).ok()?;
    let scheme = uri.scheme_str().filter(|scheme| matches!(*scheme, "http" | "https"))?.to_owned();
    let authority = uri.authority().filter(|authority| !authority.as_str().contains('@'))?;
    let port = authority.port_u16().unwrap_or(default_port(&scheme));
    Some(Site { host: bare(authority.host()), port, scheme })
}

fn bare(host: &str) -> String {
    host.trim_start_matches('[').trim_end_matches(']').to_ascii_lowercase()
}

fn default_port(scheme: &str) -> u16 {
    if scheme == "https" { 443 } else { 80 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gate() -> Gate {
        let listen = "127.0.0.1:8787".parse().unwrap();
        let origins = ["https://app.example".to_owned()];
        Gate::new(listen, Some("https://forge.example/x"), &["proxy.example".to_owned()], &origins).unwrap()
    }

    fn passes(pairs: &[(&str, &str)], bearer: bool) -> bool {
        let headers = pairs.iter().map(|(name, value)| (name.parse::<HeaderName>().unwrap(), value.parse().unwrap()));
        gate().check(&Uri::from_static("/mcp"), &headers.collect(), bearer).is_ok()
    }

    #[test]
    fn hosts_are_ours_or_listed() {
        for (host, expected) in [
            ("localhost:8787", true),
            ("127.0.0.1:8787", true),
            ("[::1]:8787", true),
            ("LOCALHOST:8787", true),
            ("localhost:9999", false),
            ("localhost", false),
            ("proxy.example:4711", true),
            ("forge.example", true),
            ("forge.example:443", true),
            ("evil.example", false),
            ("user@localhost:8787", false),
        ] {
            assert_eq!(passes(&[("host", host)], false), expected, "{host}");
        }
        assert!(passes(&[("host", "evil.example")], true), "with a bearer token the host does not matter");
    }

    #[test]
    fn origins_are_ours_or_listed() {
        let host = ("host", "127.0.0.1:8787");
        for (origin, expected) in [
            ("http://127.0.0.1:8787", true),
            ("http://localhost:8787", false),
            ("https://app.example", true),
            ("https://app.example:8443", false),
            ("https://forge.example", true),
            ("https://evil.example", false),
            ("http://127.0.0.1.evil.example", false),
            ("http://127.0.0.1:8787.evil.example", false),
            ("null", false),
        ] {
            for bearer in [true, false] {
                assert_eq!(passes(&[host, ("origin", origin)], bearer), expected, "{origin}");
            }
        }
        assert!(!passes(&[("host", "evil.example"), ("origin", "http://evil.example")], true), "a rebound name");
        assert!(!passes(&[host, ("sec-fetch-site", "cross-site")], true));
        assert!(passes(&[host, ("sec-fetch-site", "same-origin")], false));
    }
}
