//! Looking on while a run goes on.

use serde_json::Value;
use tokio::sync::broadcast;
use tokio_util::sync::CancellationToken;

use super::content::ContentError;
use super::domain::CallError;
use super::{Tools, internal};
use crate::model::{Caller, Resource, RunEvent, RunId, RunRow, Stream};

/// What a run said, and what it goes on to say.
pub struct RunFeed {
    /// The run as it stands.
    pub row: RunRow,
    /// What it said before.
    pub past: Vec<RunEvent>,
    /// What it says from now on, and its end; `None` for one that has ended, or that another process runs.
    pub live: Option<(broadcast::Receiver<RunEvent>, CancellationToken)>,
}

impl Tools {
    /// What a run of the caller's says.
    ///
    /// # Errors
    /// [`CallError::InvalidParams`] when there is none of that id.
    pub async fn follow_run(&self, caller: &Caller, id: &str) -> Result<RunFeed, CallError> {
        let row = self.run_of(caller, id).await?;
        if row.ending.is_none()
            && let Some(live) = self.live.get(row.id, caller.sees_only())
        {
            let (past, news, over) = live.look_on();
            return Ok(RunFeed { row, past, live: Some((news, over)) });
        }
        // It may have ended between the two.
        let row = self.run_of(caller, id).await?;
        let past = row.log.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
        Ok(RunFeed { row, past, live: None })
    }

    /// A piece of what a run of the caller's printed, and where the next begins; `None` where there is none.
    ///
    /// # Errors
    /// [`ContentError`].
    pub async fn run_output(
        &self,
        caller: &Caller,
        (run, stream): (&str, &str),
        offset: u64,
    ) -> Result<Option<Resource>, ContentError> {
        let named = run.parse().ok().map(RunId).zip(Stream::parse(stream));
        let Some((run, stream)) = named else { return Ok(None) };
        let uri = format!("{}?offset={offset}", super::content::output_uri(run, stream));
        self.read_output(caller, &uri).await
    }

    /// What the built-in of that name takes, as JSON Schema.
    pub fn builtin_schema(&self, name: &str) -> Option<Value> {
        super::Builtin::named(name).map(|builtin| builtin.listed().input_schema)
    }

    /// How a run that was followed stands now.
    ///
    /// # Errors
    /// [`CallError::Internal`] when the store fails.
    pub async fn run_after(&self, row: &RunRow) -> Result<RunRow, CallError> {
        let now = self.store.get_run(row.id).await.map_err(|error| internal("a run can't be read", &error))?;
        Ok(now.unwrap_or_else(|| row.clone()))
    }
}
