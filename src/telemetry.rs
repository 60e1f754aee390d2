//! The log: where it goes and in what shape.

use std::io::IsTerminal;

use tracing_subscriber::EnvFilter;

/// Starts logging to stderr: lines for a terminal, JSON otherwise. A filter that can't be read falls back to `info`,
/// and says so.
pub fn start(filter: &str) {
    let (chosen, wrong) = match EnvFilter::try_new(filter) {
        Ok(chosen) => (chosen, None),
        Err(error) => (EnvFilter::new("info,rmcp=warn,sqlx=warn"), Some(error)),
    };
    let builder = tracing_subscriber::fmt().with_env_filter(chosen).with_writer(std::io::stderr);
    // A second start (tests in one process) keeps the first subscriber.
    let _ = if std::io::stderr().is_terminal() { builder.try_init() } else { builder.json().try_init() };
    if let Some(error) = wrong {
        tracing::warn!(filter, %error, "The log filter `{filter}` cannot be read; showing `info`");
    }
}
