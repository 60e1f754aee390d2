//! `/secrets`: which there are, and the forms that set and delete one. No page shows a value.

use std::sync::Arc;

use askama::Template;
use axum::Form;
use axum::extract::State;
use axum::extract::rejection::FormRejection;
use axum::response::Response;
use http::{HeaderMap, StatusCode};
use serde::Deserialize;

use super::frame::Frame;
use super::reply::{page, see_other};
use super::sign_in::{read, sign_in_page};
use super::text::Moment;
use super::view::SignIn;
use super::{Web, WebError};
use crate::trust::SecretError;

/// What is to be done with a secret.
#[derive(Deserialize)]
pub(super) struct Change {
    csrf: String,
    #[serde(rename = "do")]
    action: String,
    name: String,
    #[serde(default)]
    value: String,
    #[serde(default)]
    hosts: String,
}

#[derive(Template)]
#[template(path = "secrets.html")]
struct SecretsPage {
    frame: Frame,
    rows: Vec<Row>,
}

struct Row {
    name: String,
    hosts: String,
    set: Moment,
}

/// `GET /secrets`.
pub(super) async fn list(State(web): State<Arc<Web>>, headers: HeaderMap) -> Result<Response, WebError> {
    let Some(visitor) = web.signed_in(&headers).await? else { return sign_in_page(&web, &headers, SignIn::NoLink) };
    let secrets = web.state.tools.secrets.list(&visitor.caller).await?;
    let now = web.state.clock.now();
    let row = |secret: crate::trust::SecretSummary| Row {
        name: secret.name,
        hosts: if secret.hosts.is_empty() { "any host".to_owned() } else { secret.hosts.join(", ") },
        set: Moment::new(secret.updated_at, now),
    };
    let rows = secrets.into_iter().map(row).collect();
    let template = SecretsPage { frame: Frame::new(&web, &headers, &visitor, "secrets").await, rows };
    page(StatusCode::OK, &template, &template.frame)
}

/// `POST /secrets`.
pub(super) async fn change(
    State(web): State<Arc<Web>>,
    headers: HeaderMap,
    form: Result<Form<Change>, FormRejection>,
) -> Result<Response, WebError> {
    let Change { csrf, action, name, value, hosts } = read(form)?;
    let Some(caller) = web.sender(&headers, &csrf).await? else { return sign_in_page(&web, &headers, SignIn::NoLink) };
    match action.as_str() {
        "set" => {
            let hosts: Vec<String> =
                hosts.split([',', ' ']).filter(|host| !host.is_empty()).map(str::to_owned).collect();
            // A text area sends the ends of lines as the web does.
            web.state.tools.secrets.set(&caller, name.trim(), &value.replace("\r\n", "\n"), &hosts).await?;
        }
        "delete" => drop(web.state.tools.secrets.delete(&caller, &name).await?),
        other => {
            let detail = format!("`do` is `set` or `delete`, not `{other}`");
            return Err(WebError::BadForm { status: StatusCode::BAD_REQUEST, detail });
        }
    }
    Ok(see_other(&format!("{}/secrets", web.site.prefix())))
}

impl From<SecretError> for WebError {
    fn from(error: SecretError) -> Self {
        Self::Refused { status: error.status(), error: Box::new(error) }
    }
}
