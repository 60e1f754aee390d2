//! Attending a run: starting it, or coming back to it, and waiting until there is something to tell its caller.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use serde_json::{Map, Value, json};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::continuation::Continued;
use super::domain::{Answer, Asking, CallError, Handle, Resume};
use super::invoke::{Done, Invocation, Within};
use super::repeat::{self, Repeated};
use super::{Live, RunEnd, Tools, internal};
use crate::jobs::{Attending, Turn};
use crate::model::{CallReply, Ending, Mode, RunEvent, RunId, RunRow, Timestamp};

/// The lines to whoever called.
pub(super) struct Lines {
    /// Where events go.
    pub(super) events: mpsc::Sender<RunEvent>,
    /// Cancelled when the caller gives up.
    pub(super) cancel: CancellationToken,
}

/// How far a run has come.
pub(super) enum Attended {
    /// It is over.
    Ended(Arc<Done>),
    /// It waits for its client.
    Asking(Asking),
    /// It goes on without its caller.
    Detached(RunId, Timestamp),
    /// It is gone, and can't be replayed.
    Lost,
}

impl Tools {
    /// Runs a script, or goes on with its run, until there is something to tell.
    ///
    /// # Errors
    /// What is wrong with what the caller brought back.
    ///
    /// # Cancellation
    /// Dropping the future kills the run, unless it is detached.
    pub(super) async fn attend(
        &self,
        mut invocation: Invocation,
        resume: Resume,
        lines: Lines,
    ) -> Result<Attended, CallError> {
        invocation.idempotency = repeat::key(&invocation)?;
        let invocation = Arc::new(invocation);
        let begun = match self.continued(&invocation, &resume)? {
            Some(Continued::Live(live)) => Repeated::Live(live),
            Some(Continued::Gone(run, recorded)) => match (self.ended_run(run).await?, recorded) {
                (Some(done), _) => Repeated::Ended(done),
                (None, Some(recorded)) => self.start_or_repeat(&invocation, recorded).await?,
                (None, None) => return Ok(Attended::Lost),
            },
            Some(Continued::Fresh(recorded)) => self.start_or_repeat(&invocation, recorded).await?,
            None => self.start_or_repeat(&invocation, Map::new()).await?,
        };
        let live = match begun {
            Repeated::Live(live) => live,
            Repeated::Ended(done) => return Ok(Attended::Ended(done)),
            Repeated::Elsewhere(run, begun) => return Ok(Attended::Detached(run, begun)),
        };
        live.listen(lines.events);
        let attending = live.attend();
        let attended = match self.wait(&live, &invocation, (&lines.cancel, &attending)).await? {
            Turn::Ended(done) if lines.cancel.is_cancelled() && done.row.ending == Some(Ending::Cancelled) => {
                return Err(CallError::Cancelled);
            }
            Turn::Ended(done) => Attended::Ended(done),
            Turn::Asking(requests) => {
                let state = self.seal_state(&invocation, &live)?;
                Attended::Asking(Asking { run: live.id, requests, state })
            }
            Turn::Detached => {
                // Durable before anybody is told of it.
                self.store.flush_runs().await.map_err(|error| internal("a run could not be recorded", &error))?;
                Attended::Detached(live.id, live.begun)
            }
        };
        attending.leave();
        Ok(attended)
    }

    /// Waits for the run's next turn, for as long as its mode lets a caller wait. A caller that gives up stops the run,
    /// unless another waits for it, too.
    async fn wait(
        &self,
        live: &Live,
        invocation: &Invocation,
        (cancel, attending): (&CancellationToken, &Attending<RunEnd>),
    ) -> Result<Turn<RunEnd>, CallError> {
        let inline = match invocation.mode() {
            Mode::Async => Duration::ZERO,
            Mode::Auto => self.options.inline_wait,
            Mode::Sync => Duration::MAX,
        };
        if inline.is_zero() {
            live.detach();
        }
        let detach = async {
            tokio::time::sleep(inline).await;
            live.detach();
            std::future::pending::<()>().await;
        };
        let give_up = async {
            cancel.cancelled().await;
            if !attending.is_alone() {
                return Err(CallError::Cancelled);
            }
            live.cancel.cancel();
            Ok(live.turn(true).await)
        };
        tokio::select! {
            biased;
            turn = live.turn(false) => Ok(turn),
            turn = give_up => turn,
            () = detach => unreachable!("it waits forever once it has detached the run"),
        }
    }

    /// Starts a run in a task of its own, which lives until its row is written.
    pub(super) fn start(&self, invocation: &Arc<Invocation>, recorded: Map<String, Value>) -> Result<Live, CallError> {
        let row = self.first_row(self.clock.new_run_id(), invocation);
        self.start_row(invocation, row, recorded)
    }

    /// Starts the run of a row.
    pub(super) fn start_row(
        &self,
        invocation: &Arc<Invocation>,
        row: RunRow,
        recorded: Map<String, Value>,
    ) -> Result<Live, CallError> {
        self.store.start_run(row.clone()).map_err(|error| internal("a run could not be recorded", &error))?;
        let principal = invocation.caller.principal.clone();
        let (live, entry) =
            self.live.enter((row.id, row.queued_at), principal, self.lifecycle.killing.child_token(), recorded);
        let (tools, invocation, run) = (self.clone(), Arc::clone(invocation), live.clone());
        self.lifecycle.tasks.spawn(async move {
            let lost = row.clone();
            let within = Within { live: run.clone(), cancel: run.cancel.clone(), seat: None };
            let done = AssertUnwindSafe(tools.run(invocation, row, within)).catch_unwind().await;
            let done = done
                .unwrap_or_else(|_| Done { reply: Err(internal("a run's task panicked", &"see above")), row: lost });
            run.end(Arc::new(done));
            drop(entry);
        });
        Ok(live)
    }

    /// What a caller of a saved tool is told.
    ///
    /// # Errors
    /// As the run ended.
    pub(super) fn answer(&self, attended: Attended, outputs_checked: bool) -> Result<Answer, CallError> {
        match attended {
            Attended::Ended(done) => done.reply.clone().map(Answer::Reply),
            Attended::Asking(asking) => Ok(Answer::Asking(asking)),
            Attended::Detached(run, created_at) => {
                Ok(Answer::Handle(Handle { run, created_at, reply: handle_reply(run, outputs_checked) }))
            }
            Attended::Lost => Ok(Answer::Reply(CallReply::error(
                "this call waits for you no longer (the server was restarted, or its result is not kept), and its run is \
                 gone; call again without requestState",
            ))),
        }
    }
}

/// What clients without tasks are told of a run that goes on. Where an output schema is listed, a strict client takes no
/// other structured value, and a plain result not at all: only an error passes.
fn handle_reply(run: RunId, outputs_checked: bool) -> CallReply {
    let message = format!(
        "still running, do not call again: fetch the result with omniforge_get_run and run_id {run} (or get_job_result)"
    );
    let handle = json!({"status": "running", "job_id": run.to_string(), "message": message});
    let reply = if outputs_checked { CallReply::error(handle.to_string()) } else { CallReply::value(handle) };
    CallReply { run: Some(run), ..reply }
}
