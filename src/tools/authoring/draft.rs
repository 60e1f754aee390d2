//! What an author gave: the fields of `omniforge_create_tool` and `omniforge_update_tool`, cleaned and checked one by one.

use std::collections::HashSet;

use serde::Deserialize;
use serde_json::{Map, Value};

use super::{grants, listing};
use crate::model::{Ceilings, Grants, Language, Mode, is_hidden};

/// The most bytes of code.
const CODE_BYTES: usize = 1 << 20;
/// The most bytes of a description.
const DESCRIPTION_BYTES: usize = 4 << 10;
/// The most dependencies.
const DEPENDENCIES: usize = 64;

/// The fields of a save. A field that was left out is `None`; one that was given as `null` is `Some(None)` where an
/// update can take it back.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Draft {
    /// The source text.
    pub code: Option<String>,
    /// What it is written in.
    pub language: Option<String>,
    /// A name for people.
    #[serde(deserialize_with = "given")]
    pub title: Option<Option<String>>,
    /// What it does.
    #[serde(deserialize_with = "given")]
    pub description: Option<Option<String>>,
    /// Requirements.
    pub dependencies: Option<Vec<String>>,
    /// JSON Schema of the arguments.
    #[serde(deserialize_with = "given")]
    pub input_schema: Option<Option<Value>>,
    /// JSON Schema of the result.
    #[serde(deserialize_with = "given")]
    pub output_schema: Option<Option<Value>>,
    /// Hints.
    pub annotations: Option<Map<String, Value>>,
    /// Icons.
    pub icons: Option<Vec<Value>>,
    /// Words to search by.
    pub tags: Option<Vec<String>>,
    /// Wall seconds.
    #[serde(deserialize_with = "given")]
    pub timeout_seconds: Option<Option<f64>>,
    /// Mebibytes.
    #[serde(deserialize_with = "given")]
    pub memory_mb: Option<Option<u64>>,
    /// Hosts; a text alone is a list of one.
    #[serde(deserialize_with = "one_or_many")]
    pub network: Option<Vec<String>>,
    /// Names of secrets.
    pub secrets: Option<Vec<String>>,
    /// Names of tools.
    pub calls: Option<Vec<String>>,
    /// Whether it keeps state that all callers share.
    pub shared_state: Option<bool>,
    /// How calls answer.
    pub mode: Option<String>,
    /// Needs the tasks extension.
    pub task_required: Option<bool>,
    /// Started again after an interruption.
    pub retry: Option<bool>,
    /// Keeps one interpreter.
    pub resident: Option<Value>,
    /// `_meta` of the listed tool.
    #[serde(deserialize_with = "given")]
    pub meta: Option<Option<Map<String, Value>>>,
    /// Arguments are never coerced.
    pub strict_arguments: Option<bool>,
    /// Whether it is listed.
    pub enabled: Option<bool>,
}

fn given<'de, D, T>(deserializer: D) -> Result<Option<Option<T>>, D::Error>
where
    D: serde::Deserializer<'de>,
    T: Deserialize<'de>,
{
    Option::<T>::deserialize(deserializer).map(Some)
}

fn one_or_many<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Vec<String>>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Given {
        One(String),
        Many(Vec<String>),
    }
    Ok(match Option::<Given>::deserialize(deserializer)? {
        None => None,
        Some(Given::One(entry)) => Some(vec![entry]),
        Some(Given::Many(entries)) => Some(entries),
    })
}

/// A field that can't be used: its name, what is wrong and what would be right.
#[derive(Debug, thiserror::Error, PartialEq)]
#[error("`{field}`: {problem}")]
pub struct FieldError {
    /// The field.
    pub field: &'static str,
    /// What is wrong, and what would be right.
    pub problem: String,
}

pub(super) fn wrong<T>(field: &'static str, problem: impl Into<String>) -> Result<T, FieldError> {
    Err(FieldError { field, problem: problem.into() })
}

impl Draft {
    /// Cleans texts and checks every field by itself.
    ///
    /// # Errors
    /// The first [`FieldError`].
    pub fn checked(mut self, ceilings: &Ceilings) -> Result<Self, FieldError> {
        self.check_code()?;
        self.clean_texts()?;
        self.check_limits(ceilings)?;
        self.check_lists()?;
        self.check_later()?;
        if let Some(annotations) = &mut self.annotations {
            listing::check_annotations(annotations)?;
        }
        if let Some(icons) = &self.icons {
            listing::check_icons(icons)?;
        }
        if let Some(Some(meta)) = &self.meta {
            listing::check_meta(meta)?;
        }
        self.network = self.network.as_deref().map(grants::network).transpose()?;
        self.secrets = self.secrets.take().map(grants::secrets).transpose()?;
        self.calls = self.calls.take().map(grants::calls).transpose()?;
        Ok(self)
    }

    fn check_code(&self) -> Result<(), FieldError> {
        let Some(code) = &self.code else { return Ok(()) };
        if code.trim().is_empty() {
            return wrong("code", "it is empty");
        }
        if code.len() > CODE_BYTES {
            return wrong("code", format!("it is {} bytes; at most {CODE_BYTES} are allowed", code.len()));
        }
        match code.lines().position(|line| line.contains('\0')) {
            Some(line) => wrong("code", format!("line {} holds a NUL character", line + 1)),
            None => Ok(()),
        }
    }

    fn clean_texts(&mut self) -> Result<(), FieldError> {
        for text in [&mut self.title, &mut self.description].into_iter().flatten().flatten() {
            *text = clean(text);
        }
        if let Some(Some(title)) = &self.title
            && title.chars().count() > 200
        {
            return wrong("title", "it is longer than 200 characters");
        }
        if let Some(Some(description)) = &self.description
            && description.len() > DESCRIPTION_BYTES
        {
            return wrong(
                "description",
                format!("it is {} bytes; at most {DESCRIPTION_BYTES} are allowed", description.len()),
            );
        }
        Ok(())
    }

    fn check_limits(&self, ceilings: &Ceilings) -> Result<(), FieldError> {
        let most = ceilings.wall.as_secs_f64();
        if let Some(Some(seconds)) = self.timeout_seconds
            && !(seconds > 0.0 && seconds <= most)
        {
            return wrong("timeout_seconds", format!("{seconds} is not between 0 (excluded) and {most}"));
        }
        let most = ceilings.memory_bytes >> 20;
        if let Some(Some(megabytes)) = self.memory_mb
            && !(16..=most).contains(&megabytes)
        {
            return wrong("memory_mb", format!("{megabytes} is not between 16 and {most}"));
        }
        Ok(())
    }

    fn check_lists(&mut self) -> Result<(), FieldError> {
        if let Some(list) = &self.dependencies
            && list.len() > DEPENDENCIES
        {
            return wrong("dependencies", format!("{} are given; at most {DEPENDENCIES} are allowed", list.len()));
        }
        if let Some(tags) = &mut self.tags {
            if tags.len() > 32 {
                return wrong("tags", "more than 32 are given");
            }
            if let Some(bad) = tags.iter().find(|tag| tag.is_empty() || tag.chars().count() > 64 || **tag != clean(tag))
            {
                return wrong("tags", format!("`{bad}` is not 1 to 64 visible characters"));
            }
            keep_first(tags);
        }
        Ok(())
    }

    /// What the catalogue knows of but no run does yet: refused, so that nothing is saved that has no effect.
    fn check_later(&self) -> Result<(), FieldError> {
        if let Some(other) = self.mode.as_deref().filter(|mode| Mode::parse(mode).is_none()) {
            return wrong("mode", format!("`{other}` is no mode; use `auto`, `sync` or `async`"));
        }
        match &self.resident {
            None | Some(Value::Null | Value::Bool(false)) => Ok(()),
            Some(_) => wrong("resident", "resident tools are not available in this release; leave it out"),
        }
    }

    /// The language, where one is given.
    ///
    /// # Errors
    /// [`FieldError`] when it is none we know.
    pub fn language(&self) -> Result<Option<Language>, FieldError> {
        let Some(name) = self.language.as_deref() else { return Ok(None) };
        match Language::parse(name) {
            Some(language) => Ok(Some(language)),
            None => wrong("language", format!("`{name}` is unknown; use python, javascript, typescript or bash")),
        }
    }

    /// The mode, where one is given (already checked).
    pub fn mode(&self) -> Option<Mode> {
        self.mode.as_deref().and_then(Mode::parse)
    }

    /// The grants with this draft's changes.
    pub fn grants(&self, before: Grants) -> Grants {
        Grants {
            network: self.network.clone().unwrap_or(before.network),
            secrets: self.secrets.clone().unwrap_or(before.secrets),
            calls: self.calls.clone().unwrap_or(before.calls),
            shared_state: self.shared_state.unwrap_or(before.shared_state),
        }
    }
}

/// Drops what stands in the list already.
pub(super) fn keep_first(list: &mut Vec<String>) {
    let mut seen = HashSet::new();
    list.retain(|item| seen.insert(item.clone()));
}

/// Removes what can hide or reorder text.
pub fn clean(text: &str) -> String {
    text.chars().filter(|c| !is_hidden(*c)).collect::<String>().trim().to_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn problem(value: Value) -> String {
        let draft: Draft = serde_json::from_value(value).unwrap();
        draft.checked(&Ceilings::default()).unwrap_err().to_string()
    }

    #[test]
    fn a_wrong_field_is_named_with_what_would_be_right() {
        assert!(problem(json!({"code": "  "})).contains("`code`: it is empty"));
        assert!(problem(json!({"code": "a\nb\0"})).contains("line 2"));
        assert!(problem(json!({"code": "x".repeat(CODE_BYTES + 1)})).contains("at most"));
        assert!(problem(json!({"description": "d".repeat(5000)})).contains("`description`"));
        assert!(problem(json!({"timeout_seconds": 0})).contains("between 0"));
        assert!(problem(json!({"memory_mb": 1})).contains("between 16"));
        assert!(problem(json!({"mode": "later"})).contains("`later` is no mode; use `auto`, `sync` or `async`"));
        assert!(problem(json!({"annotations": {"readOnly": true}})).contains("readOnlyHint"));
        assert!(problem(json!({"icons": [{"src": "javascript:x"}]})).contains("/0/src"));
        assert!(problem(json!({"meta": {"io.modelcontextprotocol/x": 1}})).contains("reserved"));
        assert!(problem(json!({"network": ["a b"]})).contains("`network`: `a b` is no host"));
        assert!(problem(json!({"secrets": ["a b"]})).contains("`secrets`: `a b`"));
        assert!(problem(json!({"calls": ["omniforge_x"]})).contains("`calls`: "));
        assert!(problem(json!({"tags": ["a\u{200b}"]})).contains("`tags`"));
    }

    #[test]
    fn lists_are_normalised_and_hold_nothing_twice() {
        let draft: Draft = serde_json::from_value(
            json!({"network": "FULL.example", "tags": ["a", "b", "a"], "secrets": ["A", "A"], "calls": ["t", "t"]}),
        )
        .unwrap();
        let draft = draft.checked(&Ceilings::default()).unwrap();
        let one = |text: &str| Some(vec![text.to_owned()]);
        assert_eq!((draft.network, draft.secrets, draft.calls), (one("full.example"), one("A"), one("t")));
        assert_eq!(draft.tags.unwrap(), ["a", "b"]);
    }

    #[test]
    fn texts_lose_what_hides_or_reorders() {
        assert_eq!(clean(" a\u{202E}b\u{200B}c\u{7}\u{E0041}\nd\u{FEFF} "), "abc\nd");
    }

    #[test]
    fn null_is_told_from_left_out() {
        let draft: Draft = serde_json::from_value(json!({"output_schema": null})).unwrap();
        assert_eq!(draft.output_schema, Some(None));
        assert_eq!(draft.input_schema, None);
    }
}
