//! `/content`, `/audit` and `/settings`: what else is served, what was done, and how this server is.

use std::sync::Arc;

use askama::Template;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::response::Response;
use http::{HeaderMap, StatusCode};
use serde::Deserialize;

use super::frame::Frame;
use super::reply::page;
use super::sign_in::sign_in_page;
use super::text::{Moment, cut, in_url};
use super::view::SignIn;
use super::{Web, WebError};
use crate::config::ApprovalPolicy;
use crate::model::{ContentKind, SandboxLevel, Scope};
use crate::store::{AuditFilter, AuditRow, ContentSearch};
use crate::tools::DeskError;

/// How many entries a page shows.
const SHOWN: u32 = 100;

/// What the reader of `/content` looks for.
#[derive(Default, Deserialize)]
pub(super) struct ContentAsked {
    #[serde(default)]
    q: String,
    #[serde(default)]
    kind: String,
}

#[derive(Template)]
#[template(path = "content.html")]
struct ContentPage {
    frame: Frame,
    q: String,
    kind: String,
    kinds: [(&'static str, &'static str); 4],
    rows: Vec<ContentRow>,
    total: u64,
}

struct ContentRow {
    id: String,
    kind: &'static str,
    name: String,
    about: String,
    version: String,
    is_on: bool,
    changed: Moment,
}

/// `GET /content`.
pub(super) async fn content(
    State(web): State<Arc<Web>>,
    headers: HeaderMap,
    asked: Result<Query<ContentAsked>, QueryRejection>,
) -> Result<Response, WebError> {
    let Some(visitor) = web.visitor(&headers).await? else { return sign_in_page(&web, &headers, SignIn::NoLink) };
    let ContentAsked { q, kind } = asked.map(|Query(asked)| asked).unwrap_or_default();
    let search = ContentSearch {
        kind: ContentKind::parse(&kind),
        text: q.clone(),
        owner: visitor.caller.sees_only().cloned(),
        toolset: visitor.caller.toolset.clone(),
        limit: SHOWN,
        offset: 0,
    };
    let found = web.state.tools.store.search_contents(&search).await.map_err(DeskError::from)?;
    let now = web.state.clock.now();
    let rows = found.items.into_iter().map(|found| ContentRow {
        id: found.item.id.0.clone(),
        kind: found.item.kind.as_str(),
        about: found.latest.title.or(found.latest.description).unwrap_or_default(),
        version: match found.item.serving_version {
            Some(serving) if serving == found.item.latest_version => format!("v{serving}"),
            Some(serving) => format!("v{serving}, newest v{}", found.item.latest_version),
            None => format!("none, newest v{}", found.item.latest_version),
        },
        is_on: found.item.enabled,
        changed: Moment::new(found.item.updated_at, now),
        name: found.item.name,
    });
    let template = ContentPage {
        rows: rows.collect(),
        total: found.total,
        frame: Frame::new(&web, &headers, &visitor, "content").await,
        kinds: [("", "All"), ("resource", "Resources"), ("prompt", "Prompts"), ("skill", "Skills")],
        q,
        kind,
    };
    page(StatusCode::OK, &template, &template.frame)
}

/// What the reader of `/audit` looks for.
#[derive(Default, Deserialize)]
pub(super) struct AuditAsked {
    #[serde(default)]
    action: String,
    #[serde(default)]
    subject: String,
    #[serde(default)]
    before: String,
}

#[derive(Template)]
#[template(path = "audit.html")]
struct AuditPage {
    frame: Frame,
    action: String,
    subject: String,
    rows: Vec<Entry>,
    newest: Option<String>,
    older: Option<String>,
}

struct Entry {
    number: i64,
    at: Moment,
    who: String,
    source: String,
    action: String,
    subject: String,
    outcome: String,
    is_ok: bool,
    detail: String,
    fingerprint: String,
}

/// `GET /audit`: for administrators.
pub(super) async fn audit(
    State(web): State<Arc<Web>>,
    headers: HeaderMap,
    asked: Result<Query<AuditAsked>, QueryRejection>,
) -> Result<Response, WebError> {
    let Some(visitor) = web.signed_in(&headers).await? else { return sign_in_page(&web, &headers, SignIn::NoLink) };
    if !visitor.caller.scopes.has(Scope::Admin) {
        return Err(DeskError::Forbidden(Scope::Admin).into());
    }
    let asked = asked.map(|Query(asked)| asked).unwrap_or_default();
    let given = |text: &str| Some(text.trim().to_owned()).filter(|text| !text.is_empty());
    let filter = AuditFilter {
        principal: None,
        action: given(&asked.action),
        subject: given(&asked.subject),
        before: given(&asked.before),
    };
    let tools = &web.state.tools;
    let mut rows = tools.store.list_audit(&filter, SHOWN + 1).await.map_err(DeskError::from)?;
    let more = rows.len() > SHOWN as usize;
    rows.truncate(SHOWN as usize);
    let (names, now) = (tools.names().await?, web.state.clock.now());
    let link = |before: &str| {
        let pairs = [("action", asked.action.as_str()), ("subject", &asked.subject), ("before", before)];
        let pairs = pairs.iter().filter(|(_, value)| !value.is_empty());
        let pairs: Vec<String> = pairs.map(|(name, value)| format!("{name}={}", in_url(value))).collect();
        format!("?{}", pairs.join("&"))
    };
    let template = AuditPage {
        frame: Frame::new(&web, &headers, &visitor, "audit").await,
        newest: (!asked.before.is_empty()).then(|| link("")),
        older: rows.last().filter(|_| more).map(|row| link(&row.id)),
        rows: rows.into_iter().map(|row| entry(row, &names, now)).collect(),
        action: asked.action,
        subject: asked.subject,
    };
    page(StatusCode::OK, &template, &template.frame)
}

fn entry(
    row: AuditRow,
    names: &std::collections::HashMap<crate::model::PrincipalId, String>,
    now: crate::model::Timestamp,
) -> Entry {
    let AuditRow { number, at, entry, .. } = row;
    let detail = entry.detail.as_object().is_some_and(|detail| !detail.is_empty());
    Entry {
        number,
        at: Moment::new(at, now),
        who: entry
            .principal
            .as_ref()
            .and_then(|who| names.get(who))
            .cloned()
            .unwrap_or_else(|| "nobody known".to_owned()),
        source: entry.source.unwrap_or_default(),
        action: entry.action,
        subject: entry.subject,
        is_ok: entry.outcome == "ok",
        outcome: entry.outcome,
        detail: if detail { cut(&entry.detail.to_string(), 2000) } else { String::new() },
        fingerprint: entry.fingerprint.map(|text| text.chars().take(12).collect()).unwrap_or_default(),
    }
}

#[derive(Template)]
#[template(path = "settings.html")]
struct SettingsPage {
    frame: Frame,
    version: &'static str,
    mcp_url: String,
    checks: Vec<Check>,
    facts: Vec<(&'static str, String)>,
    limits: Vec<(&'static str, String, String)>,
}

/// One thing that should be well.
struct Check {
    name: &'static str,
    is_well: bool,
    says: String,
}

/// `GET /settings`: health, and the settings that the server was started with.
pub(super) async fn settings(State(web): State<Arc<Web>>, headers: HeaderMap) -> Result<Response, WebError> {
    let Some(visitor) = web.visitor(&headers).await? else { return sign_in_page(&web, &headers, SignIn::NoLink) };
    let template = SettingsPage {
        frame: Frame::new(&web, &headers, &visitor, "settings").await,
        version: env!("CARGO_PKG_VERSION"),
        mcp_url: web.site.mcp_url(&headers),
        checks: checks(&web).await,
        facts: facts(&web),
        limits: limits(&web),
    };
    page(StatusCode::OK, &template, &template.frame)
}

async fn checks(web: &Web) -> Vec<Check> {
    let tools = &web.state.tools;
    let check = |name, is_well, says: &str| Check { name, is_well, says: says.to_owned() };
    let store = tools.store.catalog_generation().await.is_ok();
    let sandbox = tools.runner.sandbox();
    let confined = match sandbox {
        SandboxLevel::Full => "Full: namespaces, own root, no network",
        SandboxLevel::Landlock => "Landlock: weaker; files are confined, processes see the server’s",
        SandboxLevel::None => "None: tools can do what the server’s user can",
    };
    let runtimes: Vec<String> = tools.runner.runtimes().iter().map(ToString::to_string).collect();
    let installs = tools.environments.available();
    let packages = if installs { "uv installs them" } else { "uv is missing: tools with packages can’t be saved" };
    let open = web.state.auth.is_anonymous();
    vec![
        check("Store", store, if store { "It answers" } else { "It does not answer; the log says why" }),
        check("Sandbox", sandbox == SandboxLevel::Full, confined),
        check("Runtimes", !runtimes.is_empty(), &runtimes.join(", ")),
        check("Packages", installs, packages),
        check("Sign-in", !open, if open { "Nobody has to: --auth none" } else { "Required" }),
    ]
}

fn facts(web: &Web) -> Vec<(&'static str, String)> {
    let (tools, policy) = (&web.state.tools, web.state.tools.approvals.policy());
    let waits = match (policy.approval, policy.stops_all_code()) {
        (ApprovalPolicy::Never, _) => "Nothing",
        (_, true) => "All code",
        (_, false) => "Reach: network, secrets, calls, shared state, higher limits",
    };
    let strict = tools.options.strict_arguments;
    let coerced = if strict { "Never coerced" } else { "Coerced where their meaning is certain" };
    let public = web.state.public_url.clone();
    vec![
        ("Public address", public.unwrap_or_else(|| "not set: each request’s own".to_owned())),
        ("Listens on", web.state.listen.to_string()),
        ("What waits for a person", waits.to_owned()),
        ("An automatic call becomes a handle after", format!("{} s", tools.options.inline_wait.as_secs_f64())),
        ("Arguments", coerced.to_owned()),
    ]
}

fn limits(web: &Web) -> Vec<(&'static str, String, String)> {
    let (limits, ceilings) = (&web.state.tools.options.limits, &web.state.tools.options.ceilings);
    let mebi = |bytes: u64| format!("{} MiB", bytes >> 20);
    let fixed = |name, value| (name, value, String::new());
    vec![
        ("Time", format!("{} s", limits.wall.as_secs()), format!("{} s", ceilings.wall.as_secs())),
        ("Memory", mebi(limits.memory_bytes), mebi(ceilings.memory_bytes)),
        fixed("Processes", limits.processes.to_string()),
        fixed("Scratch disk", mebi(limits.tmp_bytes)),
        fixed("Output kept with a run, each stream", mebi(limits.output_inline_bytes)),
        fixed("Output in all, each stream", mebi(limits.output_spool_bytes)),
        fixed("Result", mebi(limits.result_bytes)),
    ]
}
