//! The runs of this process that have not ended: whose they are, who listens, what they ask, and how to stop them.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::{Map, Value};
use tokio::sync::{Semaphore, broadcast, mpsc, oneshot, watch};
use tokio_util::sync::CancellationToken;

use crate::model::{PrincipalId, RunEvent, RunId, Timestamp};
pub use attending::Attending;
use heard::Heard;

/// How many runs may be parked at once, waiting for people.
const PARKED: usize = 32;
/// How long a listener that is behind is waited for, once.
const LISTENER: Duration = Duration::from_secs(1);
/// How long a run waits for an answer.
pub const PATIENCE: Duration = Duration::from_secs(600);

/// The live runs of this process; `End` is what they end with. Clones share them.
#[derive(Debug)]
pub struct LiveRuns<End> {
    runs: Arc<Mutex<HashMap<RunId, Arc<LiveRun<End>>>>>,
    parked: Arc<Semaphore>,
    patience: Duration,
}

/// How many events are kept for those who come later to look on.
const PAST: usize = 128;

/// One of them.
#[derive(Debug)]
pub struct LiveRun<End> {
    /// Its id.
    pub id: RunId,
    /// When it was asked for.
    pub begun: Timestamp,
    /// Whose it is.
    pub principal: PrincipalId,
    /// Kills it.
    pub cancel: CancellationToken,
    state: Mutex<State<End>>,
    /// Counts changes of the state.
    changed: watch::Sender<u64>,
    parked: Arc<Semaphore>,
    patience: Duration,
    /// For those who look on.
    news: broadcast::Sender<RunEvent>,
    /// Cancelled when it has ended.
    over: CancellationToken,
    /// How many callers wait for it.
    attending: AtomicUsize,
}

#[derive(Debug)]
struct State<End> {
    listener: Option<mpsc::Sender<RunEvent>>,
    heard: Heard,
    /// Whether the listener was waited for in vain.
    behind: bool,
    /// The last events, for those who come later to look on.
    past: VecDeque<RunEvent>,
    questions: BTreeMap<String, Question>,
    /// How often each key was used: keys are never used twice.
    keys: HashMap<String, u32>,
    /// Every answer so far.
    answers: Map<String, Value>,
    /// Answers of an earlier run of the same call, which this one replays.
    recorded: Map<String, Value>,
    detached: bool,
    end: Option<End>,
}

#[derive(Debug)]
struct Question {
    request: Value,
    answer: oneshot::Sender<Result<Value, String>>,
}

/// What a run is at.
#[derive(Clone, Debug, PartialEq)]
pub enum Turn<End> {
    /// It goes on; nobody has to wait for it any more.
    Detached,
    /// It waits for answers to these requests, by key.
    Asking(Map<String, Value>),
    /// It has ended.
    Ended(End),
}

/// Why a run gets no answer to what it asks.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoAnswer {
    /// Too many wait already.
    #[error("{PARKED} calls already wait for answers of people; try again in a moment")]
    Crowded,
    /// Nobody answered in time.
    #[error("nobody answered within {} minutes", PATIENCE.as_secs() / 60)]
    TooLate,
    /// The client answered with an error.
    #[error("the client could not do what was asked: {0}")]
    Refused(String),
}

/// Takes the run off the list when it ends, however it ends.
#[derive(Debug)]
pub struct LiveEntry<End> {
    runs: LiveRuns<End>,
    id: RunId,
}

impl<End> Clone for LiveRuns<End> {
    fn clone(&self) -> Self {
        Self { runs: Arc::clone(&self.runs), parked: Arc::clone(&self.parked), patience: self.patience }
    }
}

impl<End> Default for LiveRuns<End> {
    fn default() -> Self {
        Self { runs: Arc::default(), parked: Arc::new(Semaphore::new(PARKED)), patience: PATIENCE }
    }
}

impl<End: Clone> LiveRuns<End> {
    /// Lists a run. `recorded` answers what it asks, as far as it goes.
    pub fn enter(
        &self,
        (id, begun): (RunId, Timestamp),
        principal: PrincipalId,
        cancel: CancellationToken,
        recorded: Map<String, Value>,
    ) -> (Arc<LiveRun<End>>, LiveEntry<End>) {
        let state = State {
            listener: None,
            heard: Heard::default(),
            behind: false,
            past: VecDeque::new(),
            questions: BTreeMap::new(),
            keys: HashMap::new(),
            answers: Map::new(),
            recorded,
            detached: false,
            end: None,
        };
        let (parked, patience) = (Arc::clone(&self.parked), self.patience);
        let changed = watch::Sender::new(0);
        let (state, news, over) = (Mutex::new(state), broadcast::Sender::new(PAST), CancellationToken::new());
        let attending = AtomicUsize::new(0);
        let run =
            Arc::new(LiveRun { id, begun, principal, cancel, state, changed, parked, patience, news, over, attending });
        lock(&self.runs).insert(id, Arc::clone(&run));
        (run, LiveEntry { runs: self.clone(), id })
    }

    /// A run; `owner` restricts it to that principal's.
    pub fn get(&self, id: RunId, owner: Option<&PrincipalId>) -> Option<Arc<LiveRun<End>>> {
        let runs = lock(&self.runs);
        runs.get(&id).filter(|run| owner.is_none_or(|owner| *owner == run.principal)).cloned()
    }

    /// Asks a run to stop; `owner` restricts it to that principal's. False when no such run is alive here.
    pub fn cancel(&self, id: RunId, owner: Option<&PrincipalId>) -> bool {
        self.get(id, owner).map(|run| run.cancel.cancel()).is_some()
    }
}

impl<End: Clone> LiveRun<End> {
    /// Where its events go from now on.
    pub fn listen(&self, events: mpsc::Sender<RunEvent>) {
        let mut state = self.state();
        state.listener = Some(events);
        state.behind = false;
    }

    /// Hands an event to whoever listens. One that is behind is waited for, once; then it loses events, never the run.
    pub async fn tell(&self, event: RunEvent) {
        let (listener, patience) = {
            let mut state = self.state();
            state.heard.keep(&event);
            self.show(&mut state, &event);
            let patience = if state.behind { Duration::ZERO } else { LISTENER };
            (state.listener.clone(), patience)
        };
        self.change();
        let Some(listener) = listener else { return };
        let behind = listener.send_timeout(event, patience).await.is_err();
        self.state().behind = behind;
    }

    /// Hands an event to whoever listens, at once. A full or closed channel loses it.
    pub fn note(&self, event: RunEvent) {
        let mut state = self.state();
        state.heard.keep(&event);
        self.show(&mut state, &event);
        if let Some(listener) = &state.listener {
            let _ = listener.try_send(event);
        }
        drop(state);
        self.change();
    }

    /// Asks for these, by key (`""`: any), and waits for all answers; they come under the keys that were given. A recorded
    /// answer is taken where it `fits` its request.
    ///
    /// # Errors
    /// [`NoAnswer`].
    ///
    /// # Cancellation
    /// Dropping the future withdraws the questions.
    pub async fn ask(
        &self,
        requests: Map<String, Value>,
        fits: fn(&Value, &Value) -> bool,
    ) -> Result<Map<String, Value>, NoAnswer> {
        let (asked, mut answers) = self.pose(requests, fits);
        if !asked.is_empty() {
            let _parked = self.parked.try_acquire().map_err(|_| NoAnswer::Crowded)?;
            let withdraw = Withdraw { run: self, keys: asked.iter().map(|asked| asked.key.clone()).collect() };
            self.change();
            let all =
                futures::future::join_all(asked.into_iter().map(|asked| async { (asked.given, asked.answer.await) }));
            let all = tokio::time::timeout(self.patience, all).await.map_err(|_| NoAnswer::TooLate)?;
            drop(withdraw);
            for (given, answer) in all {
                let answer = answer.map_err(|_| NoAnswer::TooLate)?;
                answers.insert(given, answer.map_err(NoAnswer::Refused)?);
            }
        }
        Ok(answers)
    }

    /// Puts the questions that no recorded answer settles.
    fn pose(&self, requests: Map<String, Value>, fits: fn(&Value, &Value) -> bool) -> (Vec<Asked>, Map<String, Value>) {
        let mut state = self.state();
        let (mut asked, mut settled) = (Vec::new(), Map::new());
        for (given, request) in requests {
            let key = state.fresh_key(&given, &request);
            if let Some(answer) = state.recorded.remove(&key).filter(|answer| fits(&request, answer)) {
                state.answers.insert(key, answer.clone());
                settled.insert(given, answer);
                continue;
            }
            let (sender, answer) = oneshot::channel();
            state.questions.insert(key.clone(), Question { request, answer: sender });
            asked.push(Asked { given, key, answer });
        }
        (asked, settled)
    }

    /// The open questions, by key.
    pub fn questions(&self) -> Map<String, Value> {
        self.state().open()
    }

    /// Every answer so far, by key.
    pub fn answers(&self) -> Map<String, Value> {
        self.state().answers.clone()
    }

    /// Answers open questions; keys that nothing waits under are ignored.
    pub fn answer(&self, answers: Map<String, Value>) {
        let mut state = self.state();
        for (key, answer) in answers {
            if let Some(question) = state.questions.remove(&key) {
                state.answers.insert(key, answer.clone());
                let _ = question.answer.send(Ok(answer));
            }
        }
        drop(state);
        self.change();
    }

    /// Tells that the client can't or won't answer these, in its words.
    pub fn refuse(&self, refusals: BTreeMap<String, String>) {
        let mut state = self.state();
        for (key, text) in refusals {
            if let Some(question) = state.questions.remove(&key) {
                let _ = question.answer.send(Err(text));
            }
        }
        drop(state);
        self.change();
    }

    /// From now on nobody has to wait for it.
    pub fn detach(&self) {
        self.state().detached = true;
        self.change();
    }

    /// Whether nobody has to wait for it.
    pub fn is_detached(&self) -> bool {
        self.state().detached
    }

    /// It has ended with this.
    pub fn end(&self, end: End) {
        self.state().end = Some(end);
        self.change();
        self.over.cancel();
    }

    /// Waits until there is something to tell its caller. A detached run is waited for only with `to_the_end`.
    ///
    /// # Cancellation
    /// Safe.
    pub async fn turn(&self, to_the_end: bool) -> Turn<End> {
        let mut changed = self.changed.subscribe();
        loop {
            changed.borrow_and_update();
            if let Some(turn) = self.now(to_the_end) {
                return turn;
            }
            // The sender lives as long as this run, which is borrowed.
            let _ = changed.changed().await;
        }
    }

    fn now(&self, to_the_end: bool) -> Option<Turn<End>> {
        let state = self.state();
        match &state.end {
            Some(end) => Some(Turn::Ended(end.clone())),
            None if state.detached && !to_the_end => Some(Turn::Detached),
            None if !state.questions.is_empty() && !state.detached => Some(Turn::Asking(state.open())),
            None => None,
        }
    }

    fn change(&self) {
        self.changed.send_modify(|count| *count += 1);
    }

    fn state(&self) -> MutexGuard<'_, State<End>> {
        lock(&self.state)
    }
}

impl<End> State<End> {
    fn open(&self) -> Map<String, Value> {
        self.questions.iter().map(|(key, question)| (key.clone(), question.request.clone())).collect()
    }

    /// The given key, or one for the kind of request; with a number where it was used before.
    fn fresh_key(&mut self, given: &str, request: &Value) -> String {
        let kind = match request.get("method").and_then(Value::as_str).unwrap_or_default() {
            "elicitation/create" => "elicitation",
            "sampling/createMessage" => "sampling",
            _ => "roots",
        };
        let base = if given.is_empty() { kind } else { given };
        let count = self.keys.entry(base.to_owned()).or_default();
        *count += 1;
        let key = if *count == 1 { base.to_owned() } else { format!("{base}-{count}") };
        if *count > 1 && self.keys.contains_key(&key) { self.fresh_key(given, request) } else { key }
    }
}

/// A question that was put.
struct Asked {
    given: String,
    key: String,
    answer: oneshot::Receiver<Result<Value, String>>,
}

/// Takes back the questions that nobody answered.
struct Withdraw<'a, End: Clone> {
    run: &'a LiveRun<End>,
    keys: Vec<String>,
}

impl<End: Clone> Drop for Withdraw<'_, End> {
    fn drop(&mut self) {
        let mut state = self.run.state();
        for key in &self.keys {
            state.questions.remove(key);
        }
        drop(state);
        self.run.change();
    }
}

impl<End> Drop for LiveEntry<End> {
    fn drop(&mut self) {
        lock(&self.runs.runs).remove(&self.id);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

mod attending;
mod heard;
mod onlookers;
#[cfg(test)]
mod tests;
