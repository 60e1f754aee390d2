//! An HTTP load from a process of its own: the same JSON-RPC request again and again, from some clients at once, each on
//! a connection of its own. Prints one line of JSON: how many answers, how fast, and how long each took.
//!
//! `benches/measure/load.py` starts it. It checks every answer: a wrong one ends it.

use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};
use bytes::Bytes;
use clap::Parser;
use http::{HeaderMap, HeaderName, HeaderValue, Request, Uri};
use http_body_util::{BodyExt as _, Full};
use hyper::client::conn::http1::SendRequest;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

/// Stands in a body for the request's number.
const ID: &str = "__ID__";
/// How far into an answer the expected text is looked for.
const LOOKED_AT: usize = 4096;
/// How late a paced request may leave without counting from when it was due.
const LATE: Duration = Duration::from_millis(2);

/// Loads a server.
#[derive(Parser)]
struct Options {
    /// Where the requests go.
    #[arg(long)]
    url: Uri,
    /// The body of each request; `__ID__` in it becomes the request's number.
    #[arg(long)]
    body: String,
    /// Further headers, as `name: value`.
    #[arg(long = "header")]
    headers: Vec<String>,
    /// Stands in the first 4 KiB of each right answer.
    #[arg(long)]
    expect: String,
    /// Each client opens a session with this `initialize` first.
    #[arg(long)]
    initialize: Option<String>,
    /// Clients at once.
    #[arg(long, default_value_t = 1)]
    clients: usize,
    /// For how long.
    #[arg(long, default_value_t = 10.0)]
    seconds: f64,
    /// Requests a second, of all clients together; as fast as they are answered where it is left out.
    #[arg(long)]
    rate: Option<f64>,
}

/// One client and its connection.
struct Client {
    url: Uri,
    address: String,
    headers: HeaderMap,
    sender: Option<SendRequest<Full<Bytes>>>,
    connections: u64,
}

/// What one client measured.
#[derive(Default)]
struct Measured {
    latencies: Vec<u64>,
    connections: u64,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let options = Options::parse();
    let mut headers = HeaderMap::new();
    for header in &options.headers {
        let (name, value) = header.split_once(':').with_context(|| format!("`{header}` is no `name: value`"))?;
        headers.insert(HeaderName::try_from(name.trim())?, HeaderValue::from_str(value.trim())?);
    }
    let mut clients = Vec::new();
    for _ in 0..options.clients {
        clients.push(Client::open(&options, headers.clone()).await?);
    }
    let started = Instant::now();
    let until = started + Duration::from_secs_f64(options.seconds);
    let work = clients.into_iter().enumerate().map(|(number, client)| {
        let pace = options.rate.map(|rate| {
            let every = Duration::from_secs_f64(options.clients as f64 / rate);
            (started + every.mul_f64(number as f64 / options.clients as f64), every)
        });
        client.work(&options, pace, until)
    });
    let measured = futures::future::try_join_all(work).await?;
    report(&measured, started.elapsed());
    Ok(())
}

impl Client {
    async fn open(options: &Options, headers: HeaderMap) -> anyhow::Result<Self> {
        let authority = options.url.authority().context("the URL names no host")?;
        let address = format!("{}:{}", authority.host(), authority.port_u16().unwrap_or(80));
        let mut client = Self { url: options.url.clone(), address, headers, sender: None, connections: 0 };
        if let Some(initialize) = &options.initialize {
            let (head, _) = client.ask(Bytes::from(initialize.clone())).await?;
            let id = head.get("mcp-session-id").context("`initialize` gave no session")?.clone();
            client.headers.insert("mcp-session-id", id);
            let told = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
            client.ask(Bytes::from_static(told.as_bytes())).await?;
        }
        Ok(client)
    }

    /// Sends its requests until the time is over.
    async fn work(
        mut self,
        options: &Options,
        pace: Option<(Instant, Duration)>,
        until: Instant,
    ) -> anyhow::Result<Measured> {
        let mut latencies = Vec::new();
        let (mut due, every) = pace.unwrap_or((Instant::now(), Duration::ZERO));
        for number in 1.. {
            let mut begun = Instant::now();
            if pace.is_some() {
                tokio::time::sleep_until(due.into()).await;
                begun = Instant::now();
                // Held up by the answer before it: what its caller would have waited counts.
                if begun > due + LATE {
                    begun = due;
                }
                due += every;
            }
            if Instant::now() >= until {
                break;
            }
            let body = Bytes::from(options.body.replace(ID, &number.to_string()));
            let (_, answer) = self.ask(body).await?;
            latencies.push(u64::try_from(begun.elapsed().as_nanos()).unwrap_or(u64::MAX));
            let looked_at = &answer[..answer.len().min(LOOKED_AT)];
            let right = looked_at.windows(options.expect.len()).any(|part| part == options.expect.as_bytes());
            ensure!(right, "a wrong answer: {}", String::from_utf8_lossy(looked_at));
        }
        Ok(Measured { latencies, connections: self.connections })
    }

    /// Sends one request and reads the whole answer.
    async fn ask(&mut self, body: Bytes) -> anyhow::Result<(HeaderMap, Bytes)> {
        for again in [true, false] {
            let sender = self.connected().await?;
            let ready = sender.ready().await.is_ok();
            if !ready && again {
                self.sender = None;
                continue;
            }
            let mut request = Request::post(self.url.path()).body(Full::new(body.clone()))?;
            *request.headers_mut() = self.headers.clone();
            let Some(sender) = &mut self.sender else { bail!("there is no connection") };
            let response = match sender.send_request(request).await {
                Ok(response) => response,
                // Closed by the server between two requests.
                Err(error) if again && (error.is_canceled() || error.is_incomplete_message()) => {
                    self.sender = None;
                    continue;
                }
                Err(error) => return Err(error.into()),
            };
            let (head, body) = response.into_parts();
            let answer = body.collect().await?.to_bytes();
            ensure!(head.status.is_success(), "{}: {}", head.status, String::from_utf8_lossy(&answer));
            return Ok((head.headers, answer));
        }
        bail!("the server closes every connection before it answers")
    }

    async fn connected(&mut self) -> anyhow::Result<&mut SendRequest<Full<Bytes>>> {
        if self.sender.as_ref().is_none_or(SendRequest::is_closed) {
            let stream = TcpStream::connect(&self.address).await?;
            stream.set_nodelay(true)?;
            let (sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
            // It ends with its sender; what breaks it, the sender hears.
            tokio::spawn(connection);
            self.connections += 1;
            self.headers.insert(http::header::HOST, HeaderValue::from_str(&self.address)?);
            self.sender = Some(sender);
        }
        self.sender.as_mut().context("there is no connection")
    }
}

fn report(measured: &[Measured], took: Duration) {
    let mut all: Vec<u64> = measured.iter().flat_map(|one| &one.latencies).copied().collect();
    all.sort_unstable();
    let at = |part: f64| {
        let index = ((all.len() as f64 * part) as usize).min(all.len().saturating_sub(1));
        all.get(index).map_or(0.0, |nanoseconds| *nanoseconds as f64 / 1e6)
    };
    let mean = all.iter().sum::<u64>() as f64 / all.len().max(1) as f64 / 1e6;
    let report = serde_json::json!({
        "count": all.len(),
        "seconds": took.as_secs_f64(),
        "rate": all.len() as f64 / took.as_secs_f64(),
        "connections": measured.iter().map(|one| one.connections).sum::<u64>(),
        "mean": mean, "p50": at(0.5), "p90": at(0.9), "p99": at(0.99), "most": at(1.0),
    });
    println!("{report}");
}
