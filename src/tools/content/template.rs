//! URIs and URI templates (RFC 6570) the way back: which values make a template this URI.
//!
//! Known are `{a}`, `{a,b}`, `{+a}`, `{#a}`, `{.a}`, `{/a}`, `{/a*}`, `{?a,b}` and `{&a,b}`. Values are percent-decoded
//! after the whole URI has matched, so that an encoded slash is part of a value.

use percent_encoding::percent_decode_str;
use regex::Regex;
use serde_json::{Map, Value};

/// The most bytes of a URI or template.
const LENGTH: usize = 2_048;
/// The most variables of a template.
const VARIABLES: usize = 32;

/// A template that can be matched.
#[derive(Clone, Debug)]
pub struct UriTemplate {
    regex: Regex,
    /// What each of the regex's groups stands for.
    groups: Vec<Group>,
    literal: usize,
}

#[derive(Clone, Debug)]
enum Group {
    /// One value.
    One(String),
    /// Values behind slashes.
    Segments(String),
    /// A query of these names.
    Query(Vec<String>),
}

/// Why a text is no URI or template that can be served.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum UriError {
    /// Not so long.
    #[error("it has {0} bytes; at most {LENGTH} are allowed")]
    TooLong(usize),
    /// No scheme at its beginning.
    #[error("it must begin with a scheme, such as `notes://`")]
    NoScheme,
    /// Nothing behind the scheme.
    #[error("there is nothing behind its scheme")]
    Empty,
    /// A scheme whose URIs are made here.
    #[error("the scheme `{0}` is taken; choose another")]
    Reserved(String),
    /// A character that must be encoded.
    #[error("it holds `{found}` at byte {place}; such a character must be percent-encoded")]
    BadCharacter {
        /// The character.
        found: char,
        /// Its place, counted from 1.
        place: usize,
    },
    /// Half an expression.
    #[error("`{{` and `}}` do not pair")]
    Unpaired,
    /// An expression that isn't served.
    #[error(
        "`{{{0}}}` can't be matched: use {{a}}, {{a,b}}, {{+a}}, {{#a}}, {{.a}}, {{/a}}, {{/a*}}, {{?a,b}} or {{&a,b}}, \
             each name of letters, digits and `_`"
    )]
    Expression(String),
    /// Nobody could tell where one value ends and the next begins.
    #[error("`{{{0}}}` follows another expression directly; put a character between them")]
    Adjacent(String),
    /// One name for two values.
    #[error("the variable `{0}` is there twice")]
    Twice(String),
    /// Too many.
    #[error("it has more than {VARIABLES} variables")]
    TooMany,
}

/// Checks the URI of a saved resource.
///
/// # Errors
/// [`UriError`].
pub fn check_uri(uri: &str) -> Result<(), UriError> {
    if uri.len() > LENGTH {
        return Err(UriError::TooLong(uri.len()));
    }
    let (scheme, rest) = uri.split_once(':').ok_or(UriError::NoScheme)?;
    let mut letters = scheme.chars();
    let is_scheme = letters.next().is_some_and(|first| first.is_ascii_alphabetic())
        && letters.all(|letter| letter.is_ascii_alphanumeric() || matches!(letter, '+' | '-' | '.'));
    if !is_scheme {
        return Err(UriError::NoScheme);
    }
    if ["omniforge", "skill"].contains(&scheme.to_ascii_lowercase().as_str()) {
        return Err(UriError::Reserved(scheme.to_owned()));
    }
    if rest.trim_matches('/').is_empty() {
        return Err(UriError::Empty);
    }
    check_literal(uri, 0)
}

fn check_literal(text: &str, offset: usize) -> Result<(), UriError> {
    for (index, found) in text.char_indices() {
        let encoded =
            || text.as_bytes().get(index + 1..index + 3).is_some_and(|two| two.iter().all(u8::is_ascii_hexdigit));
        let right = match found {
            '%' => encoded(),
            '"' | '<' | '>' | '\\' | '^' | '`' | '{' | '|' | '}' => false,
            other => other.is_ascii_graphic(),
        };
        if !right {
            return Err(UriError::BadCharacter { found, place: offset + index + 1 });
        }
    }
    Ok(())
}

impl UriTemplate {
    /// Reads a template.
    ///
    /// # Errors
    /// [`UriError`].
    pub fn parse(text: &str) -> Result<Self, UriError> {
        let first = text.find(['{', '}']).unwrap_or(text.len());
        // What stands before the first expression names scheme and place; `x` stands for what follows.
        check_uri(&format!("{}x", &text[..first]))?;
        if text.len() > LENGTH {
            return Err(UriError::TooLong(text.len()));
        }
        let mut template = Draft { pattern: String::from(r"\A"), ..Draft::default() };
        let (mut rest, mut after_expression) = (text, false);
        while !rest.is_empty() {
            let literal = rest.find(['{', '}']).unwrap_or(rest.len());
            check_literal(&rest[..literal], text.len() - rest.len())?;
            template.pattern.push_str(&regex::escape(&rest[..literal]));
            template.literal += literal;
            after_expression = after_expression && literal == 0;
            let Some(open) = rest[literal..].strip_prefix('{') else {
                if literal < rest.len() {
                    return Err(UriError::Unpaired);
                }
                break;
            };
            let end = open.find('}').ok_or(UriError::Unpaired)?;
            template.expression(&open[..end], after_expression)?;
            after_expression = true;
            rest = &open[end + 1..];
        }
        template.pattern.push_str(r"\z");
        let regex = Regex::new(&template.pattern).map_err(|_| UriError::TooMany)?;
        Ok(Self { regex, groups: template.groups, literal: template.literal })
    }

    /// How many bytes of it are no expression: of two that match, the one with more says more.
    pub fn literal_length(&self) -> usize {
        self.literal
    }

    /// The names of its variables, in order.
    pub fn variables(&self) -> Vec<&str> {
        let names = self.groups.iter().flat_map(|group| match group {
            Group::One(name) | Group::Segments(name) => std::slice::from_ref(name),
            Group::Query(names) => names.as_slice(),
        });
        names.map(String::as_str).collect()
    }

    /// The values that make it this URI; `None` when none do. A variable that the URI leaves out is left out.
    pub fn matches(&self, uri: &str) -> Option<Map<String, Value>> {
        let found = self.regex.captures(uri)?;
        let mut values = Map::new();
        for (group, text) in self.groups.iter().zip(found.iter().skip(1)) {
            let Some(text) = text.map(|text| text.as_str()) else { continue };
            match group {
                Group::One(name) => {
                    values.insert(name.clone(), decode(text)?);
                }
                Group::Segments(name) => {
                    let segments: Option<Vec<Value>> = text.split('/').skip(1).map(decode).collect();
                    values.insert(name.clone(), segments?.into());
                }
                Group::Query(names) => query(&text[1..], names, &mut values)?,
            }
        }
        Some(values)
    }
}

#[derive(Default)]
struct Draft {
    pattern: String,
    groups: Vec<Group>,
    literal: usize,
}

impl Draft {
    fn expression(&mut self, inner: &str, adjacent: bool) -> Result<(), UriError> {
        let bad = || UriError::Expression(inner.to_owned());
        let operator = inner.chars().next().filter(|c| "+#./?&".contains(*c));
        if adjacent && matches!(operator, None | Some('+')) {
            return Err(UriError::Adjacent(inner.to_owned()));
        }
        let names: Vec<&str> = inner[usize::from(operator.is_some())..].split(',').collect();
        let exploded = operator == Some('/') && names.len() == 1 && names[0].ends_with('*');
        for name in &names {
            let name = if exploded { name.trim_end_matches('*') } else { name };
            let letters = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
            if !letters || name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) {
                return Err(bad());
            }
            self.free(name)?;
        }
        let names = || names.iter().map(|name| (*name).to_owned());
        match operator {
            Some('+' | '#') if names().len() > 1 => return Err(bad()),
            Some('+') => self.add(r"(.+)", names().map(Group::One)),
            Some('#') => self.add(r"(?:#(.+))?", names().map(Group::One)),
            Some('.') => self.add(r"(?:\.([^/?#.]+))?", names().map(Group::One)),
            Some('/') if exploded => {
                let name = inner.trim_matches(['/', '*']).to_owned();
                self.add(r"((?:/[^/?#]+)+)?", std::iter::once(Group::Segments(name)));
            }
            Some('/') => self.add(r"(?:/([^/?#]+))?", names().map(Group::One)),
            Some('?') => self.add(r"(\?[^#]*)?", std::iter::once(Group::Query(names().collect()))),
            Some('&') => self.add(r"(&[^#]*)?", std::iter::once(Group::Query(names().collect()))),
            _ if names().len() == 1 => self.add(r"([^/?#]+?)", names().map(Group::One)),
            _ => {
                let pattern = vec![r"([^/?#,]+)"; names().len()].join(",");
                self.pattern.push_str(&pattern);
                self.groups.extend(names().map(Group::One));
            }
        }
        Ok(())
    }

    fn add(&mut self, pattern: &str, groups: impl Iterator<Item = Group>) {
        for group in groups {
            self.pattern.push_str(pattern);
            self.groups.push(group);
        }
    }

    fn free(&self, name: &str) -> Result<(), UriError> {
        let known: Vec<&String> = self
            .groups
            .iter()
            .flat_map(|group| match group {
                Group::One(name) | Group::Segments(name) => std::slice::from_ref(name),
                Group::Query(names) => names.as_slice(),
            })
            .collect();
        if known.len() >= VARIABLES {
            return Err(UriError::TooMany);
        }
        if known.into_iter().any(|known| known == name) { Err(UriError::Twice(name.to_owned())) } else { Ok(()) }
    }
}

fn decode(text: &str) -> Option<Value> {
    percent_decode_str(text).decode_utf8().ok().map(|text| Value::from(text.into_owned()))
}

/// Takes the pairs of a query apart; every name must be one of these, each at most once.
fn query(text: &str, names: &[String], values: &mut Map<String, Value>) -> Option<()> {
    for pair in text.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let name = names.iter().find(|known| *known == name)?;
        if values.insert(name.clone(), decode(value)?).is_some() {
            return None;
        }
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn matched(template: &str, uri: &str) -> Option<Value> {
        UriTemplate::parse(template).unwrap().matches(uri).map(Value::Object)
    }

    #[test]
    fn values_are_decoded_after_the_whole_uri_matched() {
        for (template, uri, expected) in [
            ("test://template/{id}/data", "test://template/123/data", Some(json!({"id": "123"}))),
            ("test://template/{id}/data", "test://template/a%2Fb%20c/data", Some(json!({"id": "a/b c"}))),
            ("test://template/{id}/data", "test://template/a/b/data", None),
            ("test://template/{id}/data", "test://template/123/data/more", None),
            ("test://template/{id}/data", "xtest://template/123/data", None),
            ("test://template/{id}/data", "test://template//data", None),
            ("test://template/{id}", "test://template/%ff", None),
            ("a://x/{p},{q}", "a://x/1,2", Some(json!({"p": "1", "q": "2"}))),
            ("a://x/{p,q}", "a://x/1,2", Some(json!({"p": "1", "q": "2"}))),
            ("file:///{+path}", "file:///a/b%20c?x", Some(json!({"path": "a/b c?x"}))),
            ("a://x{#at}", "a://x#top", Some(json!({"at": "top"}))),
            ("a://x{#at}", "a://x", Some(json!({}))),
            ("a://x/{name}{.form}", "a://x/n.json", Some(json!({"name": "n", "form": "json"}))),
            ("a://x{/p,q}", "a://x/1", Some(json!({"p": "1"}))),
            ("a://x{/p*}", "a://x/1/2%2F3", Some(json!({"p": ["1", "2/3"]}))),
            ("a://x{?p,q}", "a://x?q=2&p=a%26b", Some(json!({"q": "2", "p": "a&b"}))),
            ("a://x{?p,q}", "a://x", Some(json!({}))),
            ("a://x{?p,q}", "a://x?r=1", None),
            ("a://x{?p,q}", "a://x?p=1&p=2", None),
            ("a://x?f=1{&p}", "a://x?f=1&p=2", Some(json!({"p": "2"}))),
            ("a://x/.*{p}", "a://x/yz1", None),
            ("a://x/{p}", "a://x/line\nbreak", Some(json!({"p": "line\nbreak"}))),
        ] {
            assert_eq!(matched(template, uri), expected, "{template} {uri}");
        }
    }

    #[test]
    fn a_bad_template_says_what_is_wrong() {
        let error = |text: &str| UriTemplate::parse(text).err().unwrap().to_string();
        for (text, expected) in [
            ("{a}", "scheme"),
            ("a://x/{a", "do not pair"),
            ("a://x/a}", "do not pair"),
            ("a://x/{}", "can't be matched"),
            ("a://x/{;a}", "can't be matched"),
            ("a://x/{a:3}", "can't be matched"),
            ("a://x/{a*}", "can't be matched"),
            ("a://x/{+a,b}", "can't be matched"),
            ("a://x/{a-b}", "can't be matched"),
            ("a://x/{a}{b}", "directly"),
            ("a://x/{a}/{a}", "twice"),
            ("a://x/{a} b", "at byte 10"),
            ("omniforge://runs/{a}", "taken"),
        ] {
            assert!(error(text).contains(expected), "{text}: {}", error(text));
        }
        let many: Vec<String> = (0..33).map(|n| format!("/{{v{n}}}")).collect();
        assert!(error(&format!("a://x{}", many.concat())).contains("more than 32"));
    }

    #[test]
    fn a_bad_uri_says_what_is_wrong() {
        assert_eq!(check_uri("test://static-text"), Ok(()));
        assert_eq!(check_uri("urn:isbn:1"), Ok(()));
        assert_eq!(check_uri("test://a%20b"), Ok(()));
        assert_eq!(check_uri("static-text"), Err(UriError::NoScheme));
        assert_eq!(check_uri("://x"), Err(UriError::NoScheme));
        assert_eq!(check_uri("test://"), Err(UriError::Empty));
        assert_eq!(check_uri("SKILL://a/SKILL.md"), Err(UriError::Reserved("SKILL".into())));
        assert_eq!(check_uri("test://a b"), Err(UriError::BadCharacter { found: ' ', place: 9 }));
        assert_eq!(check_uri("test://a%2"), Err(UriError::BadCharacter { found: '%', place: 9 }));
        assert!(matches!(check_uri("test://é"), Err(UriError::BadCharacter { .. })));
    }
}
