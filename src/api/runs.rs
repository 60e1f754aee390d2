//! What a run says and prints: its log live, its outputs in pieces.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::Extension;
use axum::body::Body;
use axum::extract::{Path, Query, State};
use axum::response::Response;
use http::StatusCode;
use serde::Deserialize;
use serde_json::json;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::mpsc;

use super::ApiState;
use super::call::refused;
use super::door::{answer, failed};
use crate::http::{event_stream, problem};
use crate::model::{Caller, RunEvent, RunRow};
use crate::tools::{CallError, RunFeed, Tools};

/// How often a silent stream says that it lives.
const HEARTBEAT: Duration = Duration::from_secs(15);
/// How many events may wait for a client that reads slowly.
const WAITING: usize = 64;

/// `GET /api/v1/runs/{run_id}/log`: `log` and `progress` events as the run says them, and one `end`.
pub(super) async fn log(
    State(api): State<Arc<ApiState>>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
) -> Response {
    let feed = match api.tools.follow_run(&caller, &id).await {
        Ok(feed) => feed,
        Err(CallError::InvalidParams(_)) => return problem(StatusCode::NOT_FOUND, format!("there is no run {id}")),
        Err(error) => return refused(&error),
    };
    let (sender, receiver) = mpsc::channel(WAITING);
    let (tools, ended) = (api.tools.clone(), api.identify.ended(&caller));
    tokio::spawn(async move {
        tokio::select! {
            _ = tell(&tools, feed, &sender) => {}
            () = ended.cancelled() => {}
            () = tools.lifecycle.closing.cancelled() => {}
        }
    });
    let events = futures::stream::unfold(receiver, |mut receiver| async move {
        let event: String = receiver.recv().await?;
        Some((Ok::<_, Infallible>(event), receiver))
    });
    event_stream(Body::from_stream(events))
}

/// Tells a feed to its end; `None` when nobody reads any more.
async fn tell(tools: &Tools, feed: RunFeed, sender: &mpsc::Sender<String>) -> Option<()> {
    let RunFeed { row, past, live } = feed;
    for event in past {
        sender.send(written(&event)?).await.ok()?;
    }
    if let Some((mut news, over)) = live {
        loop {
            let text = tokio::select! {
                biased;
                event = news.recv() => match event {
                    Ok(event) => written(&event)?,
                    Err(RecvError::Lagged(missed)) => format!("event: missed\ndata: {{\"events\":{missed}}}\n\n"),
                    Err(RecvError::Closed) => break,
                },
                () = over.cancelled() => break,
                () = tokio::time::sleep(HEARTBEAT) => ": alive\n\n".to_owned(),
            };
            sender.send(text).await.ok()?;
        }
    }
    let row = tools.run_after(&row).await.unwrap_or(row);
    sender.send(end(&row)).await.ok()
}

fn written(event: &RunEvent) -> Option<String> {
    let name = match event {
        RunEvent::Log { .. } => "log",
        RunEvent::Progress { .. } => "progress",
        RunEvent::CloseStream => return Some(": the stream of the call was closed\n\n".to_owned()),
    };
    Some(format!("event: {name}\ndata: {}\n\n", serde_json::to_string(event).ok()?))
}

fn end(row: &RunRow) -> String {
    let status = row.ending.as_ref().map_or("running", |ending| ending.as_str());
    let data = json!({"run_id": row.id.to_string(), "status": status, "is_error": row.is_error});
    format!("event: end\ndata: {data}\n\n")
}

/// From where a piece is wanted.
#[derive(Deserialize)]
pub(super) struct Piece {
    #[serde(default)]
    offset: u64,
}

/// `GET /api/v1/runs/{run_id}/outputs/{stream}`: a piece of `stdout` or `stderr`.
pub(super) async fn output(
    State(api): State<Arc<ApiState>>,
    Extension(caller): Extension<Caller>,
    Path((id, stream)): Path<(String, String)>,
    Query(piece): Query<Piece>,
) -> Response {
    match api.tools.run_output(&caller, (&id, &stream), piece.offset).await {
        Ok(Some(resource)) => answer(StatusCode::OK, &resource),
        Ok(None) => {
            problem(StatusCode::NOT_FOUND, format!("run {id} has no `{stream}` there; known are stdout and stderr"))
        }
        Err(error) => failed(&error),
    }
}
