//! What a run reaches, through the real door: hosts of the tests' own on loopback addresses, which the owner's settings open.

use std::io::{Read, Write};
use std::net::TcpListener;

use serde_json::{Value, json};

use crate::server::Server;

const OPEN: [&str; 4] = ["--approval", "never", "--network-private-allow", "127.0.0.0/8"];

/// A web server that answers everything with the same text; its port.
fn web_server(text: &'static str) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut request = Vec::new();
            while !request.ends_with(b"\r\n\r\n") {
                let mut byte = [0u8; 1];
                match stream.read(&mut byte) {
                    Ok(1) => request.push(byte[0]),
                    _ => break,
                }
            }
            let answer =
                format!("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{text}", text.len());
            let _gone = stream.write_all(answer.as_bytes());
        }
    });
    port
}

fn server(more: &[&str]) -> Server {
    Server::start(&[&OPEN[..], more].concat())
}

/// Saves and calls a tool with this grant; its text and whether it failed.
async fn run(server: &Server, code: &str, network: Value, arguments: Value) -> (String, bool) {
    server.create(json!({"name": "t", "code": code, "network": network, "replace": true})).await;
    server.call("t", arguments).await
}

const FETCH: &str = "import urllib.request\n\ndef main(url: str) -> str:\n    \
    return urllib.request.urlopen(url, timeout=10).read().decode()\n";

#[tokio::test]
async fn a_named_host_is_reached_and_nothing_else() {
    let port = web_server("hello from outside");
    let server = server(&["--network-hosts", "a.test=127.0.0.1,b.test=127.0.0.1"]);
    let grant = json!([format!("a.test:{port}")]);
    let (text, is_error) = run(&server, FETCH, grant.clone(), json!({"url": format!("http://a.test:{port}/")})).await;
    assert_eq!((text.as_str(), is_error), ("hello from outside", false));
    let (text, is_error) = run(&server, FETCH, grant.clone(), json!({"url": format!("http://b.test:{port}/")})).await;
    assert!(is_error && text.contains(&format!("[network] refused b.test:{port}: not granted")), "{text}");
    let (text, is_error) = run(&server, FETCH, grant, json!({"url": "http://192.0.2.1:81/"})).await;
    assert!(is_error && text.contains("[network] refused 192.0.2.1:81: not granted"), "{text}");
}
