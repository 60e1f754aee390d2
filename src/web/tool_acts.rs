//! What is done with a tool by one button: switching it, adding the example.

use std::sync::Arc;

use axum::Form;
use axum::extract::rejection::FormRejection;
use axum::extract::{Path, State};
use axum::response::Response;
use http::HeaderMap;
use serde::Deserialize;

use super::reply::see_other;
use super::sign_in::{read, sign_in_page};
use super::text::in_url;
use super::view::SignIn;
use super::{Web, WebError};
use crate::tools::{DeskError, Draft, Try};

/// The tool that the first page offers to try.
const EXAMPLE: &str = include_str!("../../assets/add_vat.py");

/// A switch, and which page it stands on.
#[derive(Deserialize)]
pub(super) struct Switch {
    csrf: String,
    enabled: String,
    #[serde(default)]
    back: String,
}

/// A form with a button and nothing else.
#[derive(Deserialize)]
pub(super) struct Button {
    pub(super) csrf: String,
}

/// `POST /tools/{name}/enabled`.
pub(super) async fn switch(
    State(web): State<Arc<Web>>,
    Path(name): Path<String>,
    headers: HeaderMap,
    form: Result<Form<Switch>, FormRejection>,
) -> Result<Response, WebError> {
    let Switch { csrf, enabled, back } = read(form)?;
    let Some(caller) = web.author(&headers, &csrf).await? else { return sign_in_page(&web, &headers, SignIn::NoLink) };
    web.state.tools.switch_tool(&caller, &name, enabled == "on").await?;
    let page = if back == "list" { web.home() } else { web.tool(&name) };
    Ok(see_other(&page))
}

/// `POST /examples/add_vat`: saves the example and runs it.
pub(super) async fn add_example(
    State(web): State<Arc<Web>>,
    headers: HeaderMap,
    form: Result<Form<Button>, FormRejection>,
) -> Result<Response, WebError> {
    let Button { csrf } = read(form)?;
    let Some(caller) = web.author(&headers, &csrf).await? else { return sign_in_page(&web, &headers, SignIn::NoLink) };
    let tools = &web.state.tools;
    let draft = Draft { code: Some(EXAMPLE.to_owned()), tags: Some(vec!["example".to_owned()]), ..Draft::default() };
    let version = match tools.make_tool(&caller, "add_vat", draft).await {
        Ok(saved) => saved.version.number,
        // Somebody was there first: theirs is shown.
        Err(DeskError::Refused(_)) => return Ok(see_other(&web.tool("add_vat"))),
        Err(error) => return Err(error.into()),
    };
    let tried = tools.try_out(&caller, Try::Version("add_vat".to_owned(), version), r#"{"net": 10}"#).await?;
    Ok(see_other(&format!("{}?run={}", web.tool("add_vat"), tried.run)))
}

impl Web {
    /// The path of a tool's page.
    pub(super) fn tool(&self, name: &str) -> String {
        format!("{}/tools/{}", self.site.prefix(), in_url(name).replace("%5F", "_").replace("%2D", "-"))
    }
}
