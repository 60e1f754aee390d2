//! `GET /`: the tools for a browser, server information for everything else.

use std::sync::Arc;

use askama::Template;
use axum::Json;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::response::{IntoResponse, Response};
use http::header::{CACHE_CONTROL, SET_COOKIE, VARY};
use http::{HeaderMap, HeaderValue, StatusCode};
use serde::Deserialize;
use serde_json::{Value, json};

use super::frame::Frame;
use super::reply::{page, wants_page};
use super::sign_in::sign_in_page;
use super::text::{Markup, Moment, count, duration, in_url, percent};
use super::view::{Mark, SignIn, language};
use super::{Web, WebError, cookie};
use crate::mcp::SERVER_NAME;
use crate::model::{SandboxLevel, Timestamp};
use crate::store::{FoundTool, RunSummary};
use crate::tools::{Glance, Spell, ToolQuery, ToolState};

/// How many tools a page shows.
const SHOWN: usize = 100;
/// How many runs a row draws.
const DRAWN: u32 = 24;

/// What the reader looks for.
#[derive(Default, Deserialize)]
pub(super) struct Asked {
    #[serde(default)]
    q: String,
    #[serde(default)]
    tag: String,
    #[serde(default)]
    state: String,
    #[serde(default)]
    page: usize,
}

#[derive(Template)]
#[template(path = "tools.html")]
struct ToolsPage {
    frame: Frame,
    sandbox: SandboxLevel,
    open_to_all: bool,
    asked: Asked,
    is_empty: bool,
    rows: Vec<Row>,
    states: Vec<Choice>,
    tags: Vec<Choice>,
    total: usize,
    newer: Option<String>,
    older: Option<String>,
}

/// A filter that can be chosen.
struct Choice {
    words: String,
    count: usize,
    link: String,
    is_chosen: bool,
}

/// A line of the list.
struct Row {
    name: String,
    about: String,
    tags: Vec<(String, String)>,
    language: &'static str,
    mark: Mark,
    says: Option<&'static str>,
    version: String,
    is_on: bool,
    half: String,
    errors: String,
    fails: bool,
    calls: String,
    spark: Markup,
    changed: Moment,
}

/// `GET /`.
pub(super) async fn home(
    State(web): State<Arc<Web>>,
    headers: HeaderMap,
    asked: Result<Query<Asked>, QueryRejection>,
) -> Result<Response, WebError> {
    let mut response = if wants_page(&headers) {
        tools(&web, &headers, asked.map(|Query(asked)| asked).unwrap_or_default()).await?
    } else {
        ([(CACHE_CONTROL, "no-store")], Json(information(&web.site.mcp_url(&headers)))).into_response()
    };
    response.headers_mut().insert(VARY, HeaderValue::from_static("Accept, Cookie"));
    Ok(response)
}

async fn tools(web: &Web, headers: &HeaderMap, asked: Asked) -> Result<Response, WebError> {
    let Some(visitor) = web.visitor(headers).await? else {
        return sign_in_page(web, headers, SignIn::NoLink);
    };
    let product = &web.state.tools;
    let query = ToolQuery { text: asked.q.clone(), tag: Some(asked.tag.clone()).filter(|tag| !tag.is_empty()) };
    let (found, tags) = product.find_tools(&visitor.caller, &query).await?;
    let frame = Frame::new(web, headers, &visitor, "tools").await;
    let states = states(&asked, &found);
    let wanted = state_named(&asked.state);
    let matching: Vec<_> =
        found.into_iter().filter(|(_, state)| wanted.is_none_or(|wanted| wanted == *state)).collect();
    let week = product.glance_at_tools(&visitor.caller, Spell::Week).await?;
    let (total, now) = (matching.len(), web.state.clock.now());
    let mut rows = Vec::new();
    for (tool, state) in matching.iter().skip(asked.page * SHOWN).take(SHOWN) {
        let last = product.last_runs(&visitor.caller, tool.tool.name.as_str(), DRAWN).await?;
        rows.push(Row::new((tool, *state), week.get(tool.tool.name.as_str()), &last, now));
    }
    let turn = |page: usize| asked.link(&asked.state, &asked.tag, page);
    let template = ToolsPage {
        sandbox: product.runner.sandbox(),
        open_to_all: web.state.auth.is_anonymous(),
        is_empty: frame.tools == 0,
        tags: tag_choices(&asked, tags),
        states,
        total,
        newer: asked.page.checked_sub(1).map(turn),
        older: ((asked.page + 1) * SHOWN < total).then(|| turn(asked.page + 1)),
        rows,
        asked,
        frame,
    };
    let mut response = page(StatusCode::OK, &template, &template.frame)?;
    if let Some(session_id) = cookie::read(&web.site, headers).filter(|_| visitor.signed_in) {
        response.headers_mut().append(SET_COOKIE, cookie::keep(&web.site, session_id));
    }
    Ok(response)
}

const STATES: [(&str, &str, ToolState); 5] = [
    ("ready", "Ready", ToolState::Ready),
    ("approval", "Needs approval", ToolState::NeedsApproval),
    ("installing", "Installing", ToolState::Installing),
    ("failed", "Failed", ToolState::Failed),
    ("off", "Off", ToolState::Off),
];

fn state_named(name: &str) -> Option<ToolState> {
    STATES.iter().find(|(known, ..)| *known == name).map(|(.., state)| *state)
}

fn states(asked: &Asked, found: &[(FoundTool, ToolState)]) -> Vec<Choice> {
    let all = Choice {
        words: "All".to_owned(),
        count: found.len(),
        link: asked.link("", &asked.tag, 0),
        is_chosen: state_named(&asked.state).is_none(),
    };
    let each = STATES.iter().map(|(name, words, state)| Choice {
        words: (*words).to_owned(),
        count: found.iter().filter(|(_, is)| is == state).count(),
        link: asked.link(name, &asked.tag, 0),
        is_chosen: asked.state == *name,
    });
    let each = each.filter(|choice| choice.count > 0 || choice.is_chosen);
    std::iter::once(all).chain(each).collect()
}

fn tag_choices(asked: &Asked, tags: std::collections::BTreeMap<String, usize>) -> Vec<Choice> {
    let choice = |(tag, count): (String, usize)| {
        let is_chosen = tag.eq_ignore_ascii_case(&asked.tag);
        let link = asked.link(&asked.state, if is_chosen { "" } else { &tag }, 0);
        Choice { words: tag, count, link, is_chosen }
    };
    tags.into_iter().take(24).map(choice).collect()
}

impl Asked {
    fn link(&self, state: &str, tag: &str, page: usize) -> String {
        let mut pairs = Vec::new();
        for (name, value) in [("q", self.q.as_str()), ("state", state), ("tag", tag)] {
            if !value.is_empty() {
                pairs.push(format!("{name}={}", in_url(value)));
            }
        }
        if page > 0 {
            pairs.push(format!("page={page}"));
        }
        format!("?{}", pairs.join("&"))
    }
}

impl Row {
    fn new(
        (found, state): (&FoundTool, ToolState),
        week: Option<&Glance>,
        last: &[RunSummary],
        now: Timestamp,
    ) -> Self {
        let mark = Mark::of_tool(state);
        let (tool, latest) = (&found.tool, &found.latest);
        let none = || "–".to_owned();
        let calls = week.map_or(0, |week| week.calls);
        let failing = week.filter(|week| week.calls > 0).map(Glance::failing);
        let title = latest.title.as_deref().filter(|title| *title != tool.name.as_str());
        Self {
            name: tool.name.as_str().to_owned(),
            about: title.unwrap_or_else(|| latest.description.lines().next().unwrap_or_default()).to_owned(),
            tags: latest.tags.iter().map(|tag| (tag.clone(), in_url(tag))).collect(),
            language: language(latest.language),
            says: (!matches!(state, ToolState::Ready | ToolState::Off)).then_some(mark.words),
            mark,
            version: match tool.serving_version {
                Some(serving) if serving == tool.latest_version => format!("v{serving}"),
                Some(serving) => format!("v{serving}, newest v{}", tool.latest_version),
                None => format!("none, newest v{}", tool.latest_version),
            },
            is_on: tool.enabled,
            half: week.and_then(|week| week.within(0.5)).map_or_else(none, duration),
            errors: failing.map_or_else(none, percent),
            fails: failing.is_some_and(|failing| failing >= 0.05),
            calls: count(calls),
            spark: spark(last),
            changed: Moment::new(tool.updated_at, now),
        }
    }
}

/// The last runs: up went well and is as high as it took long, down failed.
fn spark(last: &[RunSummary]) -> Markup {
    let drawn = DRAWN as usize;
    let ended: Vec<(bool, f64)> = last
        .iter()
        .rev()
        .filter_map(|run| Some((run.is_error, (run.ended_at?.0 - run.queued_at.0).max(0) as f64)))
        .collect();
    let failed = ended.iter().filter(|(failed, _)| *failed).count();
    let longest = ended.iter().map(|(_, took)| *took).fold(1.0, f64::max);
    let words = match ended.len() {
        0 => "No runs yet".to_owned(),
        all => format!("Last {all} runs: {} ok, {failed} failed", all - failed),
    };
    let mut html = Markup::default();
    html.raw("<svg class=\"spark\" viewBox=\"0 0 96 20\" role=\"img\"").attribute("aria-label", &words).raw(">");
    let missing = drawn.saturating_sub(ended.len());
    for x in 0..missing {
        html.raw(&format!("<rect class=\"z\" x=\"{}\" y=\"12\" width=\"3\" height=\"1\"/>", x * 4));
    }
    for (index, (is_error, took)) in ended.iter().enumerate() {
        let x = (missing + index) * 4;
        if *is_error {
            html.raw(&format!("<rect class=\"n\" x=\"{x}\" y=\"14\" width=\"3\" height=\"6\"/>"));
        } else {
            let high = 2.0 + 10.5 * (took / longest).sqrt();
            html.raw(&format!(
                "<rect class=\"y\" x=\"{x}\" y=\"{:.1}\" width=\"3\" height=\"{high:.1}\"/>",
                13.0 - high
            ));
        }
    }
    html.raw("</svg>");
    html
}

/// What anybody may know: name, version, and where to go.
fn information(mcp_url: &str) -> Value {
    let base = mcp_url.trim_end_matches("/mcp");
    let route = |methods: &str, path: &str, what: &str| json!({"methods": methods, "path": path, "what": what});
    json!({
        "name": SERVER_NAME,
        "title": "OmniForge",
        "version": env!("CARGO_PKG_VERSION"),
        "status": "running",
        "mcp": mcp_url,
        "authentication": "Authorization: Bearer ofk_…",
        "endpoints": {
            "mcp": mcp_url,
            "sse": format!("{base}/sse"),
            "openapi": format!("{base}/openapi.json"),
            "discovery": format!("{base}/.well-known/mcp.json"),
        },
        "routes": [
            route("POST, GET, DELETE", "/mcp", "Model Context Protocol, Streamable HTTP; needs a bearer token"),
            route("POST, GET, DELETE", "/", "the same, for programs; a GET that takes no event stream gets this document"),
            route("GET", "/sse", "the HTTP+SSE transport of 2024-11-05; its first event names where to post"),
            route("POST", "/messages", "the messages of that transport"),
            route("POST", "/tools/{name}", "a tool called by plain HTTP; the body is its arguments"),
            route("GET", "/openapi.json", "OpenAPI of the management API under /api/v1, and of each tool"),
            route("GET", "/.well-known/mcp.json", "where the endpoint is and which protocol versions it speaks"),
            route("GET", "/healthz", "whether the process answers"),
            route("GET", "/readyz", "whether tools can be called"),
        ],
    })
}
