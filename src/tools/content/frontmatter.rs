//! The front matter of a `SKILL.md`: YAML between two lines of `---`, read by the core schema of YAML 1.2 into JSON.

use saphyr_parser::{Event, Parser, ScalarStyle};
use serde_json::{Map, Value};

/// The most bytes of front matter.
const BYTES: usize = 64 << 10;
/// The deepest nesting.
const DEPTH: usize = 32;

/// Why a text has no front matter that can be served.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum FrontmatterError {
    /// There is none.
    #[error(
        "it must begin with front matter: a line `---`, then YAML with `name` and `description`, then a line `---`"
    )]
    Missing,
    /// Too much of it.
    #[error("its front matter is {0} bytes; at most {BYTES} are allowed")]
    TooLong(usize),
    /// No YAML.
    #[error("its front matter is no YAML: {problem} (line {line})")]
    Syntax {
        /// In the parser's words.
        problem: String,
        /// Where, counted within the document.
        line: usize,
    },
    /// Something that JSON has no form for, or that could grow without bound.
    #[error("its front matter holds {0}, which can't be served")]
    Unsupported(&'static str),
    /// No mapping at its root.
    #[error("its front matter must be a mapping such as `name: …`")]
    NotMapping,
    /// One key for two values.
    #[error("its front matter has the key `{0}` twice")]
    Twice(String),
}

/// The front matter of a document.
///
/// # Errors
/// [`FrontmatterError`].
pub fn read(document: &str) -> Result<Map<String, Value>, FrontmatterError> {
    let text = block(document).ok_or(FrontmatterError::Missing)?;
    if text.len() > BYTES {
        return Err(FrontmatterError::TooLong(text.len()));
    }
    let mut builder = Builder::default();
    for event in Parser::new_from_str(text) {
        let (event, _) = event.map_err(|error| FrontmatterError::Syntax {
            problem: error.info().to_owned(),
            line: error.marker().line() + 1,
        })?;
        builder.take(event)?;
    }
    match builder.root {
        Some(Value::Object(map)) => Ok(map),
        _ => Err(FrontmatterError::NotMapping),
    }
}

/// What stands between the first line, which is `---`, and the next such line.
fn block(document: &str) -> Option<&str> {
    let document = document.strip_prefix('\u{feff}').unwrap_or(document);
    let body = document.strip_prefix("---\n").or_else(|| document.strip_prefix("---\r\n"))?;
    let mut start = 0;
    for line in body.split_inclusive('\n') {
        if line.strip_prefix("---").is_some_and(|rest| rest.trim_matches([' ', '\t', '\r', '\n']).is_empty()) {
            return Some(&body[..start]);
        }
        start += line.len();
    }
    None
}

/// A collection that is not closed yet.
enum Open {
    List(Vec<Value>),
    Map(Map<String, Value>, Option<String>),
}

#[derive(Default)]
struct Builder {
    open: Vec<Open>,
    root: Option<Value>,
}

impl Builder {
    fn take(&mut self, event: Event<'_>) -> Result<(), FrontmatterError> {
        let plain = |anchor: usize, tagged: bool| match (anchor, tagged) {
            (0, false) => Ok(()),
            (0, true) => Err(FrontmatterError::Unsupported("a tag (`!…`)")),
            _ => Err(FrontmatterError::Unsupported("an anchor (`&…`)")),
        };
        match event {
            Event::Nothing | Event::StreamStart | Event::StreamEnd | Event::DocumentEnd => Ok(()),
            Event::DocumentStart(_) if self.root.is_some() => Err(FrontmatterError::Unsupported("a second document")),
            Event::DocumentStart(_) => Ok(()),
            Event::Alias(_) => Err(FrontmatterError::Unsupported("an alias (`*…`)")),
            Event::Scalar(text, style, anchor, tag) => {
                plain(anchor, tag.is_some())?;
                self.scalar(&text, style)
            }
            Event::SequenceStart(anchor, tag) => {
                plain(anchor, tag.is_some())?;
                self.enter(Open::List(Vec::new()))
            }
            Event::MappingStart(anchor, tag) => {
                plain(anchor, tag.is_some())?;
                self.enter(Open::Map(Map::new(), None))
            }
            Event::SequenceEnd | Event::MappingEnd => match self.open.pop() {
                Some(Open::List(items)) => self.put(Value::Array(items)),
                Some(Open::Map(map, _)) => self.put(Value::Object(map)),
                None => Ok(()),
            },
        }
    }

    fn enter(&mut self, collection: Open) -> Result<(), FrontmatterError> {
        if self.open.len() >= DEPTH {
            return Err(FrontmatterError::Unsupported("more than 32 levels of nesting"));
        }
        if matches!(self.open.last(), Some(Open::Map(_, None))) {
            return Err(FrontmatterError::Unsupported("a key that is no text"));
        }
        self.open.push(collection);
        Ok(())
    }

    fn scalar(&mut self, text: &str, style: ScalarStyle) -> Result<(), FrontmatterError> {
        if let Some(Open::Map(map, key @ None)) = self.open.last_mut() {
            if map.contains_key(text) {
                return Err(FrontmatterError::Twice(text.to_owned()));
            }
            *key = Some(text.to_owned());
            return Ok(());
        }
        let value = if style == ScalarStyle::Plain { resolve(text)? } else { Value::from(text) };
        self.put(value)
    }

    fn put(&mut self, value: Value) -> Result<(), FrontmatterError> {
        match self.open.last_mut() {
            None => self.root = Some(value),
            Some(Open::List(items)) => items.push(value),
            Some(Open::Map(map, key)) => {
                let key = key.take().ok_or(FrontmatterError::Unsupported("a key that is no text"))?;
                map.insert(key, value);
            }
        }
        Ok(())
    }
}

/// What a plain scalar means in the core schema.
fn resolve(text: &str) -> Result<Value, FrontmatterError> {
    let value = match text {
        "" | "~" | "null" | "Null" | "NULL" => Some(Value::Null),
        "true" | "True" | "TRUE" => Some(true.into()),
        "false" | "False" | "FALSE" => Some(false.into()),
        _ => number(text)?,
    };
    Ok(value.unwrap_or_else(|| text.into()))
}

fn number(text: &str) -> Result<Option<Value>, FrontmatterError> {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    if matches!(digits, ".inf" | ".Inf" | ".INF") || matches!(text, ".nan" | ".NaN" | ".NAN") {
        return Err(FrontmatterError::Unsupported("an infinity or `.nan`"));
    }
    for (prefix, radix) in [("0o", 8), ("0x", 16)] {
        if let Some(number) = text.strip_prefix(prefix).and_then(|rest| u64::from_str_radix(rest, radix).ok()) {
            return Ok(Some(number.into()));
        }
    }
    let (mantissa, exponent) = digits.split_once(['e', 'E']).map_or((digits, None), |(m, e)| (m, Some(e)));
    let all_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let (whole, fraction) = mantissa.split_once('.').map_or((mantissa, None), |(whole, rest)| (whole, Some(rest)));
    let is_number = all_digits(whole)
        && fraction.is_none_or(all_digits)
        && !(whole.is_empty() && fraction.is_none_or(str::is_empty))
        && exponent.is_none_or(|exponent| {
            let digits = exponent.strip_prefix(['-', '+']).unwrap_or(exponent);
            !digits.is_empty() && all_digits(digits)
        });
    if !is_number {
        return Ok(None);
    }
    let text = text.strip_prefix('+').unwrap_or(text);
    if fraction.is_none()
        && exponent.is_none()
        && let Ok(whole) = text.parse::<i64>()
    {
        return Ok(Some(whole.into()));
    }
    let float: f64 = text.parse().unwrap_or(f64::INFINITY);
    serde_json::Number::from_f64(float)
        .map(|number| Some(Value::Number(number)))
        .ok_or(FrontmatterError::Unsupported("a number out of range"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn yaml(text: &str) -> Result<Value, FrontmatterError> {
        read(&format!("---\n{text}\n---\nBody\n")).map(Value::Object)
    }

    #[test]
    fn the_core_schema_is_read_into_json() {
        let text = "name: a-b\ndescription: >-\n  Folded\n  text: here\nversion: 1.20\ncount: 007\nyes: no\nnothing:\n\
                    day: 2026-01-02\nquoted: '1'\nhex: 0x1F\nexp: 1e3\ndot: .5\nlist: [a, 2, {b: true}]\n\
                    metadata:\n  x: \"é\\n\"\n  - : z";
        let expected = json!({"name": "a-b", "description": "Folded text: here", "version": 1.2, "count": 7, "yes": "no",
            "nothing": null, "day": "2026-01-02", "quoted": "1", "hex": 31, "exp": 1000.0, "dot": 0.5,
            "list": ["a", 2, {"b": true}], "metadata": {"x": "é\n"}});
        assert_eq!(yaml(text.trim_end_matches("\n  - : z")).unwrap(), expected);
        assert!(yaml(text).is_err());
    }

    #[test]
    fn what_cannot_be_served_is_named() {
        let deep = format!("a: {}{}", "[".repeat(40), "]".repeat(40));
        for (text, expected) in [
            ("a: &x 1\nb: *x", "an anchor"),
            ("a: *x", "no YAML"),
            ("a: !!binary aa", "a tag"),
            ("a: .inf", "infinity"),
            ("a: 1e999", "out of range"),
            ("a: 1\na: 2", "twice"),
            ("- a", "must be a mapping"),
            ("just text", "must be a mapping"),
            ("a: [1", "no YAML"),
            ("? [a]\n: b", "no text"),
            (deep.as_str(), "levels of nesting"),
        ] {
            let error = yaml(text).unwrap_err().to_string();
            assert!(error.contains(expected), "{text}: {error}");
        }
        for text in ["", "name: a\n", "---\nname: a\n", "\n---\nname: a\n---\n"] {
            assert_eq!(read(text), Err(FrontmatterError::Missing), "{text:?}");
        }
        assert!(matches!(yaml(&format!("a: {}", "x".repeat(BYTES))), Err(FrontmatterError::TooLong(_))));
    }

    #[test]
    fn the_block_ends_at_the_first_line_of_dashes() {
        assert_eq!(
            read("\u{feff}---\r\nname: a\r\n--- \r\n---\n").unwrap(),
            *json!({"name": "a"}).as_object().unwrap()
        );
        assert_eq!(yaml("name: a ---b").unwrap(), json!({"name": "a ---b"}));
    }
}
