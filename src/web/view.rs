//! The pages that stand alone: signing in, and errors. And the words and marks that several pages share.

use askama::Template;
use http::{HeaderMap, StatusCode};

use super::Web;
use super::frame::Frame;
use crate::model::{Ending, Language};
use crate::tools::ToolState;

/// What a person who isn't signed in sees.
pub(super) enum SignIn {
    /// The link's page: one button spends the code.
    Link {
        /// The link's code.
        code: String,
    },
    /// A code that leads nowhere.
    Used,
    /// No code at all.
    NoLink,
}

impl SignIn {
    fn is_link(&self) -> bool {
        matches!(self, Self::Link { .. })
    }
}

/// The sign-in page.
#[derive(Template)]
#[template(path = "sign-in.html")]
pub(super) struct SignInPage {
    pub(super) frame: Frame,
    state: SignIn,
}

impl SignInPage {
    pub(super) fn new(web: &Web, headers: &HeaderMap, state: SignIn) -> Self {
        Self { frame: Frame::bare(web, headers), state }
    }
}

/// The page of an error.
#[derive(Template)]
#[template(path = "error.html")]
pub(super) struct ErrorPage {
    pub(super) frame: Frame,
    title: &'static str,
    status: u16,
    detail: String,
}

impl ErrorPage {
    pub(super) fn new(frame: Frame, status: StatusCode, detail: String) -> Self {
        let title = match status {
            StatusCode::NOT_FOUND => "Nothing here",
            StatusCode::FORBIDDEN => "Not allowed",
            status if status.is_server_error() => "The server failed",
            status => status.canonical_reason().unwrap_or("Not possible"),
        };
        Self { frame, title, status: status.as_u16(), detail }
    }
}

/// A status: a shape, a colour and words.
#[derive(Clone, Copy)]
pub(super) struct Mark {
    pub(super) icon: &'static str,
    pub(super) colour: &'static str,
    pub(super) words: &'static str,
}

impl Mark {
    pub(super) fn of_tool(state: ToolState) -> Self {
        let (icon, colour, words) = match state {
            ToolState::Ready => ("s-ready", "ok", "Ready"),
            ToolState::NeedsApproval => ("s-approval", "warn", "Needs approval"),
            ToolState::Installing => ("s-busy", "busy", "Installing"),
            ToolState::Failed => ("s-failed", "bad", "Install failed"),
            ToolState::Off => ("s-off", "", "Off"),
        };
        Self { icon, colour, words }
    }

    pub(super) fn of_run(ending: Option<&Ending>) -> Self {
        let (icon, colour, words) = match ending {
            None => ("s-running", "busy", "Running"),
            Some(Ending::Ok) => ("s-ok", "ok", "Ok"),
            Some(Ending::Error) => ("s-error", "bad", "Error"),
            Some(Ending::Exit(_)) => ("s-error", "bad", "Left early"),
            Some(Ending::Signal(_)) => ("s-error", "bad", "Killed"),
            Some(Ending::Timeout) => ("s-timeout", "warn", "Timed out"),
            Some(Ending::Cancelled) => ("s-cancelled", "", "Cancelled"),
            Some(Ending::Limit(_)) => ("s-limit", "bad", "Limit hit"),
            Some(Ending::Interrupted) => ("s-interrupted", "warn", "Interrupted"),
        };
        Self { icon, colour, words }
    }

    /// The colour of a badge that holds it.
    pub(super) fn badge(&self) -> &'static str {
        if self.colour == "busy" { "info" } else { self.colour }
    }
}

pub(super) fn language(language: Language) -> &'static str {
    match language {
        Language::Python => "Python",
        Language::JavaScript => "JavaScript",
        Language::TypeScript => "TypeScript",
        Language::Bash => "Bash",
    }
}
