//! Two texts side by side where there is room, else one below the other. Long stretches that are the same are left out.

use similar::{ChangeTag, TextDiff};

use super::text::{Markup, cut};

/// How many equal lines stand around a change.
const AROUND: usize = 3;
/// The most rows that are drawn.
const MOST: usize = 4000;
/// The most characters of one line.
const WIDEST: usize = 2000;

/// The difference, and how many lines came and went.
pub(super) struct Difference {
    pub(super) html: Markup,
    pub(super) added: usize,
    pub(super) removed: usize,
}

/// A line's number and text.
type Numbered = (usize, String);
/// A line on one side.
type Side = Option<Numbered>;

enum Line {
    Same(usize, usize, String),
    Changed(Side, Side),
    Gap(usize),
}

/// Compares two texts; `what` names them for those who don't see.
pub(super) fn difference(old: &str, new: &str, what: &str) -> Difference {
    let lines = lines(old, new);
    let count = |side: fn(&Line) -> bool| lines.iter().filter(|line| side(line)).count();
    let added = count(|line| matches!(line, Line::Changed(_, Some(_))));
    let removed = count(|line| matches!(line, Line::Changed(Some(_), _)));
    let lines = folded(lines);
    let mut html = Markup::default();
    html.raw("<div class=\"diffs\" tabindex=\"0\" role=\"region\"").attribute("aria-label", what).raw(">");
    split(&mut html, &lines, what);
    unified(&mut html, &lines, what);
    if lines.len() > MOST {
        html.raw("<p class=\"block tiny dim\">The rest is left out: it is more than this page shows.</p>");
    }
    html.raw("</div>");
    Difference { html, added, removed }
}

fn lines(old: &str, new: &str) -> Vec<Line> {
    let diff = TextDiff::from_lines(old, new);
    let mut lines = Vec::new();
    let (mut gone, mut come) = (Vec::<Numbered>::new(), Vec::<Numbered>::new());
    for change in diff.iter_all_changes() {
        let text = cut(change.value().trim_end_matches(['\n', '\r']), WIDEST);
        match (change.tag(), change.old_index(), change.new_index()) {
            (ChangeTag::Delete, Some(at), _) => gone.push((at + 1, text)),
            (ChangeTag::Insert, _, Some(at)) => come.push((at + 1, text)),
            (_, before, after) => {
                settle(&mut lines, &mut gone, &mut come);
                lines.push(Line::Same(before.unwrap_or(0) + 1, after.unwrap_or(0) + 1, text));
            }
        }
    }
    settle(&mut lines, &mut gone, &mut come);
    lines
}

/// Puts what went and what came side by side.
fn settle(lines: &mut Vec<Line>, gone: &mut Vec<Numbered>, come: &mut Vec<Numbered>) {
    let (mut gone, mut come) = (gone.drain(..), come.drain(..));
    loop {
        match (gone.next(), come.next()) {
            (None, None) => return,
            (before, after) => lines.push(Line::Changed(before, after)),
        }
    }
}

/// The same, with long equal stretches as gaps.
fn folded(lines: Vec<Line>) -> Vec<Line> {
    let changed: Vec<usize> =
        lines.iter().enumerate().filter(|(_, line)| matches!(line, Line::Changed(..))).map(|(at, _)| at).collect();
    let mut shown = Vec::new();
    let mut next = 0;
    for (at, line) in lines.into_iter().enumerate() {
        while changed.get(next).is_some_and(|change| change + AROUND < at) {
            next += 1;
        }
        let is_near = changed.get(next).is_some_and(|change| change.abs_diff(at) <= AROUND);
        match (is_near, shown.last_mut()) {
            (true, _) => shown.push(line),
            (false, Some(Line::Gap(count))) => *count += 1,
            (false, _) => shown.push(Line::Gap(1)),
        }
    }
    shown
}

fn caption(html: &mut Markup, class: &str, what: &str, columns: &str) {
    html.raw("<table class=\"diff ").raw(class).raw("\"><caption class=\"vh\">").text(what).raw("</caption><colgroup>");
    html.raw(columns).raw("</colgroup><tbody>");
}

fn gap(html: &mut Markup, count: usize, span: usize) {
    let words = if count == 1 { "1 line the same".to_owned() } else { format!("{count} lines the same") };
    html.raw(&format!("<tr class=\"gap\"><td colspan=\"{span}\">{words}</td></tr>"));
}

fn split(html: &mut Markup, lines: &[Line], what: &str) {
    let column = "<col class=\"no\"><col class=\"sg\"><col>";
    caption(html, "split", what, &column.repeat(2));
    for line in lines.iter().take(MOST) {
        match line {
            Line::Gap(count) => gap(html, *count, 6),
            Line::Same(before, after, text) => {
                html.raw("<tr>");
                cell(html, Some((*before, text)), ("", "", ""));
                cell(html, Some((*after, text)), ("", "", " mid"));
                html.raw("</tr>");
            }
            Line::Changed(before, after) => {
                html.raw("<tr>");
                cell(html, before.as_ref().map(|(at, text)| (*at, text)), ("del", "−", ""));
                cell(html, after.as_ref().map(|(at, text)| (*at, text)), ("add", "+", " mid"));
                html.raw("</tr>");
            }
        }
    }
    html.raw("</tbody></table>");
}

fn cell(html: &mut Markup, side: Option<(usize, &String)>, (class, sign, mid): (&str, &str, &str)) {
    match side {
        None => {
            html.raw(&format!("<td class=\"no none{mid}\"></td><td class=\"sg none\"></td><td class=\"none\"></td>"));
        }
        Some((at, text)) => {
            html.raw(&format!("<td class=\"no {class}{mid}\">{at}</td><td class=\"sg {class}\">{sign}</td>"));
            html.raw(&format!("<td class=\"{class}\">")).text(text).raw("</td>");
        }
    }
}

fn unified(html: &mut Markup, lines: &[Line], what: &str) {
    caption(html, "unified", what, "<col class=\"no\"><col class=\"no\"><col class=\"sg\"><col>");
    let row = |html: &mut Markup, numbers: (&str, &str), (class, sign, word): (&str, &str, &str), text: &str| {
        let word = if word.is_empty() { String::new() } else { format!("<span class=\"vh\">{word}</span>") };
        html.raw(&format!(
            "<tr><td class=\"no {class}\">{}</td><td class=\"no {class}\">{}</td>",
            numbers.0, numbers.1
        ));
        html.raw(&format!("<td class=\"sg {class}\">{word}{sign}</td><td class=\"{class}\">")).text(text);
        html.raw("</td></tr>");
    };
    for line in lines.iter().take(MOST) {
        match line {
            Line::Gap(count) => gap(html, *count, 4),
            Line::Same(before, after, text) => {
                row(html, (&before.to_string(), &after.to_string()), ("", "", ""), text);
            }
            Line::Changed(before, after) => {
                if let Some((at, text)) = before {
                    row(html, (&at.to_string(), ""), ("del", "−", "removed"), text);
                }
                if let Some((at, text)) = after {
                    row(html, ("", &at.to_string()), ("add", "+", "added"), text);
                }
            }
        }
    }
    html.raw("</tbody></table>");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_stand_side_by_side_and_the_rest_is_folded() {
        let old: String = (0..30).map(|number| format!("line {number}\n")).collect();
        let new = old.replace("line 15\n", "<b>new</b>\nmore\n");
        let found = difference(&old, &new, "v1 and v2");
        assert_eq!((found.added, found.removed), (2, 1));
        let html = found.html.to_string();
        for part in ["12 lines the same", "11 lines the same", "&lt;b&gt;new&lt;/b&gt;", "line 15", "removed"] {
            assert!(html.contains(part), "{part}: {html}");
        }
        assert!(!html.contains(">line 5<"), "{html}");
    }
}
