//! The `requestState` of a call that waits for its client: sealed, bound to caller, tool and arguments, expiring.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::domain::{CallError, Resume};
use super::invoke::Invocation;
use super::{Tools, internal, questions};
use crate::jobs::{LiveRun, PATIENCE};
use crate::model::{Caller, RunId, VersionNumber};

/// Above this many bytes a state no longer carries what a replay would need.
const REPLAY_BYTES: usize = 64 << 10;

#[derive(Debug, Serialize, Deserialize)]
struct State {
    run: RunId,
    tool: String,
    version: Option<VersionNumber>,
    /// BLAKE3 over name and arguments (and code, where it is unsaved).
    digest: String,
    /// Seconds since 1970.
    expires: i64,
    /// The answers so far and what is open, where they are small enough to be replayed.
    replay: Option<Replay>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Replay {
    answers: Map<String, Value>,
    questions: Map<String, Value>,
}

/// What a retried call goes on with.
pub enum Continued<Run> {
    /// The run that waits.
    Live(Run),
    /// A new run that is given these answers when it asks.
    Fresh(Map<String, Value>),
    /// A run that does not wait any more; and what a new one would be given, where it can be replayed.
    Gone(RunId, Option<Map<String, Value>>),
}

impl Tools {
    /// Seals the state of a run that waits.
    pub(super) fn seal_state<End: Clone>(
        &self,
        invocation: &Invocation,
        run: &LiveRun<End>,
    ) -> Result<String, CallError> {
        let replay = Replay { answers: run.answers(), questions: run.questions() };
        let mut state = State {
            run: run.id,
            tool: invocation.name.clone(),
            version: invocation.version.as_ref().map(|(_, number)| *number),
            digest: digest(invocation),
            expires: self.clock.now().0 + i64::try_from(PATIENCE.as_millis()).unwrap_or(i64::MAX),
            replay: Some(replay),
        };
        let failed = |error: serde_json::Error| internal("a request state can't be written", &error);
        let mut plain = serde_json::to_vec(&state).map_err(failed)?;
        if plain.len() > REPLAY_BYTES {
            state.replay = None;
            plain = serde_json::to_vec(&state).map_err(failed)?;
        }
        self.states
            .seal(&plain, &holder(&invocation.caller))
            .map_err(|error| internal("a request state can't be sealed", &error))
    }

    /// What a retried call goes on with; its answers are checked and handed over.
    ///
    /// # Errors
    /// [`CallError::InvalidParams`] for a state that is not ours, not for this call, or too old, and for a wrong answer.
    pub(super) fn continued(
        &self,
        invocation: &Invocation,
        resume: &Resume,
    ) -> Result<Option<Continued<super::Live>>, CallError> {
        let Some(sealed) = &resume.state else {
            // Answers to what nobody asked yet: they are taken where they fit what will be asked.
            return Ok((!resume.answers.is_empty()).then(|| Continued::Fresh(resume.answers.clone())));
        };
        let wrong = |what: &str| CallError::InvalidParams(format!("requestState {what}; call again without it"));
        let plain = self.states.open(sealed, &holder(&invocation.caller));
        let plain = plain.ok_or_else(|| wrong("is none that this server made for this caller"))?;
        let state: State = serde_json::from_slice(&plain).map_err(|_| wrong("is of another release"))?;
        if state.tool != invocation.name || state.digest != digest(invocation) {
            return Err(wrong("belongs to a call with another tool or other arguments"));
        }
        if state.expires < self.clock.now().0 {
            return Err(wrong("has expired"));
        }
        if let Some(live) = self.live.get(state.run, Some(&invocation.caller.principal)) {
            let questions = live.questions();
            let mut refusals = resume.refusals.clone();
            let answers = match fitting(&questions, &resume.answers) {
                Err(_) if resume.at_hand => each_that_fits(&questions, &resume.answers, &mut refusals),
                checked => checked?,
            };
            live.answer(answers);
            live.refuse(refusals);
            return Ok(Some(Continued::Live(live)));
        }
        let version = invocation.version.as_ref().map(|(_, number)| *number);
        let idempotent = invocation.definition.annotations.get("idempotentHint") == Some(&Value::Bool(true));
        let recorded = match state.replay {
            Some(replay) if idempotent && version == state.version => {
                let mut recorded = replay.answers;
                recorded.extend(fitting(&replay.questions, &resume.answers)?);
                Some(recorded)
            }
            _ => None,
        };
        Ok(Some(Continued::Gone(state.run, recorded)))
    }
}

/// The answers that something waits for.
///
/// # Errors
/// [`CallError::InvalidParams`] for one that does not fit its question.
pub fn fitting(questions: &Map<String, Value>, answers: &Map<String, Value>) -> Result<Map<String, Value>, CallError> {
    let mut fitting = Map::new();
    for (key, answer) in answers {
        let Some(question) = questions.get(key) else { continue };
        questions::check_answer(question, answer)
            .map_err(|problem| CallError::InvalidParams(format!("inputResponses.{key}: {problem}")))?;
        fitting.insert(key.clone(), answer.clone());
    }
    Ok(fitting)
}

/// The answers that fit; of the others, the script is told what is wrong.
fn each_that_fits(
    questions: &Map<String, Value>,
    answers: &Map<String, Value>,
    refusals: &mut BTreeMap<String, String>,
) -> Map<String, Value> {
    let mut fit = Map::new();
    for (key, answer) in answers {
        match questions.get(key).map(|question| questions::check_answer(question, answer)) {
            Some(Ok(())) => drop(fit.insert(key.clone(), answer.clone())),
            Some(Err(problem)) => drop(refusals.insert(key.clone(), format!("its answer is no answer: {problem}"))),
            None => {}
        }
    }
    fit
}

/// Whom a state is for: the principal, within the toolset that its calls are limited to.
fn holder(caller: &Caller) -> Vec<u8> {
    let toolset = caller.toolset.as_ref().map(|toolset| toolset.0.as_str());
    json!([caller.principal.0, toolset]).to_string().into_bytes()
}

fn digest(invocation: &Invocation) -> String {
    let mut hasher = blake3::Hasher::new();
    hasher.update(invocation.name.as_bytes()).update(&[0]);
    if invocation.version.is_none() {
        hasher.update(invocation.definition.code.as_bytes()).update(&[0]);
    }
    hasher.update(invocation.arguments.json.canonical().as_bytes());
    hasher.finalize().to_hex().to_string()
}
