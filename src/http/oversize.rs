//! Results that are larger than the largest event their client reads. Nothing can be said after progress or logs but in
//! the stream that those opened; a client that would only break off is told where the result is instead.

use bytes::Bytes;
use http::HeaderMap;
use http::header::USER_AGENT;
use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;

use super::answer::message;

/// What the official Python client reads of one event, unless its program sets `max_sse_event_size`.
const PYTHON_CLIENT: (&str, usize) = ("python-httpx2/", 1 << 20);

/// The most bytes of an event that this client is known to read.
pub(super) fn event_limit(headers: &HeaderMap) -> Option<usize> {
    let agent = headers.get(USER_AGENT)?.to_str().ok()?;
    let (name, limit) = PYTHON_CLIENT;
    agent.starts_with(name).then_some(limit)
}

/// The event of a tool's result, or the event that says why it is not sent.
pub(super) fn fit(event: Bytes, limit: usize) -> Bytes {
    if event.len() <= limit {
        return event;
    }
    explained(&event, limit).map_or(event, Bytes::from)
}

#[derive(Deserialize)]
struct Reply<'a> {
    #[serde(borrow)]
    id: &'a RawValue,
    result: Outcome,
}

#[derive(Deserialize)]
struct Outcome {
    /// What tells a tool's result from others.
    #[serde(rename = "content")]
    _content: serde::de::IgnoredAny,
    #[serde(rename = "resultType")]
    kind: Option<String>,
    #[serde(rename = "_meta")]
    meta: Option<Box<RawValue>>,
}

fn explained(event: &Bytes, limit: usize) -> Option<Vec<u8>> {
    let (data, true) = message(event)? else { return None };
    let reply: Reply = serde_json::from_slice(&data).ok()?;
    let text = format!(
        "The call ended, but its result was not sent: it has {} bytes, and in a stream this client reads at \
         most {limit} bytes at once (its `max_sse_event_size`). omniforge_list_runs finds the run, and omniforge_get_run \
         shows its result.",
        data.len()
    );
    let mut result = json!({"content": [{"type": "text", "text": text}], "isError": true});
    if let Some(kind) = reply.result.kind {
        result["resultType"] = kind.into();
    }
    if let Some(meta) = reply.result.meta.filter(|meta| meta.get().len() < limit / 2) {
        result["_meta"] = serde_json::from_str(meta.get()).ok()?;
    }
    let said = json!({"jsonrpc": "2.0", "id": reply.id, "result": result}).to_string();
    let lines = event.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    let mut written = Vec::new();
    for line in lines {
        if line.starts_with(b"data:") {
            written.extend_from_slice(b"data: ");
            written.extend_from_slice(said.as_bytes());
        } else {
            written.extend_from_slice(line);
        }
        written.push(b'\n');
    }
    written.push(b'\n');
    Some(written)
}
