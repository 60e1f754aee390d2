//! `/tools/{name}` and `/new`: the code, and beside it one of: trying it, its schema, its versions, its settings.

use std::sync::Arc;

use askama::Template;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Path, Query, State};
use axum::response::Response;
use http::{HeaderMap, StatusCode};
use serde::Deserialize;
use serde_json::Value;

use super::diff::{Difference, difference};
use super::frame::Frame;
use super::reply::page;
use super::sign_in::sign_in_page;
use super::text::{Markup, Moment, duration};
use super::tool_settings::{SettingsPanel, settings};
use super::view::{Mark, SignIn, language};
use super::{Visitor, Web, WebError, arguments, value};
use crate::model::{SandboxLevel, ToolDefinition, VersionNumber};
use crate::tools::{RunView, ToolState, ToolView};

/// What the reader looks at.
#[derive(Clone, Debug, Default, Deserialize)]
pub(super) struct Asked {
    #[serde(default)]
    pub(super) tab: String,
    pub(super) version: Option<VersionNumber>,
    pub(super) from: Option<VersionNumber>,
    pub(super) run: Option<String>,
}

/// What a form brought that could not be done.
#[derive(Clone, Debug, Default)]
pub(super) struct Failure {
    pub(super) status: Option<StatusCode>,
    /// What went wrong.
    pub(super) says: String,
    /// The line of the code that it is about.
    pub(super) line: Option<u32>,
    /// The code that was sent, which isn't lost.
    pub(super) code: Option<String>,
    /// The settings that were sent.
    pub(super) sent: Option<ToolDefinition>,
    /// The arguments that were sent.
    pub(super) arguments: Option<Value>,
    /// Somebody else saved meanwhile.
    pub(super) overtaken: bool,
}

#[derive(Template)]
#[template(path = "tool.html")]
struct ToolPage {
    frame: Frame,
    tab: &'static str,
    name: String,
    mark: Mark,
    says: String,
    is_on: bool,
    id: String,
    waits: Vec<String>,
    serving: Option<VersionNumber>,
    /// Whether the shown version serves, and the one that does where it is another.
    serves: bool,
    other: Option<VersionNumber>,
    latest: VersionNumber,
    number: VersionNumber,
    file: &'static str,
    language: &'static str,
    style: &'static str,
    code: String,
    failure: Failure,
    place: String,
    conflict: Option<Difference>,
    environment: Option<(Mark, String)>,
    sandbox: SandboxLevel,
    panel: Panel,
    compared: Option<Compared>,
}

/// What stands beside the code.
enum Panel {
    Try(TryPanel),
    Schema { how: &'static str, input: Markup, by_hand: String, output: Option<Markup>, fields: Markup },
    Versions(Vec<VersionRow>),
    Settings(Box<SettingsPanel>),
}

struct TryPanel {
    fields: Markup,
    has_fields: bool,
    example: String,
    result: Option<Shown>,
}

/// The result of a run.
pub(super) struct Shown {
    pub(super) id: String,
    pub(super) mark: Mark,
    pub(super) took: String,
    pub(super) version: String,
    pub(super) result: Option<Markup>,
    pub(super) log: Markup,
    pub(super) is_live: bool,
    pub(super) without: bool,
}

struct VersionRow {
    number: VersionNumber,
    note: String,
    by: String,
    saved: Moment,
    fingerprint: String,
    serves: bool,
    waits: bool,
    is_shown: bool,
}

/// Two versions side by side.
struct Compared {
    from: VersionNumber,
    to: VersionNumber,
    code: Difference,
    rest: Option<Difference>,
}

/// `GET /tools/{name}`.
pub(super) async fn show(
    State(web): State<Arc<Web>>,
    Path(name): Path<String>,
    headers: HeaderMap,
    asked: Result<Query<Asked>, QueryRejection>,
) -> Result<Response, WebError> {
    let Some(visitor) = web.visitor(&headers).await? else { return sign_in_page(&web, &headers, SignIn::NoLink) };
    let asked = asked.map(|Query(asked)| asked).unwrap_or_default();
    render(&web, (&headers, &visitor), &name, (asked, Failure::default())).await
}

/// The page, also after a form that could not be obeyed.
pub(super) async fn render(
    web: &Web,
    (headers, visitor): (&HeaderMap, &Visitor),
    name: &str,
    (asked, failure): (Asked, Failure),
) -> Result<Response, WebError> {
    let tools = &web.state.tools;
    let view = tools.view_tool(&visitor.caller, name, asked.version).await?;
    let panel = panel(web, visitor, &view, (&asked, &failure)).await?;
    let compared = match &panel {
        Panel::Versions(_) => compare(web, visitor, &view, asked.from).await?,
        _ => None,
    };
    let definition = &view.version.definition;
    let conflict = failure.code.as_deref().filter(|_| failure.overtaken);
    let conflict = conflict.map(|mine| difference(&definition.code, mine, "The newest version, and what you sent"));
    let code = failure.code.clone().unwrap_or_else(|| definition.code.clone());
    let template = ToolPage {
        frame: Frame::new(web, headers, visitor, "tools").await,
        tab: tab(&asked.tab),
        mark: Mark::of_tool(view.state),
        says: says(&view),
        is_on: view.tool.enabled,
        id: view.tool.id.0.clone(),
        serving: view.tool.serving_version,
        serves: view.tool.serving_version == Some(view.version.number),
        other: view.tool.serving_version.filter(|serving| *serving != view.version.number),
        latest: view.tool.latest_version,
        number: view.version.number,
        file: file(definition.language.as_str()),
        language: language(definition.language),
        style: definition.style.as_str(),
        place: failure.line.map(|line| place(&code, line)).unwrap_or_default(),
        environment: environment(&view),
        sandbox: tools.runner.sandbox(),
        name: view.tool.name.as_str().to_owned(),
        waits: view.waits,
        code,
        conflict,
        panel,
        compared,
        failure,
    };
    page(template.failure.status.unwrap_or(StatusCode::OK), &template, &template.frame)
}

fn tab(named: &str) -> &'static str {
    ["try", "schema", "versions", "settings"].into_iter().find(|known| *known == named).unwrap_or("try")
}

pub(super) fn file(language: &str) -> &'static str {
    match language {
        "javascript" => "main.mjs",
        "typescript" => "main.ts",
        "bash" => "main.sh",
        _ => "main.py",
    }
}

fn says(view: &ToolView) -> String {
    match (view.state, view.tool.serving_version) {
        (ToolState::Off, _) => "Off".to_owned(),
        (_, Some(serving)) => format!("v{serving} serving"),
        (ToolState::Installing, None) => "Installing".to_owned(),
        (ToolState::Failed, None) => "Install failed".to_owned(),
        (_, None) => "No version serves".to_owned(),
    }
}

fn environment(view: &ToolView) -> Option<(Mark, String)> {
    let status = view.environment.as_deref()?;
    let (state, words) = match status {
        "ready" => (ToolState::Ready, format!("Environment ready: {} packages", view.packages.len())),
        "installing" => (ToolState::Installing, "Installing packages".to_owned()),
        failed => (ToolState::Failed, failed.to_owned()),
    };
    Some((Mark::of_tool(state), words))
}

/// The lines around a line, numbered.
pub(super) fn place(code: &str, line: u32) -> String {
    let at = line as usize;
    let lines = code.lines().enumerate().map(|(index, text)| (index + 1, text));
    let near = lines.filter(|(number, _)| number.abs_diff(at) <= 2);
    let marked = near.map(|(number, text)| {
        let mark = if number == at { "▸" } else { " " };
        format!("{mark} {number:>4}  {}", super::text::cut(text, 200))
    });
    marked.collect::<Vec<_>>().join("\n")
}

async fn panel(
    web: &Web,
    visitor: &Visitor,
    view: &ToolView,
    (asked, failure): (&Asked, &Failure),
) -> Result<Panel, WebError> {
    let definition = &view.version.definition;
    Ok(match tab(&asked.tab) {
        "schema" => Panel::Schema {
            how: if definition.inferred.input_schema { "From the code" } else { "Written by hand" },
            input: value::json(&definition.input_schema),
            by_hand: if definition.inferred.input_schema {
                String::new()
            } else {
                serde_json::to_string_pretty(&definition.input_schema).unwrap_or_default()
            },
            output: definition.output_schema.as_ref().map(value::json),
            fields: schema_table(&definition.input_schema),
        },
        "versions" => Panel::Versions(versions(view, web.state.clock.now())),
        "settings" => Panel::Settings(Box::new(settings(web, visitor, view, failure).await?)),
        _ => {
            let run = match &asked.run {
                Some(run) => Some(web.state.tools.view_run(&visitor.caller, run).await?),
                None => None,
            };
            Panel::Try(try_panel(definition, run, failure))
        }
    })
}

fn try_panel(definition: &ToolDefinition, run: Option<RunView>, failure: &Failure) -> TryPanel {
    let before = run.as_ref().and_then(|run| run.row.arguments.to_value().ok());
    let given = failure.arguments.clone().or(before);
    let fields = arguments::fields(&definition.input_schema, given.as_ref());
    TryPanel {
        has_fields: !fields.is_empty(),
        fields,
        example: given.as_ref().and_then(|given| serde_json::to_string(given).ok()).unwrap_or_else(|| "{}".to_owned()),
        result: run.map(|run| Shown::new(&run)),
    }
}

impl Shown {
    pub(super) fn new(run: &RunView) -> Self {
        let row = &run.row;
        let took = row.ended_at.map(|ended| duration((ended.0 - row.queued_at.0).max(0) as f64));
        Self {
            id: row.id.to_string(),
            mark: Mark::of_run(row.ending.as_ref()),
            took: took.map(|took| format!("in {took}")).unwrap_or_default(),
            version: row.version.map_or_else(|| "Unsaved code".to_owned(), |number| format!("Version {number}")),
            result: row.result.as_deref().map(value::result),
            log: super::run_log::log(run),
            is_live: row.ending.is_none(),
            without: row.door == "test"
                && run.definition.as_ref().is_some_and(|found| !found.grants.network.is_empty()),
        }
    }
}

fn versions(view: &ToolView, now: crate::model::Timestamp) -> Vec<VersionRow> {
    let row = |version: &crate::store::VersionSummary| VersionRow {
        number: version.number,
        note: match version.note.as_str() {
            "create" => "First version".to_owned(),
            "update" => "Changed".to_owned(),
            "replace" => "Replaced".to_owned(),
            note => note.replacen("rollback to", "Back to version", 1),
        },
        by: view.names.get(&version.created_by).cloned().unwrap_or_else(|| "somebody".to_owned()),
        saved: Moment::new(version.created_at, now),
        fingerprint: version.fingerprint.chars().take(12).collect(),
        serves: view.tool.serving_version == Some(version.number),
        waits: version.number == view.tool.latest_version && !view.waits.is_empty(),
        is_shown: version.number == view.version.number,
    };
    view.history.iter().map(row).collect()
}

async fn compare(
    web: &Web,
    visitor: &Visitor,
    view: &ToolView,
    from: Option<VersionNumber>,
) -> Result<Option<Compared>, WebError> {
    let to = view.version.number;
    let from = from.or(view.tool.serving_version.filter(|serving| *serving < to)).unwrap_or(to - 1);
    if from < 1 {
        return Ok(None);
    }
    let name = view.tool.name.as_str();
    let old = web.state.tools.view_tool(&visitor.caller, name, Some(from)).await?.version.definition;
    let new = &view.version.definition;
    let code = difference(&old.code, &new.code, &format!("Code of {name}, v{from} and v{to}"));
    let (before, after) = (about(&old), about(new));
    let rest =
        (before != after).then(|| difference(&before, &after, &format!("Settings of {name}, v{from} and v{to}")));
    Ok(Some(Compared { from, to, code, rest }))
}

/// Everything but the code and the lock, to be compared.
fn about(definition: &ToolDefinition) -> String {
    let mut value = serde_json::to_value(definition).unwrap_or_default();
    if let Some(map) = value.as_object_mut() {
        map.remove("code");
        map.remove("lock");
    }
    serde_json::to_string_pretty(&value).unwrap_or_default()
}

/// The arguments in a table.
fn schema_table(schema: &Value) -> Markup {
    let mut html = Markup::default();
    let properties = schema.get("properties").and_then(Value::as_object);
    let Some(properties) = properties.filter(|properties| !properties.is_empty()) else { return html };
    let required = schema.get("required").and_then(Value::as_array);
    html.raw("<table class=\"table bare\"><caption class=\"vh\">Arguments</caption><thead><tr><th scope=\"col\">Argument</th>");
    html.raw("<th scope=\"col\">Type</th><th scope=\"col\">Default</th></tr></thead><tbody>");
    for (name, member) in properties {
        let is_required = required.is_some_and(|list| list.iter().any(|item| item == name));
        html.raw("<tr><th scope=\"row\"><bdi class=\"mono\">").text(name).raw("</bdi>");
        html.raw(if is_required { " <span class=\"dim tiny\">required</span>" } else { "" });
        let kind = member.get("type").map(|kind| kind.as_str().map_or_else(|| kind.to_string(), str::to_owned));
        let kind = kind.or_else(|| member.get("enum").map(Value::to_string)).unwrap_or_else(|| "several".to_owned());
        html.raw("</th><td><bdi>").text(&super::text::cut(&kind, 120)).raw("</bdi></td><td class=\"mono\"><bdi>");
        html.text(
            &member.get("default").map_or_else(|| "–".to_owned(), |value| super::text::cut(&value.to_string(), 120)),
        );
        html.raw("</bdi></td></tr>");
    }
    html.raw("</tbody></table>");
    html
}
