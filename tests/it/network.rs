//! What a run reaches, through the real door: hosts of the tests' own on loopback addresses, which the owner's settings open.

use std::io::{Read, Write};
use std::net::TcpListener;

use serde_json::{Value, json};

use crate::server::Server;

mod tls;

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

/// What the history says of the last run.
async fn last_run(server: &Server) -> Value {
    let (list, _) = server.call("omniforge_list_runs", json!({"limit": 1})).await;
    let list: Value = serde_json::from_str(&list).unwrap();
    let (run, _) = server.call("omniforge_get_run", json!({"run_id": list["runs"][0]["run_id"]})).await;
    serde_json::from_str(&run).unwrap()
}

#[tokio::test]
async fn connections_and_bytes_stand_in_the_runs_row() {
    let port = web_server("twelve bytes");
    let server = server(&["--network-hosts", "a.test=127.0.0.1"]);
    let url = format!("http://a.test:{port}/");
    run(&server, FETCH, json!([format!("a.test:{port}")]), json!({"url": url})).await;
    let network = last_run(&server).await["network"].clone();
    assert_eq!((&network["connections"], network.get("unreached")), (&json!(1), None), "{network}");
    assert!(network["received_bytes"].as_u64().unwrap() > 60, "{network}");
    assert!(network["sent_bytes"].as_u64().unwrap() > 60, "{network}");
    run(&server, "def main() -> str:\n    return 'x'\n", json!([]), json!({})).await;
    assert_eq!(last_run(&server).await.get("network"), None);
}

#[tokio::test]
async fn names_that_lead_inside_are_refused_after_resolution() {
    let names = [
        ("private.test", "10.0.0.1", "a private address"),
        ("metadata.test", "169.254.169.254", "metadata"),
        ("carrier.test", "100.64.0.1", "carrier"),
        ("mapped.test", "::ffff:10.0.0.1", "another guise"),
        ("nat.test", "64:ff9b::a00:1", "NAT64"),
        ("loop.test", "127.0.0.1", "a loopback address"),
    ];
    let hosts: Vec<String> = names.iter().map(|(name, address, _)| format!("{name}={address}")).collect();
    // What the owner opened is another range.
    let server = Server::start(&[
        "--approval",
        "never",
        "--network-private-allow",
        "192.168.7.0/24",
        "--network-hosts",
        &hosts.join(","),
    ]);
    for (name, address, kind) in names {
        let (text, is_error) = run(&server, FETCH, json!([name]), json!({"url": format!("http://{name}/")})).await;
        assert!(is_error, "{text}");
        let line = text.lines().find(|line| line.starts_with("[network] refused")).unwrap_or_else(|| panic!("{text}"));
        let expected = format!("[network] refused {name}:80: it resolves to {address}");
        assert!(line.starts_with(&expected) && line.contains(kind), "{line}");
    }
}

/// The listener for an IPv6 address is bound to that very address, in a namespace that has none of its own.
#[tokio::test]
async fn addresses_are_granted_as_they_are_written() {
    let server = server(&[]);
    for (address, kind) in [("[2001:db8::7]", "set aside for examples"), ("198.18.0.1", "set aside for benchmarks")] {
        let url = json!({"url": format!("http://{address}:8080/")});
        let (text, is_error) = run(&server, FETCH, json!([format!("{address}:8080")]), url).await;
        let line = format!("[network] refused {address}:8080: it is an address {kind}");
        assert!(is_error && text.contains(&line), "{text}");
    }
}

/// Databases and mail speak before they are spoken to, or in other ways than HTTP: bytes go through as they are.
#[tokio::test]
async fn any_protocol_over_tcp_goes_through_and_ends_as_it_ends() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let outside = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        stream.write_all(b"220 ready\r\n").unwrap();
        let mut all = Vec::new();
        stream.read_to_end(&mut all).unwrap();
        stream.write_all(b"got it").unwrap();
        all.len()
    });
    let server = server(&["--network-hosts", "mail.test=127.0.0.1"]);
    let code = "import socket\n\ndef main(port: int) -> list:\n    \
        mail = socket.create_connection(('mail.test', port), 10)\n    \
        greeting = mail.recv(100).decode()\n    \
        mail.sendall(b'x' * 3_000_000)\n    mail.shutdown(socket.SHUT_WR)\n    \
        return [greeting, mail.recv(100).decode(), mail.recv(100).decode()]\n";
    let (text, is_error) = run(&server, code, json!([format!("mail.test:{port}")]), json!({"port": port})).await;
    assert_eq!((text.as_str(), is_error), (r#"["220 ready\r\n","got it",""]"#, false));
    assert_eq!(outside.join().unwrap(), 3_000_000);
    assert_eq!(last_run(&server).await["network"]["sent_bytes"], 3_000_000);
}

#[tokio::test]
async fn the_server_itself_is_not_reached_whatever_is_open() {
    let server = server(&["--network-hosts", "me.test=127.0.0.1"]);
    let port = server.url.rsplit(':').next().unwrap().to_owned();
    for host in ["me.test", "127.0.0.1", "127.1.2.3"] {
        let url = json!({"url": format!("http://{host}:{port}/healthz")});
        let (text, is_error) = run(&server, FETCH, json!([format!("{host}:{port}")]), url).await;
        assert!(is_error && text.contains("this server's own"), "{text}");
    }
}

#[tokio::test]
async fn wildcards_and_full_go_through_the_proxy() {
    let port = web_server("through the proxy");
    let server = server(&["--network-hosts", "a.w.test=127.0.0.1,b.w.test=127.0.0.1"]);
    // A wildcard opens nothing inside; the name beside it does, through the proxy as well.
    let grant = json!([format!("*.w.test:{port}"), format!("a.w.test:{port}")]);
    let url = |host: &str| json!({"url": format!("http://{host}:{port}/")});
    assert_eq!(run(&server, FETCH, grant.clone(), url("a.w.test")).await, ("through the proxy".to_owned(), false));
    for (host, why) in [
        ("b.w.test", "it resolves to 127.0.0.1, a loopback address, which only a grant that names the host opens"),
        ("c.test", "not granted"),
    ] {
        let (text, is_error) = run(&server, FETCH, grant.clone(), url(host)).await;
        assert!(is_error && text.contains(&format!("[network] refused {host}:{port}: {why}")), "{text}");
    }
    let (text, is_error) = run(&server, FETCH, json!("full"), url("a.w.test")).await;
    assert!(is_error && text.contains("`full` means ports 80 and 443"), "{text}");
    let raw =
        "import socket\n\ndef main(host: str, port: int) -> str:\n    socket.create_connection((host, port), 5)\n";
    let (text, is_error) = run(&server, raw, grant, json!({"host": "b.w.test", "port": port})).await;
    assert!(is_error && text.contains("go through the HTTP proxy alone"), "{text}");
}

#[tokio::test]
async fn no_udp_leaves_and_no_socket_is_raw() {
    let outside = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    outside.set_nonblocking(true).unwrap();
    let port = outside.local_addr().unwrap().port();
    let server = server(&["--network-hosts", "a.test=127.0.0.1"]);
    let code = "import socket\n\ndef main(port: int) -> dict:\n    \
        udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n    \
        for host in ('a.test', '127.0.0.1', '192.0.2.7'):\n        udp.sendto(b'out', (host, port))\n    \
        raw = []\n    \
        for family, kind in ((socket.AF_INET, socket.SOCK_RAW), (socket.AF_PACKET, socket.SOCK_RAW)):\n        \
            try:\n            raw.append(socket.socket(family, kind, 1).fileno())\n        \
            except OSError as error:\n            raw.append(error.strerror)\n    \
        return {'raw': raw}\n";
    let (text, is_error) = run(&server, code, json!(["a.test"]), json!({"port": port})).await;
    assert!(!is_error, "{text}");
    let raw: Value = serde_json::from_str(&text).unwrap();
    assert!(raw["raw"].as_array().unwrap().iter().all(Value::is_string), "{raw}");
    assert_eq!(outside.recv(&mut [0u8; 8]).unwrap_err().kind(), std::io::ErrorKind::WouldBlock);
    let unreached = last_run(&server).await["network"]["unreached"].clone();
    let hosts: Vec<&str> = unreached.as_array().unwrap().iter().map(|one| one["host"].as_str().unwrap()).collect();
    assert_eq!(hosts, ["a.test", "192.0.2.7"], "{unreached}");
    assert!(unreached.to_string().contains("only TCP leaves"), "{unreached}");
}

#[tokio::test]
async fn learning_lets_nothing_out_and_proposes_what_to_grant() {
    let outside = TcpListener::bind("127.0.0.1:0").unwrap();
    outside.set_nonblocking(true).unwrap();
    let port = outside.local_addr().unwrap().port();
    // Under the default policy: a run without reach needs no approval.
    let server = Server::start(&["--network-private-allow", "127.0.0.0/8", "--network-hosts", "a.test=127.0.0.1"]);
    let code = "import os, socket\n\ndef main(port: int) -> str:\n    \
        for host, port in (('a.test', port), ('bücher.test', 443), ('192.0.2.1', 25)):\n        \
            try:\n            socket.create_connection((host, port), 5)\n        \
            except OSError:\n            pass\n    \
        return os.environ['API_KEY']\n";
    let tool = json!({"name": "t", "code": code, "network": [format!("a.test:{port}")], "secrets": ["API_KEY"]});
    server.create(tool).await;
    let test = json!({"name": "t", "learn": true, "arguments": {"port": port}});
    let answer = server.rpc("tools/call", json!({"name": "omniforge_test_tool", "arguments": test})).await;
    let content = answer["result"]["content"].as_array().unwrap_or_else(|| panic!("{answer}"));
    assert_eq!(content[0]["text"], "placeholder-for-API_KEY", "{answer}");
    let report = content.last().unwrap()["text"].as_str().unwrap().strip_prefix("[test run]\n").unwrap();
    let report: Value = serde_json::from_str(report).unwrap();
    assert_eq!(
        report["proposed_network"],
        json!([
            {"entry": format!("a.test:{port}")},
            {"entry": "xn--bcher-kva.test:443", "reads": "bücher.test"},
            {"entry": "192.0.2.1:25"},
        ])
    );
    assert_eq!(report["network"]["connections"], 0);
    assert_eq!(outside.accept().unwrap_err().kind(), std::io::ErrorKind::WouldBlock);
}

#[tokio::test]
async fn a_weaker_sandbox_says_what_it_does_not_hold() {
    let server = server(&["--sandbox", "landlock"]);
    let (text, is_error) = run(&server, FETCH, json!(["a.test"]), json!({"url": "http://a.test/"})).await;
    assert!(is_error && text.contains("[network] the sandbox `landlock` lets no connection out"), "{text}");
    let test = json!({"code": "def main():\n    return 1\n", "learn": true});
    let (text, is_error) = server.call("omniforge_test_tool", test).await;
    assert!(is_error && text.contains("needs the full sandbox"), "{text}");
}
