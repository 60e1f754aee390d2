//! What a run said and printed, line by line.

use serde_json::Value;

use super::text::{Markup, cut};
use crate::model::RunEvent;
use crate::tools::RunView;

/// The most lines and characters of a line that a page shows.
const SHOWN: (usize, usize) = (1000, 4000);

/// The log of a run; empty where it said nothing.
pub(super) fn log(run: &RunView) -> Markup {
    let mut html = Markup::default();
    if run.row.ending.is_none() {
        for event in &run.heard.0 {
            html.push(&line(event));
        }
    }
    for text in run.row.log.lines().take(SHOWN.0) {
        match serde_json::from_str::<RunEvent>(text) {
            Ok(event) => drop(html.push(&line(&event))),
            Err(_) => drop(html.push(&row("notice", "The log was cut here: it was too long."))),
        }
    }
    for (stream, text) in [("stdout", &run.row.stdout), ("stderr", &run.row.stderr)] {
        for line in text.lines().take(SHOWN.0) {
            html.push(&row(stream, line));
        }
        if text.lines().nth(SHOWN.0).is_some() {
            html.push(&row("notice", "More was printed than this page shows; download it whole."));
        }
    }
    html
}

/// One line, as a list item.
pub(super) fn line(event: &RunEvent) -> Markup {
    match event {
        RunEvent::Log { level, data, logger } => {
            let level = serde_json::to_value(level).unwrap_or_default();
            let text = data.as_str().map_or_else(|| data.to_string(), str::to_owned);
            let text = logger.as_ref().map_or_else(|| text.clone(), |logger| format!("{logger}: {text}"));
            row(level.as_str().unwrap_or("info"), &text)
        }
        RunEvent::Progress { progress, total, message } => {
            let of = total.map(|total| format!(" of {total}")).unwrap_or_default();
            let said = message.as_ref().map(|message| format!(" · {message}")).unwrap_or_default();
            row("progress", &format!("{progress}{of}{said}"))
        }
        RunEvent::CloseStream => Markup::default(),
    }
}

fn row(level: &str, text: &str) -> Markup {
    let mut html = Markup::default();
    html.raw("<li").attribute("class", level).raw("><span class=\"at\"></span><span class=\"lv\">").text(level);
    html.raw("</span><bdi class=\"msg\">").text(&cut(text, SHOWN.1)).raw("</bdi></li>");
    html
}

/// A value of the log as it was sent to a page that follows it.
pub(super) fn event_json(events: &[RunEvent]) -> String {
    let lines: Vec<Value> = events.iter().map(|event| Value::String(line(event).to_string())).collect();
    Value::Array(lines).to_string()
}
