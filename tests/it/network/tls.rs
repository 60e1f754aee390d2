//! TLS from inside the sandbox to a server of the test's own: end to end, with the server's own certificate.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::Arc;

use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use serde_json::json;

use super::{run, server};

/// An HTTPS server for `a.test`; its port and its certificate.
fn https_server() -> (u16, String) {
    let _installed_already = rustls::crypto::ring::default_provider().install_default();
    let made = rcgen::generate_simple_self_signed(vec!["a.test".to_owned()]).unwrap();
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(made.signing_key.serialize_der()));
    let config = rustls::ServerConfig::builder().with_no_client_auth();
    let config = Arc::new(config.with_single_cert(vec![made.cert.der().clone()], key).unwrap());
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let connection = rustls::ServerConnection::new(Arc::clone(&config)).unwrap();
            let mut stream = rustls::StreamOwned::new(connection, stream.unwrap());
            // A client that doesn't trust the certificate breaks off.
            let mut request = [0u8; 4096];
            if stream.read(&mut request).is_ok() {
                let _gone =
                    stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\nConnection: close\r\n\r\nsecure");
                stream.conn.send_close_notify();
                let _gone = stream.flush();
            }
        }
    });
    (port, made.cert.pem())
}

const PYTHON: &str = "import ssl, urllib.request\n\ndef main(url: str, certificate: str) -> str:\n    \
    context = ssl.create_default_context(cadata=certificate)\n    \
    return urllib.request.urlopen(url, timeout=10, context=context).read().decode()\n";

const NODE: &str = "import { execFileSync } from 'node:child_process';\nimport { writeFileSync } from 'node:fs';\n\
    export default function main({ url, certificate }) {\n  writeFileSync('ca.pem', certificate);\n  \
    const code = `fetch('${url}').then(async (answer) => process.stdout.write(await answer.text()))`;\n  \
    const env = { ...process.env, NODE_EXTRA_CA_CERTS: 'ca.pem' };\n  \
    return execFileSync(process.execPath, ['-e', code], { env }).toString();\n}\n";

const CURL: &str = "printf %s \"$ARG_CERTIFICATE\" > ca.pem\ncurl -sS --max-time 10 --cacert ca.pem \"$ARG_URL\"\n";

#[tokio::test]
async fn tls_is_intact_for_clients_of_every_language() {
    let (port, certificate) = https_server();
    let server = server(&["--network-hosts", "a.test=127.0.0.1"]);
    let arguments = json!({"url": format!("https://a.test:{port}/"), "certificate": certificate});
    // By its own listener, and through the proxy's CONNECT.
    for grant in [json!([format!("a.test:{port}")]), json!([format!("a.test:{port}"), "*.w.test"])] {
        let (text, is_error) = run(&server, PYTHON, grant.clone(), arguments.clone()).await;
        assert_eq!((text.as_str(), is_error), ("secure", false));
        for (language, program, code) in [("javascript", "node", NODE), ("bash", "curl", CURL)] {
            if !std::path::Path::new("/usr/bin").join(program).exists() {
                continue;
            }
            let tool = json!({"name": program, "language": language, "code": code, "network": grant, "replace": true,
                "input_schema": {"type": "object"}});
            server.create(tool).await;
            let (text, is_error) = server.call(program, arguments.clone()).await;
            assert_eq!((text.as_str(), is_error), ("secure", false), "{program}");
        }
    }
    // Somebody else's certificate is refused by the client: nobody stands in between.
    let other = rcgen::generate_simple_self_signed(vec!["a.test".to_owned()]).unwrap().cert.pem();
    let arguments = json!({"url": format!("https://a.test:{port}/"), "certificate": other});
    let (text, is_error) = run(&server, PYTHON, json!([format!("a.test:{port}")]), arguments).await;
    assert!(is_error && text.contains("CERTIFICATE_VERIFY_FAILED"), "{text}");
}
