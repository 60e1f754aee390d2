//! Takes secrets out of what a run says, before anything else of the server sees it.
//!
//! It guards against accidents: a script that wants to tell a secret can always change its form. What keeps a secret is
//! the network grant.

use std::borrow::Cow;

use aho_corasick::{AhoCorasick, AhoCorasickKind, MatchKind};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;
use serde_json::value::RawValue;

/// Shorter values are not masked: they would be found everywhere.
const SHORTEST: usize = 8;
/// What stands in a secret's place.
const MASK: &str = "***";
/// How wide the lines of base64 are, in PEM and in MIME.
const COLUMNS: [usize; 2] = [64, 76];
/// What a URL leaves as it is.
const UNRESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// Finds the secrets of one run, in every form that programs give them: as they are, as base64 (in lines, too), in URLs, in
/// JSON, in HTML, between quotes, as hex; in any case.
#[derive(Debug)]
pub(crate) struct Masker {
    finder: AhoCorasick,
    forms: Vec<Vec<u8>>,
    longest: usize,
}

impl Masker {
    /// A masker for these values; none where there is nothing to mask.
    pub(super) fn new<'a>(values: impl Iterator<Item = &'a str>) -> Option<Self> {
        let mut forms: Vec<Vec<u8>> = values.flat_map(forms).filter(|form| form.len() >= SHORTEST).collect();
        forms.sort();
        forms.dedup();
        let longest = forms.iter().map(Vec::len).max()?;
        let finder = AhoCorasick::builder()
            .match_kind(MatchKind::LeftmostLongest)
            // A DFA of a long value takes seconds to build and much memory.
            .kind(Some(AhoCorasickKind::ContiguousNFA))
            .ascii_case_insensitive(true)
            .build(&forms)
            .expect("a few secrets of limited size make no automaton that is too large");
        Some(Self { finder, forms, longest })
    }

    /// The text without secrets.
    pub(super) fn text<'a>(&self, text: &'a str) -> Cow<'a, str> {
        if !self.finder.is_match(text) {
            return Cow::Borrowed(text);
        }
        let patterns = self.forms.len();
        Cow::Owned(self.finder.replace_all(text, &vec![MASK; patterns]))
    }

    /// The JSON without secrets: in strings, names and numbers. A number that holds one becomes a string.
    pub(super) fn json(&self, bytes: Vec<u8>) -> Vec<u8> {
        if !self.may_hold(&bytes) {
            return bytes;
        }
        // What is no JSON is refused by whoever reads it.
        let Ok(raw) = serde_json::from_slice::<&RawValue>(&bytes) else { return bytes };
        self.values(raw.get()).into_bytes()
    }

    /// Whether there may be one in this JSON: as it is written, or behind its escapes.
    fn may_hold(&self, json: &[u8]) -> bool {
        json.contains(&b'\\') || self.finder.is_match(json)
    }

    /// The JSON with its strings and numbers masked, from left to right: however deep it is, nothing is stacked up, and
    /// what is clean stays as it was written.
    fn values(&self, json: &str) -> String {
        let mut masked = String::with_capacity(json.len());
        let mut rest = json;
        while let Some(first) = rest.bytes().next() {
            let length = match first {
                b'"' => string_length(rest),
                b'-' | b'0'..=b'9' => rest.find([',', ']', '}', ' ', '\t', '\r', '\n']).unwrap_or(rest.len()),
                // The next string or number; between them are names of literals, and signs.
                _ => {
                    rest[1..].find(|c: char| c == '"' || c == '-' || c.is_ascii_digit()).map_or(rest.len(), |at| at + 1)
                }
            };
            let (value, after) = rest.split_at(length);
            self.value(value, &mut masked);
            rest = after;
        }
        masked
    }

    /// One string or number, or what is between two of them.
    fn value(&self, value: &str, out: &mut String) {
        match value.bytes().next() {
            Some(b'"') if self.may_hold(value.as_bytes()) => {
                let string: String = serde_json::from_str(value).unwrap_or_default();
                match self.text(&string) {
                    Cow::Borrowed(_) => out.push_str(value),
                    Cow::Owned(masked) => out.push_str(&Value::from(masked).to_string()),
                }
            }
            Some(b'-' | b'0'..=b'9') if self.finder.is_match(value) => out.push_str(&Value::from(MASK).to_string()),
            _ => out.push_str(value),
        }
    }

    /// Where the end of these bytes may be the beginning of a secret: what is before can be passed on.
    fn safe(&self, bytes: &[u8]) -> usize {
        let start = bytes.len().saturating_sub(self.longest - 1);
        (start..bytes.len())
            .find(|at| {
                let rest = &bytes[*at..];
                self.forms.iter().any(|form| form.len() > rest.len() && form[..rest.len()].eq_ignore_ascii_case(rest))
            })
            .unwrap_or(bytes.len())
    }
}

/// How long the JSON string is that this text begins with, its quotes included.
fn string_length(text: &str) -> usize {
    let mut escaped = false;
    let end = text.bytes().skip(1).position(|byte| {
        let ends = byte == b'"' && !escaped;
        escaped = byte == b'\\' && !escaped;
        ends
    });
    end.map_or(text.len(), |end| end + 2)
}

/// A stream without secrets, also those that come in pieces.
#[derive(Debug)]
pub(super) struct StreamMask {
    masker: std::sync::Arc<Masker>,
    /// What may be the beginning of a secret.
    held: Vec<u8>,
}

impl StreamMask {
    pub(super) fn new(masker: std::sync::Arc<Masker>) -> Self {
        Self { masker, held: Vec::new() }
    }

    /// Takes the next bytes; what can be passed on of all so far.
    pub(super) fn push(&mut self, bytes: &[u8]) -> Vec<u8> {
        self.held.extend_from_slice(bytes);
        let mut out = Vec::with_capacity(self.held.len());
        let mut at = 0;
        // From here on there may be the beginning of a secret, which may be longer than one that is found there.
        let mut safe = self.masker.safe(&self.held);
        for found in self.masker.finder.find_iter(&self.held) {
            if found.start() >= safe {
                break;
            }
            out.extend_from_slice(&self.held[at..found.start()]);
            out.extend_from_slice(MASK.as_bytes());
            at = found.end();
            if at > safe {
                safe = at + self.masker.safe(&self.held[at..]);
            }
        }
        out.extend_from_slice(&self.held[at..safe]);
        self.held.drain(..safe);
        out
    }

    /// What is left at the end.
    pub(super) fn finish(&mut self) -> Vec<u8> {
        let rest = std::mem::take(&mut self.held);
        self.masker.finder.replace_all_bytes(&rest, &vec![MASK; self.masker.forms.len()])
    }
}

/// The forms in which a value may be said.
fn forms(value: &str) -> Vec<Vec<u8>> {
    let mut forms = Vec::new();
    let lines = value.lines().map(str::trim).filter(|line| line.len() >= SHORTEST);
    for text in [value, value.trim()].into_iter().chain(lines) {
        // A value of many lines, most of them short, is masked as a whole.
        if text.len() < SHORTEST {
            continue;
        }
        let in_json = |text: &str| {
            let quoted = Value::from(text).to_string();
            quoted[1..quoted.len() - 1].to_owned()
        };
        let json = in_json(text);
        let ascii: String = json.chars().map(|c| if c.is_ascii() { c.to_string() } else { escaped(c) }).collect();
        let hex: String = text.bytes().map(|byte| format!("{byte:02x}")).collect();
        let percent = utf8_percent_encode(text, UNRESERVED).to_string();
        let form = percent.replace("%20", "+");
        for said in
            [text, &json, &ascii, &json.replace('/', "\\/"), &in_json(&json), &in_json(&ascii), &hex, &percent, &form]
        {
            forms.push(said.as_bytes().to_vec());
        }
        forms.extend(written(text).map(String::into_bytes));
        forms.extend((0..3).flat_map(|before| inside_base64(text.as_bytes(), before)));
    }
    if value.trim().len() >= SHORTEST {
        forms.extend(wrapped_base64(value.trim().as_bytes()));
    }
    forms
}

/// How JSON escapes a character that isn't ASCII.
fn escaped(c: char) -> String {
    c.encode_utf16(&mut [0; 2]).iter().map(|unit| format!("\\u{unit:04x}")).collect()
}

/// As Python and JavaScript write a string between single quotes, and as HTML is written by Python and by others.
fn written(text: &str) -> [String; 3] {
    let mut quoted = text.replace('\\', "\\\\").replace('\'', "\\'");
    for (c, escape) in [('\n', "\\n"), ('\r', "\\r"), ('\t', "\\t")] {
        quoted = quoted.replace(c, escape);
    }
    let html = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;");
    [quoted, html.replace('\'', "&#x27;"), html.replace('\'', "&#39;")]
}

/// A value's base64 in lines: from the beginning of a line on, and, where it is shorter than a line, broken anywhere.
fn wrapped_base64(value: &[u8]) -> Vec<Vec<u8>> {
    let mut forms = Vec::new();
    for ending in ["\n", "\r\n"] {
        let [whole, _] = inside_base64(value, 0);
        for width in COLUMNS.into_iter().filter(|width| whole.len() > *width) {
            forms.push(whole.chunks(width).collect::<Vec<_>>().join(ending.as_bytes()));
        }
        for before in 0..3 {
            let [text, _] = inside_base64(value, before);
            let breaks = if text.len() < COLUMNS[1] { 1..text.len() } else { 0..0 };
            forms.extend(breaks.map(|at| [&text[..at], ending.as_bytes(), &text[at..]].concat()));
        }
    }
    forms
}

/// What of a value's base64 does not depend on its neighbours, where so many bytes (modulo 3) come before it.
fn inside_base64(value: &[u8], before: usize) -> [Vec<u8>; 2] {
    let padded = [&[0; 3][..before], value].concat();
    // The first characters hold bits of what comes before, the last one those of what comes after.
    let start = (before * 8).div_ceil(6);
    let end = padded.len() * 8 / 6;
    [STANDARD_NO_PAD.encode(&padded), URL_SAFE_NO_PAD.encode(&padded)]
        .map(|text| text.as_bytes()[start.min(end)..end].to_vec())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use base64::engine::general_purpose::STANDARD;

    use super::*;

    const VALUE: &str = "s3cr€t/value+\"of\" them & all";

    fn masker() -> Masker {
        Masker::new([VALUE].into_iter()).unwrap()
    }

    #[test]
    fn every_form_is_found() {
        let masker = masker();
        let hex: String = VALUE.bytes().map(|byte| format!("{byte:02X}")).collect();
        let mut said = vec![VALUE.to_owned(), VALUE.to_uppercase(), hex];
        said.push(Value::from(VALUE).to_string());
        said.push(r#""s3cr\u20act\/value+\"of\" them & all""#.replace("\\/", "/"));
        said.push(utf8_percent_encode(VALUE, UNRESERVED).to_string());
        said.push(utf8_percent_encode(VALUE, NON_ALPHANUMERIC).to_string().replace("%2E", "."));
        said.push(r#"s3cr€t/value+\"of\" them &amp; all"#.replace("\\\"", "&quot;"));
        for before in ["", "a", "ab", "abc", "user:"] {
            said.push(STANDARD.encode(format!("{before}{VALUE}:after")));
            said.push(URL_SAFE_NO_PAD.encode(format!("{before}{VALUE}")));
        }
        for text in said {
            let masked = masker.text(&text);
            assert!(masked.contains(MASK) && masked.len() <= 20, "{text} became {masked}");
        }
        assert_eq!(masker.text("nothing here"), "nothing here");
    }

    #[test]
    fn base64_in_lines_and_quoted_texts_are_found() {
        let wrap = |text: &str, width: usize| {
            let lines: Vec<String> = text.as_bytes().chunks(width).map(|l| String::from_utf8_lossy(l).into()).collect();
            lines.join("\n")
        };
        let long = "0123456789abcdefghijABCDEFGHIJ".repeat(4);
        for (value, before) in [(VALUE, ""), (VALUE, "a"), (VALUE, "user-name:"), (&*long, "")] {
            for width in [64, 76] {
                let said = wrap(
                    &STANDARD.encode(format!("{}{before}{value}\n", "x".repeat(if long == value { 0 } else { 45 }))),
                    width,
                );
                let masked = Masker::new([value].into_iter()).unwrap().text(&said).into_owned();
                let left = masked.replace(['\n', '='], "");
                assert!(masked.contains(MASK) && left.len() <= 84, "{said} became {masked}");
            }
        }
        let value = "it's \"quoted\"\\";
        let masker = Masker::new([value].into_iter()).unwrap();
        assert_eq!(masker.text(r#"KeyError: 'it\'s "quoted"\\'"#), "KeyError: '***'");
        assert_eq!(masker.text("it&#x27;s &quot;quoted&quot;\\"), "***");
    }

    #[test]
    fn json_of_any_depth_is_masked() {
        let deep = |inside: &str| format!("{}{inside}{}", "[{\"a\":".repeat(100_000), "}]".repeat(100_000));
        let masked = masker().json(deep(&Value::from(VALUE).to_string()).into_bytes());
        assert_eq!(String::from_utf8(masked).unwrap(), deep("\"***\""));
    }

    #[test]
    fn a_secret_that_begins_like_another_is_masked_whole_across_chunks() {
        let values = ["prefixAA", "prefixAA-and-the-rest-1234", "AA-and-t"];
        let masker = Arc::new(Masker::new(values.into_iter()).unwrap());
        for (text, expected) in [
            ("a prefixAA-and-the-rest-1234 b", "a *** b"),
            ("a prefixAA b", "a *** b"),
            ("a prefixAA", "a ***"),
            ("a prefixAA-and-x", "a ***-and-x"),
        ] {
            for size in 1..text.len() {
                let mut mask = StreamMask::new(Arc::clone(&masker));
                let mut out: Vec<u8> = text.as_bytes().chunks(size).flat_map(|chunk| mask.push(chunk)).collect();
                out.extend(mask.finish());
                assert_eq!(String::from_utf8(out).unwrap(), expected, "{size}");
            }
        }
    }

    #[test]
    fn values_that_are_short_or_none_need_no_masker() {
        assert!(Masker::new(["1234567", "", " \n"].into_iter()).is_none());
        assert!(Masker::new(std::iter::empty()).is_none());
    }

    #[test]
    fn chunks_hide_nothing_and_hold_nothing_back_for_good() {
        let text = format!("before {VALUE}{VALUE} after s3cr€t/val");
        for size in 1..text.len() {
            let mut mask = StreamMask::new(Arc::new(masker()));
            let mut out: Vec<u8> = text.as_bytes().chunks(size).flat_map(|chunk| mask.push(chunk)).collect();
            out.extend(mask.finish());
            assert_eq!(String::from_utf8(out).unwrap(), "before ****** after s3cr€t/val", "{size}");
        }
    }

    #[test]
    fn json_stays_json_and_numbers_keep_their_digits() {
        let masker = Masker::new([VALUE, "12345678"].into_iter()).unwrap();
        let value = Value::from(VALUE);
        let text = format!(r#"{{"a":[{value},1.10,9912345678.5],{value}:"x","b":{{"n":1.000,"n":null}}}}"#);
        let masked = String::from_utf8(masker.json(text.into_bytes())).unwrap();
        assert_eq!(masked, r#"{"a":["***",1.10,"***"],"***":"x","b":{"n":1.000,"n":null}}"#);
        let clean = r#"{"a":1.10}"#.to_owned();
        assert_eq!(masker.json(clean.clone().into_bytes()), clean.into_bytes());
        let broken = b"{\"12345678".to_vec();
        assert_eq!(masker.json(broken.clone()), broken);
    }

    #[test]
    fn a_long_value_that_repeats_itself_is_no_trap() {
        let value = "A1b2".repeat(4096);
        let masker = Arc::new(Masker::new([value.as_str()].into_iter()).unwrap());
        assert_eq!(masker.text(&format!("a {value} b")), "a *** b");
        let mut mask = StreamMask::new(masker);
        let line = "lorem ipsum dolor sit amet ".repeat(2000);
        let mut out = [mask.push(line.as_bytes()), mask.push(value.as_bytes())].concat();
        out.extend(mask.finish());
        assert_eq!(String::from_utf8(out).unwrap(), format!("{line}***"));
    }

    #[test]
    fn every_long_line_of_a_value_is_masked_by_itself() {
        let masker = Masker::new(["-----BEGIN-----\nMIIabcdefgh\nxy\n"].into_iter()).unwrap();
        assert_eq!(masker.text("got MIIabcdefgh and xy"), "got *** and xy");
    }
}
