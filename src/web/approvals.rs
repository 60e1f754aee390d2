//! `/approvals`: what waits for a person, what it asks for, and the buttons.

use std::sync::Arc;

use askama::Template;
use axum::Form;
use axum::extract::rejection::FormRejection;
use axum::extract::{Path, State};
use axum::response::Response;
use http::{HeaderMap, StatusCode};
use serde::Deserialize;

use super::frame::Frame;
use super::reply::{page, see_other};
use super::sign_in::{read, sign_in_page};
use super::text::Moment;
use super::view::SignIn;
use super::{Web, WebError};
use crate::model::{ApprovalState, Timestamp, VersionNumber};
use crate::trust::{ApprovalError, ApproveRequest, Asked, Review, Waiting};

/// A decision, with what was shown when it was made.
#[derive(Deserialize)]
pub(super) struct Decision {
    csrf: String,
    #[serde(rename = "do")]
    action: String,
    version: VersionNumber,
    fingerprint: String,
    note: String,
}

#[derive(Template)]
#[template(path = "approvals.html")]
struct ApprovalsPage {
    frame: Frame,
    rows: Vec<Row>,
}

struct Row {
    id: String,
    name: String,
    kind: &'static str,
    version: VersionNumber,
    serving: String,
    asks: String,
    saved: Moment,
}

#[derive(Template)]
#[template(path = "approval.html")]
struct ApprovalPage {
    frame: Frame,
    id: String,
    name: String,
    kind: &'static str,
    version: VersionNumber,
    serving: String,
    saved: Moment,
    waits: bool,
    all_code: bool,
    is_active: bool,
    reach: Vec<Asked>,
    base: Option<VersionNumber>,
    diff: String,
    fingerprint: String,
    history: Vec<Decided>,
}

struct Decided {
    state: &'static str,
    version: VersionNumber,
    note: String,
    when: Moment,
}

/// `GET /approvals`.
pub(super) async fn list(State(web): State<Arc<Web>>, headers: HeaderMap) -> Result<Response, WebError> {
    let Some(visitor) = web.signed_in(&headers).await? else { return sign_in_page(&web, &headers, SignIn::NoLink) };
    let waiting = web.state.tools.waiting(&visitor.caller).await?;
    let now = web.state.clock.now();
    let rows = waiting.into_iter().map(|entry| Row::new(entry, now)).collect();
    let template = ApprovalsPage { frame: Frame::new(&web, &headers, &visitor, "approvals").await, rows };
    page(StatusCode::OK, &template, &template.frame)
}

/// `GET /approvals/{id}`.
pub(super) async fn show(
    State(web): State<Arc<Web>>,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> Result<Response, WebError> {
    let Some(visitor) = web.signed_in(&headers).await? else { return sign_in_page(&web, &headers, SignIn::NoLink) };
    let review = web.state.tools.review(&visitor.caller, &id).await?;
    let frame = Frame::new(&web, &headers, &visitor, "approvals").await;
    let template = ApprovalPage::new(frame, review, web.state.clock.now());
    page(StatusCode::OK, &template, &template.frame)
}

/// `POST /approvals/{id}`.
pub(super) async fn decide(
    State(web): State<Arc<Web>>,
    Path(id): Path<String>,
    headers: HeaderMap,
    form: Result<Form<Decision>, FormRejection>,
) -> Result<Response, WebError> {
    let Decision { csrf, action, version, fingerprint, note } = read(form)?;
    let Some(caller) = web.sender(&headers, &csrf).await? else { return sign_in_page(&web, &headers, SignIn::NoLink) };
    let tools = &web.state.tools;
    match action.as_str() {
        "approve" => drop(tools.approve(&caller, &id, ApproveRequest { version, fingerprint, note }).await?),
        "revoke" => drop(tools.revoke_approval(&caller, &id).await?),
        other => {
            let detail = format!("`do` is `approve` or `revoke`, not `{other}`");
            return Err(WebError::BadForm { status: StatusCode::BAD_REQUEST, detail });
        }
    }
    Ok(see_other(&format!("{}/approvals", web.site.prefix())))
}

fn serving(version: Option<VersionNumber>) -> String {
    version.map_or("No version serves meanwhile".to_owned(), |number| format!("Version {number} serves"))
}

impl Row {
    fn new(entry: Waiting, now: Timestamp) -> Self {
        Self {
            id: entry.id,
            name: entry.name,
            kind: entry.kind,
            version: entry.version,
            serving: serving(entry.serving_version),
            asks: entry.asks.join("; "),
            saved: Moment::new(entry.saved_at, now),
        }
    }
}

impl ApprovalPage {
    fn new(frame: Frame, review: Review, now: Timestamp) -> Self {
        let is_active = review.approvals.iter().any(|approval| approval.state == ApprovalState::Active);
        let decided = review.approvals.into_iter().map(|approval| Decided {
            state: match approval.state {
                ApprovalState::Active => "Approved",
                ApprovalState::Retired => "Retired",
                ApprovalState::Revoked => "Taken back",
            },
            version: approval.version,
            note: approval.note,
            when: Moment::new(approval.ended_at.unwrap_or(approval.approved_at), now),
        });
        Self {
            frame,
            name: review.entry.name,
            kind: review.entry.kind,
            version: review.entry.version,
            serving: serving(review.entry.serving_version),
            saved: Moment::new(review.entry.saved_at, now),
            id: review.entry.id,
            waits: review.waits,
            all_code: review.all_code,
            is_active,
            reach: review.reach,
            base: review.base_version,
            diff: review.diff,
            fingerprint: review.fingerprint,
            history: decided.collect(),
        }
    }
}

impl From<ApprovalError> for WebError {
    fn from(error: ApprovalError) -> Self {
        Self::Refused { status: error.status(), error: Box::new(error) }
    }
}
