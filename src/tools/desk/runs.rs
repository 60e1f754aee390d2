//! Runs at a page: lists with filters, one run with what it said, trying a tool, looking in on a run, stopping it.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Map;

use super::{DeskError, may_author};
use crate::model::{
    Caller, ClientFacts, Json, Limits, RunEvent, RunId, RunRow, Stream, Timestamp, ToolDefinition, VersionNumber,
};
use crate::runner::Piece;
use crate::store::{RunFilter, RunState, RunSummary};
use crate::tools::arguments::{self, ArgumentsError};
use crate::tools::authoring::Draft;
use crate::tools::invoke::Invocation;
use crate::tools::{Live, Tools, catalog, internal};

/// How long a page waits for the end of a run that it started.
const PATIENCE: Duration = Duration::from_secs(3);
/// The most bytes of one piece of a long output.
const PIECE: u64 = 1 << 20;

/// Which runs to list; what is `None` is not asked for.
#[derive(Clone, Debug, Default)]
pub struct RunQuery {
    /// Runs of tools of this name.
    pub tool: Option<String>,
    /// `running`, or how they ended.
    pub state: Option<RunState>,
    /// Whose runs, for those who may see all.
    pub principal: Option<crate::model::PrincipalId>,
    /// Asked for at this time or later.
    pub since: Option<Timestamp>,
    /// Older than this one.
    pub before: Option<RunId>,
}

/// One run.
#[derive(Clone, Debug)]
pub struct RunView {
    /// Its row, as far as it has come.
    pub row: RunRow,
    /// What it was started from, where that is still there.
    pub definition: Option<Arc<ToolDefinition>>,
    /// The limits it ran under, as far as they are known.
    pub limits: Limits,
    /// What it said so far, while it runs in this process; and the number of the next event.
    pub heard: (Vec<RunEvent>, usize),
    /// Whether it runs in this process, so that it can be followed and stopped here.
    pub is_live: bool,
    /// Which of its streams are kept whole in a file.
    pub spooled: Vec<Stream>,
}

/// What is to be tried.
#[derive(Clone, Debug)]
pub enum Try {
    /// A version of a saved tool.
    Version(String, VersionNumber),
    /// Code that isn't saved, under this name.
    Draft(String, Box<Draft>),
}

/// A run that was started to try something.
#[derive(Clone, Debug)]
pub struct Tried {
    /// The run.
    pub run: RunId,
    /// What it goes without, since no person has approved of it.
    pub without: Vec<String>,
}

impl Tools {
    /// Runs that this caller may see, newest first.
    ///
    /// # Errors
    /// [`DeskError::Broken`].
    pub async fn find_runs(&self, caller: &Caller, query: &RunQuery, limit: u32) -> Result<Vec<RunSummary>, DeskError> {
        let filter = RunFilter {
            principal: caller.sees_only().cloned().or_else(|| query.principal.clone()),
            tool_name: query.tool.clone(),
            state: query.state,
            before: query.before,
            toolset: caller.toolset.clone(),
            since: query.since,
        };
        Ok(self.store.list_runs(&filter, limit).await?)
    }

    /// One run of the caller's.
    ///
    /// # Errors
    /// [`DeskError::NotFound`], [`DeskError::Broken`].
    pub async fn view_run(&self, caller: &Caller, id: &str) -> Result<RunView, DeskError> {
        let row = self.row_of(caller, id).await?;
        let definition = match (&row.tool, row.version) {
            (Some(tool), Some(number)) => {
                self.store.get_version(tool, number).await?.map(|version| Arc::new(version.definition))
            }
            _ => None,
        };
        let live = self.live.get(row.id, caller.sees_only());
        let limits = definition.as_ref().map_or_else(|| self.options.limits.clone(), |found| self.limits_of(found));
        let outputs = self.runner.outputs();
        Ok(RunView {
            spooled: [Stream::Stdout, Stream::Stderr].into_iter().filter(|kind| outputs.has(row.id, *kind)).collect(),
            heard: live.as_ref().map(|live| live.heard(0)).unwrap_or_default(),
            is_live: live.is_some() && row.ending.is_none(),
            limits,
            definition,
            row,
        })
    }

    /// Tries something with these arguments (the text of a JSON object), without the reach that nobody has approved. Waits
    /// a moment for its end; it goes on without being waited for.
    ///
    /// # Errors
    /// [`DeskError`]; arguments that don't fit the schema are [`DeskError::Refused`].
    pub async fn try_out(&self, caller: &Caller, what: Try, arguments: &str) -> Result<Tried, DeskError> {
        may_author(caller)?;
        let (name, version, definition) = match what {
            Try::Version(name, number) => {
                let tool = self.owned(caller, &name).await?;
                let version = self.version(&tool.id, number).await?;
                (name, Some((tool.id, number)), version.definition)
            }
            Try::Draft(name, draft) => {
                let tool = self.tool_of(caller, &name).await?;
                let before = match &tool {
                    Some(tool) => Some(self.version(&tool.id, tool.latest_version).await?.definition),
                    None => None,
                };
                let understood = self.understand(&name, *draft, (before.as_ref(), before.as_ref())).await?;
                ("(unsaved)".to_owned(), None, understood.definition)
            }
        };
        let tool = version.as_ref().map(|(tool, _)| tool);
        let (definition, without) = self.testable(tool, definition).await?;
        let invocation = self.trial(caller, (name, version), definition, arguments).await?;
        let live = self.start(&Arc::new(invocation), Map::new())?;
        live.detach();
        let run = live.id;
        // It may take longer than anybody wants to look at a loading page.
        let _ended = tokio::time::timeout(PATIENCE, live.turn(true)).await;
        Ok(Tried { run, without })
    }

    async fn trial(
        &self,
        caller: &Caller,
        (name, version): (String, Option<(crate::model::ToolId, VersionNumber)>),
        definition: ToolDefinition,
        text: &str,
    ) -> Result<Invocation, DeskError> {
        let given = Json::parse(text.to_owned())
            .map_err(|error| DeskError::Refused(format!("the arguments are not JSON: {error}")))?;
        let checks = catalog::compile(definition.input_schema.clone(), definition.output_schema.clone()).await;
        let checks = checks.map_err(|error| DeskError::Refused(error.to_string()))?;
        let strict = self.options.strict_arguments || definition.strict_arguments;
        let checked = arguments::check(checks.clone(), Some(given), strict, &self.validations).await;
        let arguments = checked.map_err(|error: ArgumentsError| DeskError::Refused(error.to_string()))?;
        Ok(Invocation {
            caller: caller.clone(),
            version,
            name,
            content: None,
            definition: Arc::new(definition),
            checks,
            arguments,
            client: ClientFacts { name: Some("Web".to_owned()), ..ClientFacts::default() },
            door: "test",
            request_id: "web".to_owned(),
            meta: Map::new(),
            depth: 0,
            parent: None,
            idempotency: None,
            learn: None,
        })
    }

    /// A run that goes on in this process, to be followed.
    ///
    /// # Errors
    /// [`DeskError::NotFound`] for one that isn't the caller's; `None` when it has ended, or runs elsewhere.
    pub async fn follow(&self, caller: &Caller, id: &str) -> Result<Option<Follow>, DeskError> {
        let row = self.row_of(caller, id).await?;
        let live = self.live.get(row.id, caller.sees_only()).filter(|_| row.ending.is_none());
        Ok(live.map(|live| Follow { seen: live.watch(), live, next: 0 }))
    }

    /// Stops a run; says whether it was running in this process.
    ///
    /// # Errors
    /// [`DeskError::NotFound`], [`DeskError::Broken`].
    pub async fn stop_run(&self, caller: &Caller, id: &str) -> Result<bool, DeskError> {
        let row = self.row_of(caller, id).await?;
        let Some(live) = self.live.get(row.id, caller.sees_only()) else { return Ok(false) };
        live.cancel.cancel();
        let _ended = tokio::time::timeout(PATIENCE, live.turn(true)).await;
        Ok(true)
    }

    /// A piece of what a run printed, from this byte on; `None` behind the end.
    ///
    /// # Errors
    /// [`DeskError::NotFound`], [`DeskError::Broken`].
    pub async fn output_piece(
        &self,
        caller: &Caller,
        id: &str,
        (stream, offset): (Stream, u64),
    ) -> Result<Option<Vec<u8>>, DeskError> {
        let row = self.row_of(caller, id).await?;
        let piece = self.runner.outputs().read(row.id, stream, offset, PIECE).await;
        match piece.map_err(|error| internal("a run's output can't be read", &error))? {
            Some(Piece { bytes, .. }) => Ok(Some(bytes).filter(|bytes| !bytes.is_empty())),
            None if offset == 0 => {
                let kept = if stream == Stream::Stdout { row.stdout } else { row.stderr };
                Ok(Some(kept.into_bytes()).filter(|bytes| !bytes.is_empty()))
            }
            None => Ok(None),
        }
    }

    async fn row_of(&self, caller: &Caller, id: &str) -> Result<RunRow, DeskError> {
        let missing = || DeskError::NotFound { what: "run", name: id.to_owned() };
        let parsed = id.parse().map(RunId).map_err(|_| missing())?;
        let row = self.store.get_run(parsed).await?;
        row.filter(|row| caller.sees_run(&row.principal, row.toolset.as_ref())).ok_or_else(missing)
    }
}

/// What a run says, as it says it.
pub struct Follow {
    live: Live,
    seen: tokio::sync::watch::Receiver<u64>,
    next: usize,
}

impl Follow {
    /// The next events; `None` once it has ended and all was told.
    ///
    /// # Cancellation
    /// Safe.
    pub async fn next(&mut self) -> Option<Vec<RunEvent>> {
        loop {
            self.seen.borrow_and_update();
            let ended = self.live.ended().is_some();
            let (events, next) = self.live.heard(self.next);
            self.next = next;
            if !events.is_empty() {
                return Some(events);
            }
            if ended || self.seen.changed().await.is_err() {
                return None;
            }
        }
    }
}
