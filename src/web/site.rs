//! Where this server is, as a browser sees it: its origin, its path prefix, and whose forms it accepts.

use std::net::SocketAddr;

use http::header::{HOST, ORIGIN};
use http::{HeaderMap, HeaderName};

const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// The server's place, from `public_url` where that is set, else from each request.
#[derive(Clone, Debug)]
pub(super) struct Site {
    public: Option<Public>,
    listen: SocketAddr,
}

#[derive(Clone, Debug)]
struct Public {
    scheme: String,
    authority: String,
    prefix: String,
}

impl Site {
    /// `public_url` was checked when the settings were read.
    pub(super) fn new(listen: SocketAddr, public_url: Option<&str>) -> Self {
        let public = public_url.map(|url| {
            let (scheme, rest) = url.split_once("://").unwrap_or(("http", url));
            let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
            Public {
                scheme: scheme.to_ascii_lowercase(),
                authority: authority.to_ascii_lowercase(),
                prefix: path.trim_end_matches('/').to_owned(),
            }
        });
        Self { public, listen }
    }

    /// What stands before every path of ours: empty, or such as `/forge`.
    pub(super) fn prefix(&self) -> &str {
        self.public.as_ref().map_or("", |public| &public.prefix)
    }

    /// Whether browsers reach us by https alone.
    pub(super) fn is_https(&self) -> bool {
        self.public.as_ref().is_some_and(|public| public.scheme == "https")
    }

    /// The port in the browser's address bar, as far as we know it.
    pub(super) fn port(&self) -> u16 {
        let Some(public) = &self.public else { return self.listen.port() };
        let written = public.authority.rsplit_once(':').and_then(|(_, port)| port.parse().ok());
        written.unwrap_or(if public.scheme == "https" { 443 } else { 80 })
    }

    /// The host, with its port, that a person knows the server by.
    pub(super) fn authority(&self, headers: &HeaderMap) -> String {
        match &self.public {
            Some(public) => public.authority.clone(),
            None => host(headers).unwrap_or_else(|| self.listen.to_string()),
        }
    }

    /// The address of the protocol endpoint.
    pub(super) fn mcp_url(&self, headers: &HeaderMap) -> String {
        let scheme = self.public.as_ref().map_or("http", |public| &public.scheme);
        format!("{scheme}://{}{}/mcp", self.authority(headers), self.prefix())
    }

    /// Whether a page of this very server sent the request, or no page at all.
    ///
    /// Browsers say with every POST where it comes from; what says nothing is no browser, and carries nobody's cookie.
    pub(super) fn sent_by_own_page(&self, headers: &HeaderMap) -> bool {
        if headers.get(SEC_FETCH_SITE).is_some_and(|site| site != "same-origin") {
            return false;
        }
        headers.get(ORIGIN).is_none_or(|origin| {
            origin.to_str().is_ok_and(|origin| self.is_own(&origin.to_ascii_lowercase(), host(headers).as_deref()))
        })
    }

    fn is_own(&self, origin: &str, host: Option<&str>) -> bool {
        let Some((scheme, authority)) = origin.split_once("://") else { return false };
        let public = self.public.as_ref();
        if let Some(public) = public.filter(|public| public.authority_without_default_port() == authority) {
            return public.scheme == scheme;
        }
        matches!(scheme, "http" | "https") && host == Some(authority)
    }
}

impl Public {
    fn authority_without_default_port(&self) -> &str {
        let default = if self.scheme == "https" { ":443" } else { ":80" };
        self.authority.strip_suffix(default).unwrap_or(&self.authority)
    }
}

/// The `Host` header in lower case, where it is nothing but a name or address and a port: it is shown in pages, and in
/// commands that people paste into a shell.
fn host(headers: &HeaderMap) -> Option<String> {
    let host = headers.get(HOST)?.to_str().ok()?.to_ascii_lowercase();
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b".-_:[]".contains(&byte);
    (!host.is_empty() && host.bytes().all(plain)).then_some(host)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&str, &str)]) -> HeaderMap {
        pairs.iter().map(|(name, value)| (name.parse::<HeaderName>().unwrap(), value.parse().unwrap())).collect()
    }

    fn site(public_url: Option<&str>) -> Site {
        Site::new("127.0.0.1:8787".parse().unwrap(), public_url)
    }

    #[test]
    fn addresses_come_from_the_public_url_or_the_request() {
        let (local, public) = (site(None), site(Some("https://Forge.Example/tools")));
        let asked = headers(&[("host", "localhost:8787")]);
        assert_eq!(local.mcp_url(&asked), "http://localhost:8787/mcp");
        assert_eq!(public.mcp_url(&asked), "https://forge.example/tools/mcp");
        assert_eq!((local.port(), public.port(), site(Some("http://h:81")).port()), (8787, 443, 81));
        assert_eq!((local.prefix(), public.prefix()), ("", "/tools"));
        assert_eq!((local.is_https(), public.is_https()), (false, true));
        let hostile = headers(&[("host", "a$(reboot)b")]);
        assert_eq!(local.mcp_url(&hostile), "http://127.0.0.1:8787/mcp");
    }

    #[test]
    fn only_own_pages_send_forms() {
        let host = ("host", "localhost:8787");
        let local = |pairs: &[(&str, &str)]| site(None).sent_by_own_page(&headers(pairs));
        assert!(local(&[host]), "a program");
        assert!(local(&[host, ("origin", "http://localhost:8787"), ("sec-fetch-site", "same-origin")]));
        for origin in ["http://localhost:9999", "http://evil.example", "null", "http://localhost:8787.evil.example", ""]
        {
            assert!(!local(&[host, ("origin", origin)]), "{origin}");
        }
        assert!(!local(&[host, ("sec-fetch-site", "cross-site")]));
        assert!(!local(&[host, ("sec-fetch-site", "same-site")]), "another port of this host");
        let public = |pairs: &[(&str, &str)]| site(Some("https://forge.example/x")).sent_by_own_page(&headers(pairs));
        assert!(public(&[("host", "inner:1"), ("origin", "https://forge.example")]), "a proxy that names us otherwise");
        assert!(!public(&[("host", "forge.example"), ("origin", "http://forge.example")]), "an unencrypted twin");
    }
}
