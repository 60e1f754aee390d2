//! How facts read: times, durations, sizes, numbers; and markup that is made here rather than in a template.

use std::fmt;

use time::{Duration, OffsetDateTime};

use crate::model::Timestamp;

/// HTML that is safe as it is: made from escaped parts alone.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Markup(String);

impl fmt::Display for Markup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl askama::filters::HtmlSafe for Markup {}

impl Markup {
    /// Adds HTML of our own.
    pub(super) fn raw(&mut self, html: &str) -> &mut Self {
        self.0.push_str(html);
        self
    }

    /// Adds a text, escaped.
    pub(super) fn text(&mut self, text: &str) -> &mut Self {
        for character in text.chars() {
            match character {
                '&' => self.0.push_str("&amp;"),
                '<' => self.0.push_str("&lt;"),
                '>' => self.0.push_str("&gt;"),
                '"' => self.0.push_str("&quot;"),
                '\'' => self.0.push_str("&#39;"),
                other => self.0.push(other),
            }
        }
        self
    }

    /// Adds an attribute, escaped.
    pub(super) fn attribute(&mut self, name: &str, value: &str) -> &mut Self {
        self.raw(" ").raw(name).raw("=\"").text(value).raw("\"")
    }

    /// Adds a number or another value that reads the same in HTML.
    pub(super) fn shown(&mut self, value: impl fmt::Display) -> &mut Self {
        self.text(&value.to_string())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn push(&mut self, other: &Self) -> &mut Self {
        self.0.push_str(&other.0);
        self
    }
}

/// A time for people, and for machines.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Moment {
    pub(super) machine: String,
    pub(super) full: String,
    pub(super) short: String,
    /// The time of day, with seconds.
    pub(super) clock: String,
}

impl Moment {
    pub(super) fn new(time: Timestamp, now: Timestamp) -> Self {
        let Ok(moment) = OffsetDateTime::from_unix_timestamp_nanos(i128::from(time.0) * 1_000_000) else {
            let unknown = || "unknown".to_owned();
            return Self { machine: String::new(), full: unknown(), short: unknown(), clock: unknown() };
        };
        let (date, hour, minute, second) = (moment.date(), moment.hour(), moment.minute(), moment.second());
        let ago = Duration::milliseconds(now.0.saturating_sub(time.0));
        let short = match (ago.whole_minutes(), ago.whole_hours(), ago.whole_days()) {
            (..1, ..) => "just now".to_owned(),
            (minutes, 0, _) => format!("{minutes} min ago"),
            (_, hours, 0) => format!("{hours} h ago"),
            (.., 1) => "yesterday".to_owned(),
            (.., days @ ..7) => format!("{days} days ago"),
            _ => date.to_string(),
        };
        let clock = format!("{hour:02}:{minute:02}:{second:02}");
        Self {
            machine: format!("{date}T{clock}Z"),
            full: format!("{date}, {clock} UTC"),
            short,
            clock: if ago.whole_hours() < 24 { clock } else { format!("{date} {hour:02}:{minute:02}") },
        }
    }

    /// As an element.
    pub(super) fn element(&self) -> Markup {
        let mut html = Markup::default();
        html.raw("<time").attribute("datetime", &self.machine).attribute("title", &self.full).raw(">");
        html.text(&self.short).raw("</time>");
        html
    }
}

/// Milliseconds as people say them.
pub(super) fn duration(ms: f64) -> String {
    match ms {
        ms if ms < 10.0 && ms > 0.0 && ms.fract() > 0.05 => format!("{ms:.1} ms"),
        ms if ms < 1000.0 => format!("{ms:.0} ms"),
        ms if ms < 10_000.0 => format!("{:.1} s", ms / 1000.0),
        ms if ms < 120_000.0 => format!("{:.0} s", ms / 1000.0),
        ms if ms < 7_200_000.0 => format!("{:.0} min", ms / 60_000.0),
        ms => format!("{:.1} h", ms / 3_600_000.0),
    }
}

/// A count with its thousands parted.
pub(super) fn count(number: i64) -> String {
    let digits = number.unsigned_abs().to_string();
    let mut text = if number < 0 { "-".to_owned() } else { String::new() };
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A share as a percentage.
pub(super) fn percent(share: f64) -> String {
    match share * 100.0 {
        0.0 => "0 %".to_owned(),
        value if value < 10.0 => format!("{value:.1} %"),
        value => format!("{value:.0} %"),
    }
}

/// The first characters of a long text; what follows is said to be left out.
pub(super) fn cut(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((at, _)) => {
            format!("{}… ({} more bytes)", &text[..at], count(i64::try_from(text.len() - at).unwrap_or(0)))
        }
        None => text.to_owned(),
    }
}

/// A text as a part of a path or query.
pub(super) fn in_url(text: &str) -> String {
    percent_encoding::utf8_percent_encode(text, percent_encoding::NON_ALPHANUMERIC).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_relative_for_a_week() {
        let now = Timestamp(1_800_000_000_000);
        let short = |seconds: i64| Moment::new(Timestamp(now.0 - seconds * 1000), now).short;
        assert_eq!(short(-30), "just now");
        assert_eq!(short(59), "just now");
        assert_eq!(short(60), "1 min ago");
        assert_eq!(short(3 * 3600 + 5), "3 h ago");
        assert_eq!(short(86_400), "yesterday");
        assert_eq!(short(6 * 86_400), "6 days ago");
        assert_eq!(short(7 * 86_400), "2027-01-08");
        let exact = Moment::new(now, now);
        assert_eq!((exact.machine.as_str(), exact.full.as_str()), ("2027-01-15T08:00:00Z", "2027-01-15, 08:00:00 UTC"));
        assert_eq!(Moment::new(Timestamp(i64::MAX), now).short, "unknown");
    }

    #[test]
    fn numbers_read_as_people_say_them() {
        assert_eq!(
            [1.0, 1.25, 38.4, 4821.0, 42_000.0, 600_000.0].map(duration),
            ["1 ms", "1.2 ms", "38 ms", "4.8 s", "42 s", "10 min"]
        );
        assert_eq!([0, 999, 1204, -1_000_000].map(count), ["0", "999", "1,204", "-1,000,000"]);
        assert_eq!([0.0, 0.004, 0.25].map(percent), ["0 %", "0.4 %", "25 %"]);
        assert_eq!(cut("äöü", 2), "äö… (2 more bytes)");
    }

    #[test]
    fn texts_are_escaped() {
        let mut html = Markup::default();
        html.raw("<p").attribute("title", "a\"b").raw(">").text("<script>'&").raw("</p>");
        assert_eq!(html.to_string(), "<p title=\"a&quot;b\">&lt;script&gt;&#39;&amp;</p>");
    }
}
