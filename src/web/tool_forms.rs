//! What the forms of a tool's page do: make, save, try, return to a version, delete.

use std::sync::Arc;

use askama::Template;
use axum::Form;
use axum::extract::rejection::FormRejection;
use axum::extract::{Path, State};
use axum::response::Response;
use http::{HeaderMap, StatusCode};
use serde_json::{Map, Value, json};

use super::arguments::{self, Filled};
use super::frame::Frame;
use super::reply::{page, see_other};
use super::sign_in::{read, sign_in_page};
use super::text::in_url;
use super::tool_page::{Asked, Failure, place, render};
use super::view::SignIn;
use super::{Visitor, Web, WebError};
use crate::model::{Caller, VersionNumber};
use crate::tools::{DeskError, Draft, Try};

type Sent = Result<Form<Filled>, FormRejection>;

/// The page of a tool that doesn't exist yet.
#[derive(Template)]
#[template(path = "new.html")]
struct NewPage {
    frame: Frame,
    name: String,
    language: String,
    code: String,
    dependencies: String,
    says: String,
    place: String,
    languages: Vec<(&'static str, &'static str)>,
}

/// What an empty editor begins with.
const BEGINNING: &str =
    "def main(name: str = \"world\") -> str:\n    \"\"\"Greet somebody.\"\"\"\n    return f\"Hello, {name}\"\n";

fn field<'a>(filled: &'a Filled, name: &str) -> Option<&'a str> {
    filled.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
}

fn text_of(filled: &Filled, name: &str) -> String {
    field(filled, name).unwrap_or_default().to_owned()
}

/// The lines or words of a field.
fn parts(text: &str, separators: &[char]) -> Vec<String> {
    text.split(separators).map(str::trim).filter(|part| !part.is_empty()).map(str::to_owned).collect()
}

/// `GET /new`.
pub(super) async fn blank(State(web): State<Arc<Web>>, headers: HeaderMap) -> Result<Response, WebError> {
    let Some(visitor) = web.visitor(&headers).await? else { return sign_in_page(&web, &headers, SignIn::NoLink) };
    let filled = vec![("code".to_owned(), BEGINNING.to_owned())];
    new_page(&web, (&headers, &visitor), &filled, (StatusCode::OK, String::new(), None)).await
}

async fn new_page(
    web: &Web,
    (headers, visitor): (&HeaderMap, &Visitor),
    filled: &Filled,
    (status, says, line): (StatusCode, String, Option<u32>),
) -> Result<Response, WebError> {
    let runtimes = web.state.tools.runner.runtimes().iter();
    let code = text_of(filled, "code");
    let template = NewPage {
        frame: Frame::new(web, headers, visitor, "tools").await,
        name: text_of(filled, "name"),
        language: text_of(filled, "language"),
        dependencies: text_of(filled, "dependencies"),
        place: line.map(|line| place(&code, line)).unwrap_or_default(),
        languages: runtimes
            .map(|runtime| (runtime.language.as_str(), super::view::language(runtime.language)))
            .collect(),
        code,
        says,
    };
    page(status, &template, &template.frame)
}

/// `POST /new`.
pub(super) async fn make(State(web): State<Arc<Web>>, headers: HeaderMap, form: Sent) -> Result<Response, WebError> {
    let filled = read(form)?;
    let Some((caller, visitor)) = author(&web, &headers, &filled).await? else {
        return sign_in_page(&web, &headers, SignIn::NoLink);
    };
    let draft = Draft {
        code: Some(code(&filled)),
        language: field(&filled, "language").filter(|language| !language.is_empty()).map(str::to_owned),
        dependencies: Some(parts(&text_of(&filled, "dependencies"), &['\n', '\r'])),
        ..Draft::default()
    };
    match web.state.tools.make_tool(&caller, text_of(&filled, "name").trim(), draft).await {
        Ok(saved) => Ok(see_other(&web.tool(saved.tool.name.as_str()))),
        Err(error) => {
            let (says, line) = mendable(error)?;
            new_page(&web, (&headers, &visitor), &filled, (StatusCode::UNPROCESSABLE_ENTITY, says, line)).await
        }
    }
}

/// What the author can mend, in words and by its line; anything else stays an error.
fn mendable(error: DeskError) -> Result<(String, Option<u32>), WebError> {
    match error {
        DeskError::Refused(says) => Ok((says, None)),
        DeskError::Fault(fault) => Ok((fault.to_string(), fault.line)),
        other => Err(other.into()),
    }
}

async fn author(web: &Web, headers: &HeaderMap, filled: &Filled) -> Result<Option<(Caller, Visitor)>, WebError> {
    let Some(caller) = web.author(headers, field(filled, "csrf").unwrap_or_default()).await? else { return Ok(None) };
    Ok(web.visitor(headers).await?.map(|visitor| (caller, visitor)))
}

/// A text area sends the ends of lines as the web does.
fn code(filled: &Filled) -> String {
    text_of(filled, "code").replace("\r\n", "\n")
}

/// `POST /tools/{name}/save`: the code, the settings or the schema, whichever form it was.
pub(super) async fn save(
    State(web): State<Arc<Web>>,
    Path(name): Path<String>,
    headers: HeaderMap,
    form: Sent,
) -> Result<Response, WebError> {
    let filled = read(form)?;
    let Some((caller, visitor)) = author(&web, &headers, &filled).await? else {
        return sign_in_page(&web, &headers, SignIn::NoLink);
    };
    let tools = &web.state.tools;
    let tab = text_of(&filled, "tab");
    let seen: VersionNumber = field(&filled, "seen").and_then(|seen| seen.parse().ok()).unwrap_or(0);
    let before = tools.view_tool(&caller, &name, None).await?.version.definition;
    let draft = draft_of(&filled, &before);
    let code = field(&filled, "code").map(|_| code(&filled));
    let (error, checked) = match draft {
        Ok(draft) => match tools.save_tool(&caller, &name, seen, draft.clone()).await {
            Ok(_) => return Ok(see_other(&format!("{}?tab={}", web.tool(&name), in_url(&tab)))),
            Err(error) => (error, tools.check_draft(&caller, &name, draft).await.ok()),
        },
        Err(says) => (DeskError::Refused(says), None),
    };
    let sent = checked.map(|checked| checked.definition);
    let failure = match error {
        DeskError::Overtaken { latest, .. } => Failure {
            status: Some(StatusCode::CONFLICT),
            says: format!(
                "Version {latest} was saved while you worked. What you sent is still in the form. Compare, then save again to \
                 put yours over it."
            ),
            overtaken: true,
            code,
            sent,
            ..Failure::default()
        },
        error => {
            let (says, line) = mendable(error)?;
            Failure { status: Some(StatusCode::UNPROCESSABLE_ENTITY), says, line, code, sent, ..Failure::default() }
        }
    };
    let asked = Asked { tab, ..Asked::default() };
    render(&web, (&headers, &visitor), &name, (asked, failure)).await
}

/// The draft that a form means.
fn draft_of(filled: &Filled, before: &crate::model::ToolDefinition) -> Result<Draft, String> {
    let mut draft = Map::new();
    if field(filled, "code").is_some() {
        draft.insert("code".to_owned(), json!(code(filled)));
    }
    for name in ["input_schema", "output_schema"] {
        let Some(text) = field(filled, name) else { continue };
        let schema = match text.trim() {
            "" => Value::Null,
            text => serde_json::from_str(text).map_err(|error| format!("`{name}`: it is no JSON: {error}"))?,
        };
        draft.insert(name.to_owned(), schema);
    }
    if field(filled, "settings").is_some() {
        draft.extend(settings_of(filled, before)?);
    }
    serde_json::from_value(Value::Object(draft)).map_err(|error| error.to_string())
}

fn settings_of(filled: &Filled, before: &crate::model::ToolDefinition) -> Result<Map<String, Value>, String> {
    let number = |name: &'static str| match text_of(filled, name).trim() {
        "" => Ok(Value::Null),
        text => serde_json::from_str::<serde_json::Number>(text)
            .map(Value::Number)
            .map_err(|_| format!("`{name}`: `{text}` is no number")),
    };
    let network = match field(filled, "network") {
        Some("full") => vec!["full".to_owned()],
        Some("list") => parts(&text_of(filled, "hosts"), &['\n', '\r', ',', ' ']),
        _ => Vec::new(),
    };
    let secrets: Vec<&String> = filled.iter().filter(|(key, _)| key == "secret").map(|(_, value)| value).collect();
    let mut settings = json!({
        "network": network,
        "secrets": secrets,
        "calls": parts(&text_of(filled, "calls"), &[',', '\n', '\r', ' ']),
        "shared_state": field(filled, "shared_state").is_some(),
        "dependencies": parts(&text_of(filled, "dependencies"), &['\n', '\r']),
        "mode": field(filled, "mode").unwrap_or("auto"),
        "timeout_seconds": number("timeout_seconds")?,
        "memory_mb": number("memory_mb")?,
        "title": Some(text_of(filled, "title")).filter(|title| !title.trim().is_empty()),
        "tags": parts(&text_of(filled, "tags"), &[',', '\n', '\r']),
    });
    let description = text_of(filled, "description").replace("\r\n", "\n");
    let is_as_before = before.inferred.description && description.trim() == before.description.trim();
    if !is_as_before {
        settings["description"] = json!(Some(description).filter(|text| !text.trim().is_empty()));
    }
    match settings {
        Value::Object(settings) => Ok(settings),
        _ => unreachable!("it was written as an object"),
    }
}

/// `POST /tools/{name}/try`: runs a version, or the code of the form, and goes back with the result.
pub(super) async fn try_it(
    State(web): State<Arc<Web>>,
    Path(name): Path<String>,
    headers: HeaderMap,
    form: Sent,
) -> Result<Response, WebError> {
    let filled = read(form)?;
    let Some((caller, visitor)) = author(&web, &headers, &filled).await? else {
        return sign_in_page(&web, &headers, SignIn::NoLink);
    };
    let tools = &web.state.tools;
    let number = field(&filled, "version").and_then(|number| number.parse().ok());
    let view = tools.view_tool(&caller, &name, number).await?;
    let schema = &view.version.definition.input_schema;
    let text = match arguments::arguments(schema, &filled) {
        Ok(text) => text,
        Err(says) => return not_tried(&web, (&headers, &visitor), &name, (says, None)).await,
    };
    let what = Try::Version(name.clone(), view.version.number);
    match tools.try_out(&caller, what, &text).await {
        Ok(tried) => Ok(see_other(&format!("{}?run={}", web.tool(&name), tried.run))),
        Err(error) => {
            let (says, _) = mendable(error)?;
            not_tried(&web, (&headers, &visitor), &name, (says, serde_json::from_str(&text).ok())).await
        }
    }
}

async fn not_tried(
    web: &Web,
    from: (&HeaderMap, &Visitor),
    name: &str,
    (says, arguments): (String, Option<Value>),
) -> Result<Response, WebError> {
    let status = Some(StatusCode::UNPROCESSABLE_ENTITY);
    render(web, from, name, (Asked::default(), Failure { status, says, arguments, ..Failure::default() })).await
}

/// `POST /tools/{name}/return`: an old version's content becomes the newest one.
pub(super) async fn return_to(
    State(web): State<Arc<Web>>,
    Path(name): Path<String>,
    headers: HeaderMap,
    form: Sent,
) -> Result<Response, WebError> {
    let filled = read(form)?;
    let Some((caller, _)) = author(&web, &headers, &filled).await? else {
        return sign_in_page(&web, &headers, SignIn::NoLink);
    };
    let number = field(&filled, "to").and_then(|number| number.parse().ok()).unwrap_or(0);
    web.state.tools.return_to(&caller, &name, number).await?;
    Ok(see_other(&format!("{}?tab=versions", web.tool(&name))))
}

/// `POST /tools/{name}/delete`; the name, typed once more, says that it is meant.
pub(super) async fn delete(
    State(web): State<Arc<Web>>,
    Path(name): Path<String>,
    headers: HeaderMap,
    form: Sent,
) -> Result<Response, WebError> {
    let filled = read(form)?;
    let Some((caller, visitor)) = author(&web, &headers, &filled).await? else {
        return sign_in_page(&web, &headers, SignIn::NoLink);
    };
    if text_of(&filled, "really").trim() != name {
        let says = format!("Nothing was deleted. Type `{name}` into the field to delete it.");
        let asked = Asked { tab: "settings".to_owned(), ..Asked::default() };
        let status = Some(StatusCode::UNPROCESSABLE_ENTITY);
        return render(&web, (&headers, &visitor), &name, (asked, Failure { status, says, ..Failure::default() }))
            .await;
    }
    web.state.tools.delete_tool(&caller, &name).await?;
    Ok(see_other(&web.home()))
}
