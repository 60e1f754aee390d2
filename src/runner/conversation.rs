//! The talk with the harness over its socket: the dispatch goes in; events, requests and the result come out; answers go
//! back.

use std::sync::Arc;

use serde::Serialize;
use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::sync::{mpsc, oneshot};

use super::frames::{self, Frame, FrameError, FrameReader};
use super::host::{HostRefusal, HostRequest, RunClock, Said};
use super::mask::Masker;
use crate::model::Json;

/// How many requests of one script may be open at once.
const OPEN_REQUESTS: usize = 64;

/// One run's talk.
pub(super) struct Conversation<'a> {
    /// Where what the script says goes.
    pub(super) listener: &'a mpsc::Sender<Said>,
    /// The run's clock.
    pub(super) clock: RunClock,
    /// The most bytes of a result.
    pub(super) result_limit: u64,
    /// What takes secrets out of what it says.
    pub(super) masker: Option<Arc<Masker>>,
}

impl Conversation<'_> {
    /// Sends the dispatch and takes frames until the last one.
    ///
    /// # Cancellation
    /// Dropping the future ends the talk; the socket stays the caller's.
    pub(super) async fn hold(&self, control: &mut UnixStream, frame: Vec<u8>) -> Result<Option<Frame>, FrameError> {
        let (mut from_tool, mut to_tool) = control.split();
        let (answers, outgoing) = mpsc::channel(OPEN_REQUESTS);
        let receive = async {
            let mut reader = FrameReader::new(self.result_limit, self.masker.clone());
            loop {
                match reader.next(&mut from_tool).await? {
                    // A listener that is gone misses events; the run goes on. One that is behind is waited for.
                    Some(Frame::Event(event)) => drop(self.listener.send(Said::Event(event)).await),
                    Some(Frame::Request { id, method, params }) => self.ask(id, method, params, &answers).await,
                    last => return Ok(last),
                }
            }
        };
        tokio::select! {
            last = receive => last,
            () = send(&mut to_tool, frame, outgoing) => Ok(None),
        }
    }

    /// Hands a request on; its answer comes back through `answers` when there is one.
    async fn ask(&self, id: u64, method: String, params: Json, answers: &mpsc::Sender<Answer>) {
        let Ok(place) = answers.clone().try_reserve_owned() else {
            // Refused without a place in the queue would need one: the script that floods us waits here.
            let _sent = answers.send(refused(id, "too many requests of this script are open at once")).await;
            return;
        };
        let (sender, receiver) = oneshot::channel();
        let request = HostRequest { method, params, clock: self.clock.clone(), answer: sender };
        if self.listener.send(Said::Request(request)).await.is_err() {
            place.send(refused(id, "nobody answers requests of this run"));
            return;
        }
        tokio::spawn(async move {
            let answer = receiver.await.unwrap_or_else(|_| Err(HostRefusal::error("the server gave no answer")));
            place.send(Answer { id, answer });
        });
    }
}

/// An answer as the script gets it.
#[derive(Serialize)]
struct AnswerFrame {
    id: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<Json>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<HostRefusal>,
}

/// An answer on its way to the script.
struct Answer {
    id: u64,
    answer: Result<Json, HostRefusal>,
}

fn refused(id: u64, text: &str) -> Answer {
    Answer { id, answer: Err(HostRefusal::error(text)) }
}

/// Writes the dispatch, then every answer. A tool that doesn't read ends by itself or at its deadline.
async fn send(to_tool: &mut (impl AsyncWrite + Unpin), frame: Vec<u8>, mut outgoing: mpsc::Receiver<Answer>) {
    let mut open = to_tool.write_all(&frame).await.is_ok();
    drop(frame);
    while let Some(Answer { id, answer }) = outgoing.recv().await {
        let (result, error) = match answer {
            Ok(result) => (Some(result), None),
            Err(refusal) => (None, Some(refusal)),
        };
        let message = AnswerFrame { id, result, error };
        if open && let Some(bytes) = frames::to_frame(&message) {
            open = to_tool.write_all(&bytes).await.is_ok();
        }
    }
    std::future::pending::<()>().await;
}
