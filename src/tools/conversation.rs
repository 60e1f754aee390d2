//! What a running script says: its log is kept, its events go to whoever listens, its requests are answered.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Map, Value};
use tokio::sync::{Mutex, mpsc};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::invoke::Invocation;
use super::questions::{self, Asker, Unaskable};
use super::state::Scratch;
use super::{Live, Tools};
use crate::jobs::Seat;
use crate::model::{Json, RunEvent, RunId};
use crate::runner::{HostRefusal, HostRequest, Said};

/// The most bytes of log kept with a run.
const LOG_BYTES: usize = 1 << 20;

/// One run's talk with the server.
pub(super) struct Talk {
    pub(super) tools: Tools,
    pub(super) invocation: Arc<Invocation>,
    pub(super) run: RunId,
    /// The run whose caller is asked: the outermost one.
    pub(super) live: Live,
    pub(super) seat: Arc<Seat>,
    /// Cancelled when the run has ended: what it asked for is then done with.
    pub(super) over: CancellationToken,
    /// Held by the nested call that goes on.
    pub(super) calls: Mutex<()>,
    pub(super) scratch: Scratch,
}

/// What is left of it.
#[derive(Debug, Default)]
pub(super) struct Heard {
    /// The log, a JSON line for each message.
    pub(super) log: String,
    /// The capability that the client lacked, where the script asked for one.
    pub(super) missing: Option<Value>,
}

impl Talk {
    /// Listens until the run has ended.
    pub(super) async fn listen(self, mut said: mpsc::Receiver<Said>) -> Heard {
        let talk = Arc::new(self);
        let (mut heard, mut full) = (Heard::default(), false);
        let mut requests = JoinSet::new();
        while let Some(said) = said.recv().await {
            match said {
                Said::Event(event) => {
                    keep(&mut heard.log, &mut full, &event);
                    talk.tell(event).await;
                }
                Said::Request(request) if request.method == "ask" => match talk.prepare(&request.params) {
                    Ok(prepared) => drop(requests.spawn(Arc::clone(&talk).ask(request, prepared))),
                    Err(Unaskable::Missing { required, text }) => {
                        heard.missing = Some(required);
                        let _ = request.answer.send(Err(HostRefusal { kind: "missing_capability", message: text }));
                    }
                    Err(Unaskable::Wrong(text)) => drop(request.answer.send(Err(HostRefusal::error(text)))),
                },
                Said::Request(request) => drop(requests.spawn(Arc::clone(&talk).serve(request))),
            }
            while requests.try_join_next().is_some() {}
        }
        // Nested runs end, and their rows are written, before this one's is.
        talk.over.cancel();
        while requests.join_next().await.is_some() {}
        heard
    }

    /// Hands an event on. A nested run's progress would mix with its caller's.
    async fn tell(&self, event: RunEvent) {
        if self.invocation.parent.is_none() || matches!(event, RunEvent::Log { .. }) {
            self.live.tell(event).await;
        }
    }

    /// The requests, checked and completed.
    fn prepare(&self, params: &Json) -> Result<Map<String, Value>, Unaskable> {
        #[derive(Deserialize)]
        struct Wanted {
            requests: Map<String, Value>,
        }
        let requests = serde_json::from_str(params.get()).ok().map(|Wanted { requests }| requests);
        let mut requests = requests
            .filter(|requests| !requests.is_empty())
            .ok_or_else(|| Unaskable::Wrong("ask for at least one thing, by key".to_owned()))?;
        let (network, invocation) = (self.invocation.network(), &self.invocation);
        let asker = Asker { tool: &invocation.name, network: &network, client: &invocation.client };
        for request in requests.values_mut() {
            questions::prepare(request, asker)?;
        }
        Ok(requests)
    }

    /// Parks the run until its client has answered: its slot is free and its clock stands.
    async fn ask(self: Arc<Self>, request: HostRequest, requests: Map<String, Value>) {
        let HostRequest { clock, answer, .. } = request;
        let stopped = clock.stop();
        self.seat.leave();
        let asked = async {
            let fits = |request: &Value, answer: &Value| questions::check_answer(request, answer).is_ok();
            let answers = self.live.ask(requests, fits).await;
            self.seat.come_back().await;
            answers
        };
        let answers = tokio::select! {
            answers = asked => answers,
            () = self.over.cancelled() => return,
        };
        drop(stopped);
        let answers = answers
            .map(|answers| Json::from(&Value::Object(answers)))
            .map_err(|refused| HostRefusal::error(refused.to_string()));
        let _ = answer.send(answers); // the script may have gone
    }

    /// Serves every other request.
    async fn serve(self: Arc<Self>, request: HostRequest) {
        let HostRequest { method, params, answer, .. } = request;
        let served = match method.as_str() {
            "start_task" if self.invocation.parent.is_some() => {
                Err(HostRefusal::error("a tool that another one called can't become a task"))
            }
            "start_task" => {
                self.live.detach();
                Ok(Json::empty_object())
            }
            "close_stream" => {
                self.tell(RunEvent::CloseStream).await;
                Ok(Json::empty_object())
            }
            "notify" | "resource_updated" => self.tools.notice(&self.invocation.caller.principal, &method, &params),
            "call" => self.tools.call_nested(&self, &params).await,
            "state.get" | "state.set" | "state.delete" => {
                self.tools.state(&self.invocation, &self.scratch, &method, &params).await
            }
            other => Err(HostRefusal::error(format!("the server knows no request `{other}`"))),
        };
        let _ = answer.send(served); // the script may have gone
    }
}

/// Keeps a log message, up to the limit.
fn keep(log: &mut String, full: &mut bool, event: &RunEvent) {
    if *full || !matches!(event, RunEvent::Log { .. }) {
        return;
    }
    let line = serde_json::to_string(event).unwrap_or_default();
    *full = log.len() + line.len() > LOG_BYTES;
    log.push_str(if *full { "{\"truncated\":true}" } else { &line });
    log.push('\n');
}
