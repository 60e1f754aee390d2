//! The least that an axum server can do: one body, the same for everybody. What `tools/list` is held against.

use axum::Router;
use axum::response::IntoResponse as _;
use axum::routing::post;
use bytes::Bytes;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let file = std::env::args().nth(1).ok_or_else(|| anyhow::anyhow!("usage: static_body FILE"))?;
    let body = Bytes::from(std::fs::read(file)?);
    let answer = move |_request: Bytes| async move {
        ([(http::header::CONTENT_TYPE, "application/json")], body.clone()).into_response()
    };
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    println!("http://{}/", listener.local_addr()?);
    axum::serve(listener, Router::new().route("/", post(answer))).await?;
    Ok(())
}
