//! Facts of one run: where its time went, what it used of its limits, who called it.

use super::text::{Markup, Moment, count, duration, in_url};
use crate::model::{Ending, Timestamp};
use crate::tools::RunView;

/// Where the time went: a row a step.
pub(super) fn steps(run: &RunView, now: Timestamp) -> Markup {
    let row = &run.row;
    let end = row.ended_at.unwrap_or(now);
    let started = row.started_at.unwrap_or(end);
    let all = ((end.0 - row.queued_at.0).max(1)) as f64;
    let waited = (started.0 - row.queued_at.0).max(0) as f64;
    let ran = (end.0 - started.0).max(0) as f64;
    let mut html = Markup::default();
    let mut step = |name: &str, class: &str, (from, took): (f64, f64), what: &str| {
        html.raw("<tr><th scope=\"row\"><span>")
            .raw(name)
            .raw("</span><span class=\"aside\">")
            .raw(what)
            .raw("</span></th>");
        html.raw("<td class=\"track\"><svg viewBox=\"0 0 600 14\" preserveAspectRatio=\"none\" aria-hidden=\"true\">");
        html.raw("<rect class=\"bg\" y=\"6.5\" width=\"600\" height=\"1\"/>");
        let (x, wide) = (600.0 * from / all, (600.0 * took / all).max(2.0));
        html.raw(&format!(
            "<rect class=\"{class}\" x=\"{x:.1}\" y=\"2\" width=\"{wide:.1}\" height=\"10\"/></svg></td>"
        ));
        html.raw("<td class=\"fit r\">")
            .text(&duration(took))
            .raw("</td><td class=\"dim\">")
            .raw(what)
            .raw("</td></tr>");
    };
    step("Waited", "p-queue", (0.0, waited), "For its environment and a free slot");
    if row.started_at.is_some() {
        let what = if row.ended_at.is_some() { "From the start of its process to its end" } else { "Running" };
        step("Ran", "p-run", (waited, ran), what);
    }
    html
}

/// What it used of its limits.
pub(super) fn limits(run: &RunView, now: Timestamp) -> Markup {
    let (row, limits) = (&run.row, &run.limits);
    let mut html = Markup::default();
    let mut limit = |name: &str, used: f64, most: f64, unit: &str| {
        let share = if most > 0.0 { (used / most).clamp(0.0, 1.0) } else { 0.0 };
        let class = if share >= 1.0 { "hit" } else { "fg" };
        html.raw("<tr><th scope=\"row\">").raw(name).raw("</th><td class=\"track\"><svg class=\"meter\" ");
        html.raw("viewBox=\"0 0 100 6\" preserveAspectRatio=\"none\" aria-hidden=\"true\">");
        html.raw("<rect class=\"bg\" width=\"100\" height=\"6\"/>");
        html.raw(&format!(
            "<rect class=\"{class}\" width=\"{:.1}\" height=\"6\"/></svg></td>",
            (share * 100.0).max(0.8)
        ));
        let used = if used < 10.0 { format!("{used:.1}") } else { count(used as i64) };
        html.raw("<td class=\"r fit\">").text(&used).raw(" <span class=\"dim\">of ").text(&count(most as i64)).raw(" ");
        html.raw(unit).raw("</span></td></tr>");
    };
    let mebi = |bytes: f64| bytes / 1_048_576.0;
    let ran = row.started_at.map_or(0, |started| row.ended_at.unwrap_or(now).0 - started.0).max(0);
    limit("Memory", mebi(row.peak_memory_bytes as f64), mebi(limits.memory_bytes as f64), "MiB");
    limit("Time", ran as f64 / 1000.0, limits.wall.as_secs_f64(), "s");
    limit("Processor", row.cpu_ms as f64 / 1000.0, limits.cpu.as_secs_f64(), "s");
    let printed = row.stdout.len().max(row.stderr.len()) as f64;
    limit("Output kept", mebi(printed), mebi(limits.output_inline_bytes as f64), "MiB");
    html
}

/// Who, what, when.
pub(super) fn facts(run: &RunView, caller: &str, now: Timestamp) -> Vec<(&'static str, Markup)> {
    let row = &run.row;
    let text = |text: &str| {
        let mut html = Markup::default();
        html.raw("<bdi>").text(text).raw("</bdi>");
        html
    };
    let mut version = Markup::default();
    match row.version {
        Some(number) if run.definition.is_some() => {
            version
                .raw("<a href=\"../tools/")
                .raw(&in_url(&row.tool_name))
                .raw("?tab=versions&amp;version=")
                .shown(number);
            version.raw("\">").shown(number).raw("</a>");
        }
        Some(number) => drop(version.shown(number)),
        None => drop(version.raw("unsaved code")),
    }
    let started = Moment::new(row.queued_at, now);
    let mut facts = vec![
        ("Run", text(&row.id.to_string())),
        ("Asked for", text(&started.full)),
        ("Called by", text(caller)),
        ("Client", text(row.client.as_deref().unwrap_or("not said"))),
        ("Through", text(&row.door)),
        ("Version", version),
        ("Sandbox", text(row.sandbox.as_str())),
    ];
    if let Some(Ending::Exit(code)) = row.ending {
        facts.push(("Exit", text(&code.to_string())));
    }
    if row.tries > 1 {
        facts.push(("Started", text(&format!("{} times", row.tries))));
    }
    if !row.coerced.is_empty() {
        facts.push(("Coerced", text(&row.coerced.join(", "))));
    }
    if let Some(network) = &row.network {
        let unreached: Vec<String> = network.unreached.iter().take(12).map(ToString::to_string).collect();
        if !unreached.is_empty() {
            facts.push(("Not reached", text(&unreached.join("\n"))));
        }
    }
    facts
}
