//! `/runs`: what ran, by tool, ending, caller and time, with charts; and `/runs/{id}`.

use std::sync::Arc;

use askama::Template;
use axum::Form;
use axum::extract::rejection::{FormRejection, QueryRejection};
use axum::extract::{Path, Query, State};
use axum::response::Response;
use http::{HeaderMap, StatusCode};
use serde::Deserialize;

use super::charts::{Chart, charts};
use super::frame::Frame;
use super::reply::{page, see_other};
use super::run_log::log;
use super::sign_in::{read, sign_in_page};
use super::text::{Markup, Moment, count, duration, in_url};
use super::tool_acts::Button;
use super::view::{Mark, SignIn};
use super::{Web, WebError, value};
use crate::model::{Ending, PrincipalId, RunId, Stream, Timestamp};
use crate::store::{RunState, RunSummary};
use crate::tools::{DeskError, Glance, RunQuery, RunView, Spell, Try};

/// How many runs a page shows.
const SHOWN: usize = 50;

/// The endings that can be asked for, and their words.
const ENDINGS: [(&str, &str); 9] = [
    ("running", "Running"),
    ("ok", "Ok"),
    ("error", "Error"),
    ("exit", "Left early"),
    ("signal", "Killed"),
    ("timeout", "Timed out"),
    ("cancelled", "Cancelled"),
    ("limit", "Limit hit"),
    ("interrupted", "Interrupted"),
];

/// The spells that can be asked for.
const SPELLS: [(&str, &str, Spell); 4] = [
    ("1h", "1 hour", Spell::Hour),
    ("24h", "24 hours", Spell::Day),
    ("7d", "7 days", Spell::Week),
    ("30d", "30 days", Spell::Month),
];

/// What the reader looks for.
#[derive(Clone, Debug, Default, Deserialize)]
pub(super) struct Asked {
    #[serde(default)]
    since: String,
    #[serde(default)]
    tool: String,
    #[serde(default)]
    ending: String,
    #[serde(default)]
    caller: String,
    #[serde(default)]
    before: String,
}

#[derive(Template)]
#[template(path = "runs.html")]
struct RunsPage {
    frame: Frame,
    asked: Asked,
    spells: Vec<(&'static str, String, bool)>,
    tools: Vec<String>,
    callers: Vec<(String, String)>,
    endings: [(&'static str, &'static str); 9],
    charts: Vec<Chart>,
    table: Markup,
    rows: Vec<Row>,
    total: String,
    newest: Option<String>,
    older: Option<String>,
}

struct Row {
    id: String,
    short: String,
    mark: Mark,
    tool: String,
    version: String,
    caller: String,
    client: String,
    started: Moment,
    took: String,
    bar: Markup,
}

impl Asked {
    fn spell(&self) -> (&'static str, Spell) {
        let found = SPELLS.iter().find(|(name, ..)| *name == self.since);
        found.map_or(("24h", Spell::Day), |(name, _, spell)| (name, *spell))
    }

    fn state(&self) -> Option<RunState> {
        let (word, _) = ENDINGS.iter().find(|(word, _)| *word == self.ending)?;
        Some(if *word == "running" { RunState::Running } else { RunState::Ended(word) })
    }

    fn query(&self, now: Timestamp) -> RunQuery {
        let given = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
        RunQuery {
            tool: given(&self.tool),
            state: self.state(),
            principal: given(&self.caller).map(PrincipalId),
            since: Some(self.spell().1.start(now)),
            before: self.before.parse().ok().map(RunId),
        }
    }

    fn link(&self, since: &str, before: &str) -> String {
        let pairs = [
            ("since", since),
            ("tool", &self.tool),
            ("ending", &self.ending),
            ("caller", &self.caller),
            ("before", before),
        ];
        let pairs = pairs.iter().filter(|(_, value)| !value.is_empty());
        let pairs: Vec<String> = pairs.map(|(name, value)| format!("{name}={}", in_url(value))).collect();
        format!("?{}", pairs.join("&"))
    }
}

/// `GET /runs`.
pub(super) async fn list(
    State(web): State<Arc<Web>>,
    headers: HeaderMap,
    asked: Result<Query<Asked>, QueryRejection>,
) -> Result<Response, WebError> {
    let Some(visitor) = web.visitor(&headers).await? else { return sign_in_page(&web, &headers, SignIn::NoLink) };
    let asked = asked.map(|Query(asked)| asked).unwrap_or_default();
    let (tools, now) = (&web.state.tools, web.state.clock.now());
    let (since, spell) = asked.spell();
    let query = asked.query(now);
    let mut runs = tools.find_runs(&visitor.caller, &query, u32::try_from(SHOWN + 1).unwrap_or(u32::MAX)).await?;
    let more = runs.len() > SHOWN;
    runs.truncate(SHOWN);
    let bars = tools.glance(&visitor.caller, (spell, query.principal.clone()), query.tool.as_deref()).await?;
    // The wide slots are few: which tools there are needs no narrow ones.
    let known = if spell == Spell::Month { Spell::Month } else { Spell::Week };
    let mut named: Vec<String> = tools.glance_at_tools(&visitor.caller, known).await?.into_keys().collect();
    named.sort();
    let names = tools.names().await?;
    let longest = runs.iter().filter_map(took).fold(1.0, f64::max);
    let sees_all = visitor.caller.sees_only().is_none();
    let mut callers: Vec<(String, String)> = names.iter().map(|(id, name)| (id.0.clone(), name.clone())).collect();
    callers.sort_by(|a, b| a.1.cmp(&b.1));
    let (charts, table) = charts(&bars, spell);
    let template = RunsPage {
        frame: Frame::new(&web, &headers, &visitor, "runs").await,
        spells: SPELLS.iter().map(|(name, words, _)| (*words, asked.link(name, ""), *name == since)).collect(),
        tools: named,
        callers: if sees_all { callers } else { Vec::new() },
        endings: ENDINGS,
        charts,
        table,
        total: count(Glance::sum(&bars).calls),
        newest: (!asked.before.is_empty()).then(|| asked.link(since, "")),
        older: runs.last().filter(|_| more).map(|last| asked.link(since, &last.id.to_string())),
        rows: runs.iter().map(|run| Row::new(run, names.get(&run.principal), (longest, now))).collect(),
        asked,
    };
    page(StatusCode::OK, &template, &template.frame)
}

fn took(run: &RunSummary) -> Option<f64> {
    run.ended_at.map(|ended| (ended.0 - run.queued_at.0).max(0) as f64)
}

impl Row {
    fn new(run: &RunSummary, caller: Option<&String>, (longest, now): (f64, Timestamp)) -> Self {
        let mark = Mark::of_run(run.ending.as_ref());
        let id = run.id.to_string();
        let took = took(run).unwrap_or_else(|| (now.0 - run.queued_at.0).max(0) as f64);
        let class = match mark.colour {
            "bad" => "p-stop",
            "busy" => "p-run",
            "warn" => "bar-w",
            _ => "p-queue",
        };
        let wide = (64.0 * (took / longest).sqrt()).clamp(1.5, 64.0);
        let mut bar = Markup::default();
        bar.raw("<svg class=\"meter dur\" viewBox=\"0 0 64 6\" preserveAspectRatio=\"none\" aria-hidden=\"true\">");
        bar.raw(&format!("<rect class=\"{class}\" width=\"{wide:.1}\" height=\"6\" rx=\"1\"/></svg>"));
        Self {
            short: id.chars().skip(id.len().saturating_sub(6)).collect(),
            id,
            mark,
            tool: run.tool_name.clone(),
            version: run.version.map(|number| format!("v{number}")).unwrap_or_default(),
            caller: caller.cloned().unwrap_or_else(|| "somebody".to_owned()),
            client: run.client.clone().unwrap_or_else(|| run.door.clone()),
            started: Moment::new(run.queued_at, now),
            took: duration(took),
            bar,
        }
    }
}

#[derive(Template)]
#[template(path = "run.html")]
struct RunPage {
    frame: Frame,
    id: String,
    tool: String,
    has_tool: bool,
    mark: Mark,
    is_live: bool,
    next: usize,
    why: Option<(String, String)>,
    steps: Markup,
    arguments: Markup,
    result: Option<Markup>,
    is_error: bool,
    log: Markup,
    whole: Vec<&'static str>,
    facts: Vec<(&'static str, Markup)>,
    limits: Markup,
    others: Vec<Row>,
}

/// `GET /runs/{id}`.
pub(super) async fn show(
    State(web): State<Arc<Web>>,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> Result<Response, WebError> {
    let Some(visitor) = web.visitor(&headers).await? else { return sign_in_page(&web, &headers, SignIn::NoLink) };
    let (tools, now) = (&web.state.tools, web.state.clock.now());
    let run = tools.view_run(&visitor.caller, &id).await?;
    let names = tools.names().await?;
    let caller = names.get(&run.row.principal).cloned().unwrap_or_else(|| "somebody".to_owned());
    let others = tools.last_runs(&visitor.caller, &run.row.tool_name, 6).await?;
    let others = others.iter().filter(|other| other.id != run.row.id);
    let row = &run.row;
    let template = RunPage {
        frame: Frame::new(&web, &headers, &visitor, "runs").await,
        id: row.id.to_string(),
        has_tool: run.definition.is_some(),
        mark: Mark::of_run(row.ending.as_ref()),
        is_live: run.is_live,
        next: run.heard.1,
        why: why(&run),
        steps: super::run_facts::steps(&run, now),
        arguments: value::json_text(row.arguments.get()),
        result: row.result.as_deref().map(value::result),
        is_error: row.is_error,
        log: log(&run),
        whole: run.spooled.iter().map(|stream| stream.as_str()).collect(),
        facts: super::run_facts::facts(&run, &caller, now),
        limits: super::run_facts::limits(&run, now),
        others: others.map(|other| Row::new(other, None, (1.0, now))).collect(),
        tool: row.tool_name.clone(),
    };
    page(StatusCode::OK, &template, &template.frame)
}

/// Why it ended as it did, and what to do.
fn why(run: &RunView) -> Option<(String, String)> {
    let limits = &run.limits;
    let (what, todo) = match run.row.ending.as_ref()? {
        Ending::Ok | Ending::Error => return None,
        Ending::Timeout => (
            format!("Stopped: it had not ended after {} s", limits.wall.as_secs_f64()),
            "Raise its time limit in the tool’s settings, or let it do less at once.",
        ),
        Ending::Limit(limit) => (
            format!("Stopped: it hit the limit of {}", limit.as_str()),
            "Raise the limit in the tool’s settings, or let it use less: read large files in pieces, print less.",
        ),
        Ending::Cancelled => ("It was cancelled".to_owned(), "Whoever called it gave up, or somebody stopped it here."),
        Ending::Interrupted => ("The server went away while it ran".to_owned(), "Run it again."),
        Ending::Exit(status) => (format!("It left with status {status}"), "What it printed, below, may say why."),
        Ending::Signal(signal) => (format!("It was killed by signal {signal}"), "What it printed, below, may say why."),
    };
    Some((what, todo.to_owned()))
}

/// `POST /runs/{id}/cancel`.
pub(super) async fn cancel(
    State(web): State<Arc<Web>>,
    Path(id): Path<String>,
    headers: HeaderMap,
    form: Result<Form<Button>, FormRejection>,
) -> Result<Response, WebError> {
    let Button { csrf } = read(form)?;
    let Some(caller) = web.author(&headers, &csrf).await? else { return sign_in_page(&web, &headers, SignIn::NoLink) };
    web.state.tools.stop_run(&caller, &id).await?;
    Ok(see_other(&web.run(&id)))
}

/// `POST /runs/{id}/again`: the same version with the same arguments, as a trial.
pub(super) async fn again(
    State(web): State<Arc<Web>>,
    Path(id): Path<String>,
    headers: HeaderMap,
    form: Result<Form<Button>, FormRejection>,
) -> Result<Response, WebError> {
    let Button { csrf } = read(form)?;
    let Some(caller) = web.author(&headers, &csrf).await? else { return sign_in_page(&web, &headers, SignIn::NoLink) };
    let tools = &web.state.tools;
    let row = tools.view_run(&caller, &id).await?.row;
    let Some(number) = row.version else {
        let text = "this run was of code that was not saved; try it anew at its tool";
        return Err(DeskError::Refused(text.to_owned()).into());
    };
    let tried = tools.try_out(&caller, Try::Version(row.tool_name, number), row.arguments.get()).await?;
    Ok(see_other(&web.run(&tried.run.to_string())))
}

/// `GET /runs/{id}/events`: what it says, as it says it.
pub(super) async fn events(
    State(web): State<Arc<Web>>,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> Result<Response, WebError> {
    let Some(visitor) = web.visitor(&headers).await? else { return sign_in_page(&web, &headers, SignIn::NoLink) };
    Ok(super::download::follow(web.state.tools.follow(&visitor.caller, &id).await?))
}

/// `GET /runs/{id}/{stream}`: the whole of what it printed, as a file.
pub(super) async fn output(
    State(web): State<Arc<Web>>,
    Path((id, stream)): Path<(String, String)>,
    headers: HeaderMap,
) -> Result<Response, WebError> {
    let Some(visitor) = web.visitor(&headers).await? else { return sign_in_page(&web, &headers, SignIn::NoLink) };
    let Some(stream) = Stream::parse(&stream) else {
        return Err(WebError::NotFound(format!("/runs/{id}/{stream}")));
    };
    // Found before anything is sent.
    web.state.tools.view_run(&visitor.caller, &id).await?;
    Ok(super::download::stream(web.state.tools.clone(), visitor.caller, (id, stream)))
}

impl Web {
    /// The path of a run's page.
    pub(super) fn run(&self, id: &str) -> String {
        format!("{}/runs/{id}", self.site.prefix())
    }
}
