//! The HTTP proxy of a run whose grant has a wildcard or is `full`: CONNECT, and plain HTTP by absolute URL.

use std::convert::Infallible;

use bytes::Bytes;
use http::header::{CONNECTION, HOST, HeaderName, HeaderValue, PROXY_AUTHENTICATE, PROXY_AUTHORIZATION, TE, UPGRADE};
use http::{Method, Request, Response, StatusCode, Uri};
use http_body_util::{BodyExt, Full, combinators::BoxBody};
use hyper::body::Incoming;
use hyper::ext::ReasonPhrase;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::sync::Mutex;
use tokio::task::JoinSet;

use super::relay::{Counted, Relay};
use crate::model::{HostPattern, NetworkEntry, Unreached};

type Body = BoxBody<Bytes, hyper::Error>;

/// Headers between two neighbours, which no proxy hands on.
const HOP_BY_HOP: [HeaderName; 8] = [
    CONNECTION,
    TE,
    UPGRADE,
    PROXY_AUTHENTICATE,
    PROXY_AUTHORIZATION,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
    HeaderName::from_static("trailer"),
];

/// Serves one connection of the run's.
pub(super) async fn serve(relay: Relay, stream: TcpStream) {
    let _only_slower = stream.set_nodelay(true);
    // Both live within this future, so that they end with the run.
    let (tunnel, exchanges) = (Mutex::new(None), Mutex::new(JoinSet::new()));
    let service = service_fn(|request: Request<Incoming>| {
        let (relay, tunnel, exchanges) = (&relay, &tunnel, &exchanges);
        async move {
            let answer = if request.method() == Method::CONNECT {
                let (answer, opened) = connect(relay, request).await;
                *tunnel.lock().await = opened;
                answer
            } else {
                forward(relay, request, exchanges).await
            };
            Ok::<_, Infallible>(answer)
        }
    });
    let connection = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service);
    // A client that breaks off is the run's own matter.
    let _broken_off = connection.with_upgrades().await;
    if let Some((upgrade, mut outside)) = tunnel.into_inner()
        && let Ok(inside) = upgrade.await
    {
        let mut inside = TokioIo::new(inside);
        let _broken_off = tokio::io::copy_bidirectional(&mut inside, &mut outside).await;
    }
}

type Tunnel = (hyper::upgrade::OnUpgrade, Counted);
/// The connections that requests by absolute URL have made.
type Exchanges = Mutex<JoinSet<hyper::Result<()>>>;

async fn connect(relay: &Relay, mut request: Request<Incoming>) -> (Response<Body>, Option<Tunnel>) {
    let Some((host, port)) = target(request.uri(), None) else {
        return (refused(StatusCode::BAD_REQUEST, "CONNECT wants HOST:PORT"), None);
    };
    match relay.connect(&host, port).await {
        Ok(outside) => {
            let upgrade = hyper::upgrade::on(&mut request);
            (Response::new(body("")), Some((upgrade, outside)))
        }
        Err(unreached) => (unreached_answer(&unreached), None),
    }
}

async fn forward(relay: &Relay, mut request: Request<Incoming>, exchanges: &Exchanges) -> Response<Body> {
    let is_http = request.uri().scheme_str() == Some("http");
    let Some((host, port)) = target(request.uri(), Some(80)).filter(|_| is_http) else {
        let text = "this is the sandbox's proxy: it takes CONNECT, and http:// URLs as a whole";
        return refused(StatusCode::BAD_REQUEST, text);
    };
    let outside = match relay.connect(&host, port).await {
        Ok(outside) => outside,
        Err(unreached) => return unreached_answer(&unreached),
    };
    // The target is what was checked, whatever the client's Host says.
    let authority = request.uri().authority().map(|authority| authority.as_str().to_owned()).unwrap_or_default();
    let authority = authority.rsplit('@').next().unwrap_or_default();
    let Ok(host) = HeaderValue::from_str(authority) else {
        return refused(StatusCode::BAD_REQUEST, "the URL's host can't stand in a header");
    };
    request.headers_mut().insert(HOST, host);
    strip(request.headers_mut());
    let path = request.uri().path_and_query().map_or("/", |path| path.as_str()).parse::<Uri>();
    *request.uri_mut() = path.unwrap_or_else(|_| Uri::from_static("/"));
    match exchange(outside, request, exchanges).await {
        Ok(answer) => answer,
        Err(error) => refused(StatusCode::BAD_GATEWAY, &format!("the host's answer could not be read: {error}")),
    }
}

async fn exchange(
    outside: Counted,
    request: Request<Incoming>,
    exchanges: &Exchanges,
) -> hyper::Result<Response<Body>> {
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(outside)).await?;
    // The answer's body is read through it, after this function has returned.
    exchanges.lock().await.spawn(connection);
    let mut answer = sender.send_request(request).await?;
    strip(answer.headers_mut());
    Ok(answer.map(BodyExt::boxed))
}

fn strip(headers: &mut http::HeaderMap) {
    let named: Vec<HeaderName> = headers
        .get_all(CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|name| name.trim().parse().ok())
        .collect();
    for name in HOP_BY_HOP.iter().chain(&named) {
        headers.remove(name);
    }
}

/// The host as grants name it, and the port.
fn target(uri: &Uri, default_port: Option<u16>) -> Option<(String, u16)> {
    let port = match uri.port() {
        Some(port) => port.as_u16(),
        None => default_port?,
    };
    let host = match NetworkEntry::parse(uri.host()?).ok()?.host {
        HostPattern::Name(name) => name,
        HostPattern::Address(address) => address.to_string(),
        HostPattern::Below(_) => return None,
    };
    (port > 0).then_some((host, port))
}

fn unreached_answer(unreached: &Unreached) -> Response<Body> {
    let status = if unreached.refused { StatusCode::FORBIDDEN } else { StatusCode::BAD_GATEWAY };
    refused(status, &unreached.to_string())
}

/// Most clients show the reason phrase alone when CONNECT fails.
fn refused(status: StatusCode, text: &str) -> Response<Body> {
    let mut answer = Response::new(body(format!("{text}\n")));
    *answer.status_mut() = status;
    if let Ok(reason) = ReasonPhrase::try_from(text.as_bytes()) {
        answer.extensions_mut().insert(reason);
    }
    answer
}

fn body(text: impl Into<Bytes>) -> Body {
    Full::new(text.into()).map_err(|never| match never {}).boxed()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_read_as_grants_are() {
        let read = |uri: &str, port| target(&uri.parse().unwrap(), port);
        assert_eq!(read("API.example.org:443", None), Some(("api.example.org".to_owned(), 443)));
        assert_eq!(read("http://user@a.example/x", Some(80)), Some(("a.example".to_owned(), 80)));
        assert_eq!(read("[2001:db8::1]:443", None), Some(("2001:db8::1".to_owned(), 443)));
        for wrong in ["a.example", "0x7f.1:443", "127.1:443", "*.example.org:443"] {
            assert_eq!(read(wrong, None), None, "{wrong}");
        }
    }
}
