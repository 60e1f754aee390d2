//! News of the catalogue and of saved content, brought to every stream that wants it.
//!
//! One task follows the domain, keeps the latest news in a log and counts them in a watch channel: a stream that lags
//! reads what it missed in the log, or takes everything for changed where that is forgotten, so bursts are told once and a
//! client that doesn't read costs nothing.

use std::collections::{HashSet, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rmcp::model::{
    PromptListChangedNotification, ResourceListChangedNotification, ResourceUpdatedNotification,
    ResourceUpdatedNotificationParam, ServerNotification, ToolListChangedNotification,
};
use tokio::sync::{broadcast, watch};
use tokio_util::sync::CancellationToken;

use crate::model::PrincipalId;
use crate::tools::{ContentChange, Domain, Subject};

/// The pause after one round of notifications before the next on the same stream.
const COALESCE: Duration = Duration::from_millis(300);

/// How many news are remembered.
const LOG: usize = 1_024;

/// The most resources that one stream or session may follow.
pub(super) const URIS: usize = 1_000;

/// Something to tell a client.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum News {
    /// This list is not what it was.
    List(Subject),
    /// What is read under this URI is not what it was.
    Updated(String),
}

impl News {
    /// As the protocol writes it.
    pub(super) fn into_notification(self) -> ServerNotification {
        match self {
            Self::List(Subject::Tools) => {
                ServerNotification::ToolListChangedNotification(ToolListChangedNotification::default())
            }
            Self::List(Subject::Prompts) => {
                ServerNotification::PromptListChangedNotification(PromptListChangedNotification::default())
            }
            Self::List(Subject::Resources) => {
                ServerNotification::ResourceListChangedNotification(ResourceListChangedNotification::default())
            }
            Self::Updated(uri) => ServerNotification::ResourceUpdatedNotification(ResourceUpdatedNotification::new(
                ResourceUpdatedNotificationParam::new(uri),
            )),
        }
    }
}

/// What one stream wants to hear of.
#[derive(Clone, Debug)]
pub(super) struct Interest {
    /// Whose content.
    pub(super) principal: PrincipalId,
    /// Which lists.
    pub(super) lists: Vec<Subject>,
    /// Which resources.
    pub(super) uris: Subscriptions,
}

impl Interest {
    /// Every list, and these resources.
    pub(super) fn everything(principal: PrincipalId, uris: Subscriptions) -> Self {
        Self { principal, lists: Subject::ALL.into(), uris }
    }

    fn wants(&self, entry: &Entry) -> bool {
        let whose = entry.owner.as_ref().is_none_or(|owner| *owner == self.principal);
        whose
            && match &entry.news {
                News::List(subject) => self.lists.contains(subject),
                News::Updated(uri) => self.uris.lock().contains(uri),
            }
    }

    /// Everything that it could hear of.
    fn all(&self) -> Vec<News> {
        let uris = self.uris.lock();
        self.lists.iter().map(|subject| News::List(*subject)).chain(uris.iter().cloned().map(News::Updated)).collect()
    }
}

/// The resources that a stream or session follows. Clones share them.
#[derive(Clone, Debug, Default)]
pub(super) struct Subscriptions(Arc<Mutex<HashSet<String>>>);

/// More resources than one may follow.
#[derive(Debug, thiserror::Error)]
#[error("at most {URIS} resources can be followed at once; unsubscribe from some first")]
pub(super) struct TooMany;

impl Subscriptions {
    /// Those of these URIs.
    pub(super) fn of(uris: impl Iterator<Item = String>) -> Self {
        Self(Arc::new(Mutex::new(uris.collect())))
    }

    /// Follows one more.
    ///
    /// # Errors
    /// [`TooMany`].
    pub(super) fn add(&self, uri: String) -> Result<(), TooMany> {
        let mut uris = self.lock();
        if uris.len() >= URIS && !uris.contains(&uri) {
            return Err(TooMany);
        }
        uris.insert(uri);
        Ok(())
    }

    /// Follows one less.
    pub(super) fn remove(&self, uri: &str) {
        self.lock().remove(uri);
    }

    fn lock(&self) -> MutexGuard<'_, HashSet<String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(Debug)]
struct Entry {
    /// Its number, from 1 without a gap.
    number: u64,
    /// Whose it is; `None`: everybody's.
    owner: Option<PrincipalId>,
    news: News,
}

#[derive(Debug, Default)]
struct Log {
    entries: VecDeque<Entry>,
    last: u64,
}

type SharedLog = Arc<Mutex<Log>>;

/// Where changes can be waited for.
#[derive(Clone, Debug)]
pub struct Changes {
    count: watch::Receiver<u64>,
    log: SharedLog,
    shutdown: CancellationToken,
}

impl Changes {
    /// Starts following the domain until `shutdown`.
    pub fn follow(domain: &Arc<dyn Domain>, shutdown: CancellationToken) -> Self {
        let (mut tools, mut contents) = (domain.changes(), domain.content_changes());
        let (sender, count) = watch::channel(0);
        let log = SharedLog::default();
        let (stop, shared) = (shutdown.clone(), Arc::clone(&log));
        tokio::spawn(async move {
            let (mut tools_open, mut contents_open) = (true, true);
            loop {
                let last = tokio::select! {
                    change = tools.recv(), if tools_open => match change {
                        Ok(_) | Err(broadcast::error::RecvError::Lagged(_)) => {
                            keep(&shared, None, News::List(Subject::Tools))
                        }
                        Err(broadcast::error::RecvError::Closed) => {
                            tools_open = false;
                            continue;
                        }
                    },
                    change = contents.recv(), if contents_open => match change {
                        Ok(ContentChange::List { owner, subject }) => keep(&shared, owner, News::List(subject)),
                        Ok(ContentChange::Updated { owner, uri }) => keep(&shared, Some(owner), News::Updated(uri)),
                        Err(broadcast::error::RecvError::Lagged(_)) => forget(&shared),
                        Err(broadcast::error::RecvError::Closed) => {
                            contents_open = false;
                            continue;
                        }
                    },
                    () = stop.cancelled() => return,
                };
                sender.send_replace(last);
            }
        });
        Self { count, log, shutdown }
    }

    /// No changes, ever.
    #[cfg(test)]
    pub(super) fn none(shutdown: CancellationToken) -> Self {
        Self { count: watch::channel(0).1, log: SharedLog::default(), shutdown }
    }

    /// How many changes were heard of.
    pub fn count(&self) -> u64 {
        *self.count.borrow()
    }

    /// Ends when streams are to be closed.
    pub async fn closed(&self) {
        self.shutdown.cancelled().await;
    }

    /// Follows the changes for one stream, beginning with those after the first `told`.
    pub(super) fn listener(&self, told: Arc<AtomicU64>, interest: Interest) -> Listener {
        Listener { changes: self.clone(), told, interest, pause: false }
    }
}

fn lock(log: &Mutex<Log>) -> MutexGuard<'_, Log> {
    log.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Writes news down; their number.
fn keep(log: &Mutex<Log>, owner: Option<PrincipalId>, news: News) -> u64 {
    let mut log = lock(log);
    log.last += 1;
    let number = log.last;
    log.entries.push_back(Entry { number, owner, news });
    if log.entries.len() > LOG {
        log.entries.pop_front();
    }
    number
}

/// Some news were lost: whoever reads on takes everything for changed.
fn forget(log: &Mutex<Log>) -> u64 {
    let mut log = lock(log);
    log.entries.clear();
    log.last += 1;
    log.last
}

/// One stream's view of the changes.
#[derive(Debug)]
pub(super) struct Listener {
    changes: Changes,
    told: Arc<AtomicU64>,
    interest: Interest,
    pause: bool,
}

impl Listener {
    /// Waits for changes that were not told yet, each once; `None` when the server shuts down.
    ///
    /// # Cancellation
    /// Safe: changes are marked as told only when this returns.
    pub(super) async fn next(&mut self) -> Option<Vec<News>> {
        if self.pause {
            tokio::select! {
                () = tokio::time::sleep(COALESCE) => self.pause = false,
                () = self.changes.shutdown.cancelled() => return None,
            }
        }
        loop {
            let count = *self.changes.count.borrow_and_update();
            let told = self.told.fetch_max(count, Ordering::SeqCst);
            let news = self.between(told, count);
            if !news.is_empty() {
                self.pause = true;
                return Some(news);
            }
            tokio::select! {
                changed = self.changes.count.changed() => {
                    if changed.is_err() {
                        return None;
                    }
                }
                () = self.changes.shutdown.cancelled() => return None,
            }
        }
    }

    /// The news after the first `told` up to `count` that are of interest.
    fn between(&self, told: u64, count: u64) -> Vec<News> {
        if told >= count {
            return Vec::new();
        }
        let log = lock(&self.changes.log);
        if log.entries.front().is_none_or(|oldest| oldest.number > told + 1) {
            return self.interest.all();
        }
        let mut seen = HashSet::new();
        let entries = log.entries.iter().filter(|entry| entry.number > told && entry.number <= count);
        let wanted = entries.filter(|entry| self.interest.wants(entry)).map(|entry| entry.news.clone());
        wanted.filter(|news| seen.insert(news.clone())).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn principal(name: &str) -> PrincipalId {
        PrincipalId(name.to_owned())
    }

    fn listener(log: SharedLog, count: watch::Receiver<u64>, uris: &[&str]) -> Listener {
        let changes = Changes { count, log, shutdown: CancellationToken::new() };
        let uris = Subscriptions::of(uris.iter().map(|uri| (*uri).to_owned()));
        let interest = Interest { principal: principal("anna"), lists: vec![Subject::Prompts], uris };
        changes.listener(Arc::default(), interest)
    }

    #[tokio::test]
    async fn a_stream_hears_what_it_asked_for_once_and_of_its_own() {
        let (sender, count) = watch::channel(0);
        let log = SharedLog::default();
        let mut listener = listener(Arc::clone(&log), count, &["a://1"]);
        let updated = |uri: &str| News::Updated(uri.to_owned());
        keep(&log, None, News::List(Subject::Tools));
        keep(&log, Some(principal("anna")), updated("a://1"));
        keep(&log, Some(principal("anna")), updated("a://1"));
        keep(&log, Some(principal("anna")), updated("a://2"));
        keep(&log, Some(principal("ben")), updated("a://1"));
        keep(&log, Some(principal("ben")), News::List(Subject::Prompts));
        sender.send_replace(keep(&log, Some(principal("anna")), News::List(Subject::Prompts)));
        assert_eq!(listener.next().await.unwrap(), [updated("a://1"), News::List(Subject::Prompts)]);
        sender.send_replace(keep(&log, Some(principal("anna")), updated("a://1")));
        assert_eq!(listener.next().await.unwrap(), [updated("a://1")]);
    }

    #[tokio::test]
    async fn one_that_missed_too_much_takes_everything_for_changed() {
        let (sender, count) = watch::channel(0);
        let log = SharedLog::default();
        let mut listener = listener(Arc::clone(&log), count, &["a://1"]);
        for _ in 0..=LOG {
            keep(&log, Some(principal("ben")), News::Updated("b://1".to_owned()));
        }
        sender.send_replace(forget(&log));
        let everything = [News::List(Subject::Prompts), News::Updated("a://1".to_owned())];
        assert_eq!(listener.next().await.unwrap(), everything);
        assert_eq!(listener.between(1, 5), everything);
    }
}
