//! Charts of runs, drawn by the server, and the same as a table.

use super::text::{Markup, count, duration, percent};
use crate::tools::{Glance, Spell};

/// One chart.
pub(super) struct Chart {
    pub(super) title: String,
    pub(super) big: String,
    pub(super) small: String,
    pub(super) plot: Markup,
    pub(super) ticks: Vec<String>,
}

/// Calls, failures and times over a spell; and all of them as the rows of a table.
pub(super) fn charts(bars: &[Glance], spell: Spell) -> (Vec<Chart>, Markup) {
    let every = match spell {
        Spell::Hour => "5 minutes",
        Spell::Day => "half hour",
        Spell::Week => "3 hours",
        Spell::Month => "12 hours",
    };
    let sum = Glance::sum(bars);
    let said = |share: f64| sum.within(share).map_or_else(|| "–".to_owned(), duration);
    let ticks = ticks(bars, spell);
    let calls = Chart {
        title: format!("Calls per {every}"),
        big: count(sum.calls),
        small: String::new(),
        plot: columns(bars, |bar| bar.calls, ("bar-a", &format!("Calls per {every}, {} in all", count(sum.calls)))),
        ticks: ticks.clone(),
    };
    let failed = format!("Failures per {every}, {} in all", count(sum.failures));
    let failures = Chart {
        title: format!("Failures per {every}"),
        big: count(sum.failures),
        small: percent(sum.failing()),
        plot: columns(bars, |bar| bar.failures, ("bar-b", &failed)),
        ticks: ticks.clone(),
    };
    let times = Chart {
        title: "Time until the answer".to_owned(),
        big: said(0.5),
        small: format!("p50, {} p95", said(0.95)),
        plot: lines(
            bars,
            &format!("Half of the calls took less than {}, 19 of 20 less than {}", said(0.5), said(0.95)),
        ),
        ticks,
    };
    (vec![calls, failures, times], table(bars, spell))
}

fn label(glance: &Glance, spell: Spell) -> String {
    let moment = super::text::Moment::new(glance.at, glance.at);
    match spell {
        Spell::Hour | Spell::Day => moment.clock.chars().take(5).collect(),
        Spell::Week | Spell::Month => moment.machine.chars().skip(5).take(5).collect(),
    }
}

fn ticks(bars: &[Glance], spell: Spell) -> Vec<String> {
    let quarter = (bars.len() / 4).max(1);
    let mut ticks: Vec<String> = bars.iter().step_by(quarter).take(4).map(|bar| label(bar, spell)).collect();
    ticks.push("now".to_owned());
    ticks
}

/// The least round number that is no less.
fn round_up(number: i64) -> i64 {
    let mut step = 1;
    loop {
        for factor in [1, 2, 5] {
            if step * factor >= number {
                return step * factor;
            }
        }
        step *= 10;
    }
}

fn open(html: &mut Markup, words: &str) {
    html.raw("<svg viewBox=\"0 0 480 88\" preserveAspectRatio=\"none\" role=\"img\"")
        .attribute("aria-label", words)
        .raw(">");
}

fn columns(bars: &[Glance], of: fn(&Glance) -> i64, (class, words): (&str, &str)) -> Markup {
    let top = round_up(bars.iter().map(of).max().unwrap_or(0).max(1));
    let wide = 480.0 / bars.len().max(1) as f64;
    let mut html = Markup::default();
    open(&mut html, words);
    html.raw("<path class=\"grid\" d=\"M0 0H480M0 44H480\"/>");
    for (index, bar) in bars.iter().enumerate().filter(|(_, bar)| of(bar) > 0) {
        let high = 88.0 * of(bar) as f64 / top as f64;
        let (x, y) = (wide * index as f64 + wide * 0.14, 88.0 - high);
        let wide = wide * 0.72;
        html.raw(&format!(
            "<rect class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{wide:.1}\" height=\"{high:.1}\"/>"
        ));
    }
    html.raw("<path class=\"axis\" d=\"M0 88H480\"/></svg><span class=\"lab top\" aria-hidden=\"true\">");
    html.text(&count(top)).raw("</span>");
    html
}

fn lines(bars: &[Glance], words: &str) -> Markup {
    let wide = 480.0 / bars.len().max(1) as f64;
    let slowest = bars.iter().filter_map(|bar| bar.within(0.95)).fold(10.0, f64::max);
    let decades = slowest.log10().ceil().max(1.0);
    let mut html = Markup::default();
    open(&mut html, words);
    html.raw("<path class=\"grid\" d=\"M0 0H480M0 29.3H480M0 58.7H480\"/>");
    for (class, share) in [("line-b", 0.95), ("line-a", 0.5)] {
        let mut path = String::new();
        let mut is_drawn = false;
        for (index, bar) in bars.iter().enumerate() {
            let Some(took) = bar.within(share) else {
                is_drawn = false;
                continue;
            };
            let x = wide * (index as f64 + 0.5);
            let y = 88.0 - 88.0 * (took.max(1.0).log10() / decades).clamp(0.0, 1.0);
            let step = if is_drawn { "L" } else { "M" };
            // A dot where nothing stands beside it.
            let dot = if is_drawn { "" } else { "h0.1" };
            path += &format!("{step}{x:.1} {y:.1}{dot}");
            is_drawn = true;
        }
        html.raw(&format!("<path class=\"{class}\" d=\"{path}\"/>"));
    }
    let top = duration(10_f64.powf(decades));
    html.raw("<path class=\"axis\" d=\"M0 88H480\"/></svg><span class=\"lab top\" aria-hidden=\"true\">").text(&top);
    html.raw("</span>");
    html
}

fn table(bars: &[Glance], spell: Spell) -> Markup {
    let mut html = Markup::default();
    for part in bars.chunks(bars.len().div_ceil(12).max(1)) {
        let sum = Glance::sum(part);
        let said = |share: f64| sum.within(share).map_or_else(|| "–".to_owned(), duration);
        html.raw("<tr><th scope=\"row\">").text(&label(&part[0], spell)).raw("</th>");
        for cell in [count(sum.calls), count(sum.failures), said(0.5), said(0.95)] {
            html.raw("<td class=\"r\">").text(&cell).raw("</td>");
        }
        html.raw("</tr>");
    }
    html
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_end_on_round_numbers_and_nothing_draws_nothing() {
        assert_eq!([0, 1, 3, 7, 11, 60, 1294].map(round_up), [1, 1, 5, 10, 20, 100, 2000]);
        let bars = vec![Glance::default(); 12];
        let (charts, _) = charts(&bars, Spell::Hour);
        assert_eq!(charts.len(), 3);
        assert!(!charts[0].plot.to_string().contains("<rect"));
        assert_eq!(charts[2].big, "–");
    }
}
