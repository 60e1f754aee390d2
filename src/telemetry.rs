//! The log: where it goes, in what shape, and what is no news in it.

use std::io::IsTerminal;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::layer::{Context, Layer, SubscriberExt as _};
use tracing_subscriber::util::SubscriberInitExt as _;

/// How the messages begin with which the protocol layer warns of what a client did: it asked for something wrong (and
/// was told), or left before its answer. Our own failures are logged where they happen.
const CLIENT_FAULTS: [&str; 6] = [
    "response error",
    "rejected peer request",
    "Resume failed",
    "fail to response message",
    "fail to send rejection error",
    "failed to send pending response during drain",
];

/// Starts logging to stderr: lines for a terminal, JSON otherwise. A filter that can't be read falls back to `info`,
/// and says so.
pub fn start(filter: &str) {
    let (chosen, wrong) = match EnvFilter::try_new(filter) {
        Ok(chosen) => (chosen, None),
        Err(error) => (EnvFilter::new("info,rmcp=warn,sqlx=warn"), Some(error)),
    };
    let lines = tracing_subscriber::fmt::layer().with_writer(std::io::stderr);
    let lines = if std::io::stderr().is_terminal() { lines.boxed() } else { lines.json().boxed() };
    let quiet = ClientFaults::default();
    let asked_for = Arc::clone(&quiet.shown);
    // A second start (tests in one process) keeps the first subscriber.
    let _ = tracing_subscriber::registry().with(lines).with(chosen).with(quiet).try_init();
    asked_for.store(tracing::enabled!(target: "rmcp::service", Level::DEBUG), Ordering::Relaxed);
    if let Some(error) = wrong {
        tracing::warn!(filter, %error, "The log filter `{filter}` cannot be read; showing `info`");
    }
}

/// Leaves out what clients do wrong, unless the protocol layer's details were asked for.
#[derive(Default)]
struct ClientFaults {
    shown: Arc<AtomicBool>,
}

impl<S: Subscriber> Layer<S> for ClientFaults {
    fn event_enabled(&self, event: &Event<'_>, _context: Context<'_, S>) -> bool {
        if !event.metadata().target().starts_with("rmcp::") || self.shown.load(Ordering::Relaxed) {
            return true;
        }
        let mut message = Message::default();
        event.record(&mut message);
        !CLIENT_FAULTS.iter().any(|fault| message.0.starts_with(fault))
    }
}

/// An event's message.
#[derive(Default)]
struct Message(String);

impl Visit for Message {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        if field.name() == "message" {
            self.0 = format!("{value:?}");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    /// Keeps the messages that are logged.
    #[derive(Clone, Default)]
    struct Kept(Arc<Mutex<Vec<String>>>);

    impl<S: Subscriber> Layer<S> for Kept {
        fn on_event(&self, event: &Event<'_>, _context: Context<'_, S>) {
            let mut message = Message::default();
            event.record(&mut message);
            self.0.lock().unwrap().push(message.0);
        }
    }

    #[test]
    fn faults_of_clients_are_left_out_and_nothing_else_is() {
        for (shown, expected) in [
            (false, vec!["timed out", "response error"]),
            (true, vec!["response error", "Resume failed (x)", "timed out", "response error"]),
        ] {
            let (kept, quiet) = (Kept::default(), ClientFaults::default());
            quiet.shown.store(shown, Ordering::Relaxed);
            tracing::subscriber::with_default(tracing_subscriber::registry().with(kept.clone()).with(quiet), || {
                tracing::warn!(target: "rmcp::service", id = 1, error = "x", "response error");
                tracing::warn!(target: "rmcp::transport", "Resume failed ({})", "x");
                tracing::warn!(target: "rmcp::service", "timed out");
                tracing::error!("response error");
            });
            assert_eq!(*kept.0.lock().unwrap(), expected);
        }
    }
}
