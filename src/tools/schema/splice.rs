//! Puts other values into a JSON text and leaves every other byte as it was written.

use std::fmt;
use std::ops::Range;

use serde::Deserializer as _;
use serde::de::{MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

/// A value that takes the place of another.
#[derive(Clone, Debug, PartialEq)]
pub struct Replacement {
    /// Where, as a JSON pointer; it may lead into an earlier replacement.
    pub pointer: String,
    /// The JSON of the new value.
    pub text: String,
}

/// The text with these replacements made in order; `None` when one of them leads nowhere.
pub fn splice(text: &str, replacements: &[Replacement]) -> Option<String> {
    let mut root = Node::default();
    for replacement in replacements {
        root.insert(&tokens(&replacement.pointer), &replacement.text);
    }
    let mut spliced = String::with_capacity(text.len());
    root.render(text, &mut spliced)?;
    Some(spliced)
}

/// What changes at one place and below it.
#[derive(Default)]
struct Node<'a> {
    text: Option<&'a str>,
    inner: Vec<(String, Node<'a>)>,
}

impl<'a> Node<'a> {
    fn insert(&mut self, path: &[String], text: &'a str) {
        let Some((first, rest)) = path.split_first() else {
            *self = Self { text: Some(text), inner: Vec::new() };
            return;
        };
        let at = self.inner.iter().position(|(token, _)| token == first).unwrap_or_else(|| {
            self.inner.push((first.clone(), Node::default()));
            self.inner.len() - 1
        });
        self.inner[at].1.insert(rest, text);
    }

    fn render(&self, written: &str, out: &mut String) -> Option<()> {
        let text = self.text.unwrap_or(written);
        if self.inner.is_empty() {
            out.push_str(text);
            return Some(());
        }
        let members = members(text)?;
        let mut changes: Vec<(&Range<usize>, &Node<'_>)> = Vec::with_capacity(self.inner.len());
        for (token, node) in &self.inner {
            // A name that stands twice means its last value, for every reader that we know.
            let (_, range) = members.iter().rev().find(|(name, _)| name == token)?;
            changes.push((range, node));
        }
        changes.sort_by_key(|(range, _)| range.start);
        let mut done = 0;
        for (range, node) in changes {
            out.push_str(&text[done..range.start]);
            node.render(&text[range.clone()], out)?;
            done = range.end;
        }
        out.push_str(&text[done..]);
        Some(())
    }
}

fn tokens(pointer: &str) -> Vec<String> {
    pointer.split('/').skip(1).map(|token| token.replace("~1", "/").replace("~0", "~")).collect()
}

/// The members of an object or array, in order: name or index, and where the value stands in the text.
fn members(text: &str) -> Option<Vec<(String, Range<usize>)>> {
    struct Members;

    impl<'de> Visitor<'de> for Members {
        type Value = Vec<(String, &'de RawValue)>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an object or array")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            let mut found = Vec::new();
            while let Some(entry) = map.next_entry()? {
                found.push(entry);
            }
            Ok(found)
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Self::Value, A::Error> {
            let mut found = Vec::new();
            while let Some(value) = items.next_element::<&RawValue>()? {
                found.push((found.len().to_string(), value));
            }
            Ok(found)
        }
    }

    let found = serde_json::Deserializer::from_str(text).deserialize_any(Members).ok()?;
    let place = |value: &RawValue| {
        // The value is borrowed from the text, so the difference of the addresses is its place there.
        let start = value.get().as_ptr() as usize - text.as_ptr() as usize;
        start..start + value.get().len()
    };
    Some(found.into_iter().map(|(name, value)| (name, place(value))).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spliced(text: &str, replacements: &[(&str, &str)]) -> Option<String> {
        let replacements: Vec<Replacement> = replacements
            .iter()
            .map(|(pointer, text)| Replacement { pointer: (*pointer).to_owned(), text: (*text).to_owned() })
            .collect();
        splice(text, &replacements)
    }

    #[test]
    fn every_other_byte_stays() {
        let text = r#"{ "a" : "1", "big":123456789012345678901234567890,"l":[ "x" , {"m~/n":"2"}], "c":1.0e1 }"#;
        let expected = r#"{ "a" : 1, "big":123456789012345678901234567890,"l":[ "x" , {"m~/n":2}], "c":1.0e1 }"#;
        assert_eq!(spliced(text, &[("/l/1/m~0~1n", "2"), ("/a", "1")]).as_deref(), Some(expected));
        assert_eq!(spliced(text, &[]).as_deref(), Some(text));
    }

    #[test]
    fn a_replacement_may_lie_inside_an_earlier_one() {
        let found = spliced(r#"{"a":"[ 1.10, \"2\"]","b":"3"}"#, &[("/a", "[ 1.10, \"2\"]"), ("/a/1", "2")]);
        assert_eq!(found.as_deref(), Some(r#"{"a":[ 1.10, 2],"b":"3"}"#));
    }

    #[test]
    fn of_a_name_that_stands_twice_the_last_counts() {
        assert_eq!(spliced(r#"{"a":"1","a":"2"}"#, &[("/a", "2")]).as_deref(), Some(r#"{"a":"1","a":2}"#));
    }

    #[test]
    fn what_leads_nowhere_is_said() {
        assert_eq!(spliced("{}", &[("/a", "1")]), None);
        assert_eq!(spliced("[1]", &[("/1", "1")]), None);
    }
}
