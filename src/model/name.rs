//! Tool names: which are legal, and which fold together for a client that lower-cases them.

use std::fmt;

/// A tool's public name: a letter, then up to 63 of `A-Z`, `a-z`, `0-9`, `_`, `-`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize)]
#[serde(transparent)]
pub struct ToolName(String);

/// Why a text is no tool name.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum NameError {
    /// The text is empty.
    #[error("the name is empty; a tool name is a letter followed by up to 63 letters, digits, `_` or `-`")]
    Empty,
    /// The text has more than 64 characters.
    #[error("the name has {length} characters; at most 64 are allowed")]
    TooLong {
        /// How many characters the text has.
        length: usize,
    },
    /// The text starts with something else than a letter.
    #[error("the name starts with `{found}`; it must start with a letter (A-Z or a-z)")]
    BadStart {
        /// The first character.
        found: char,
    },
    /// The text holds a character that no name may hold.
    #[error("the name has `{found}` at character {position}; only letters (A-Z, a-z), digits, `_` and `-` are allowed")]
    BadCharacter {
        /// The character.
        found: char,
        /// Its place, counted from 1.
        position: usize,
    },
    /// The name begins like a built-in tool's.
    #[error("the name `{name}` is reserved: names that begin with `omniforge_`, and `get_job_result`, are built in")]
    Reserved {
        /// The name.
        name: String,
    },
}

/// Checks that a text is a letter, then up to 63 of `A-Z`, `a-z`, `0-9`, `_`, `-`.
///
/// # Errors
/// [`NameError`] says which character is wrong.
pub(super) fn check_letters(text: &str) -> Result<(), NameError> {
    let first = text.chars().next().ok_or(NameError::Empty)?;
    let length = text.chars().count();
    if length > 64 {
        return Err(NameError::TooLong { length });
    }
    if !first.is_ascii_alphabetic() {
        return Err(NameError::BadStart { found: first });
    }
    let bad = text.chars().enumerate().find(|(_, c)| !(c.is_ascii_alphanumeric() || matches!(c, '_' | '-')));
    match bad {
        Some((index, found)) => Err(NameError::BadCharacter { found, position: index + 1 }),
        None => Ok(()),
    }
}

impl ToolName {
    /// Parses the name of a saved tool.
    ///
    /// # Errors
    /// [`NameError`] says which character is wrong, or that the name is reserved.
    pub fn parse(text: &str) -> Result<Self, NameError> {
        check_letters(text)?;
        let name = Self(text.to_owned());
        let folded = name.folded();
        if folded.starts_with("omniforge_") || folded == "omniforge" || folded == "get_job_result" {
            return Err(NameError::Reserved { name: text.to_owned() });
        }
        Ok(name)
    }

    /// Takes a name that the store holds, so that was checked when it was saved.
    pub fn from_stored(text: String) -> Self {
        Self(text)
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The name as a client mounts it that lower-cases names and turns runs of other characters into one `_`
    /// (omp's rule): two tools with the same folded name hide each other there.
    pub fn folded(&self) -> String {
        let mut folded = String::with_capacity(self.0.len());
        for c in self.0.chars().map(|c| c.to_ascii_lowercase()) {
            let c = if c.is_ascii_lowercase() || c.is_ascii_digit() { c } else { '_' };
            if c != '_' || !folded.ends_with('_') {
                folded.push(c);
            }
        }
        folded.trim_matches('_').to_owned()
    }
}

impl fmt::Display for ToolName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_good_name_is_kept_as_it_is() {
        for name in ["add_vat", "A", "a-b_C9", &"a".repeat(64)] {
            assert_eq!(ToolName::parse(name).unwrap().as_str(), name);
        }
    }

    #[test]
    fn a_bad_name_says_what_is_wrong() {
        assert_eq!(ToolName::parse(""), Err(NameError::Empty));
        assert_eq!(ToolName::parse(&"a".repeat(65)), Err(NameError::TooLong { length: 65 }));
        assert_eq!(ToolName::parse("9a"), Err(NameError::BadStart { found: '9' }));
        assert_eq!(ToolName::parse("a b"), Err(NameError::BadCharacter { found: ' ', position: 2 }));
        assert_eq!(ToolName::parse("add.vat"), Err(NameError::BadCharacter { found: '.', position: 4 }));
        assert!(matches!(ToolName::parse("OmniForge-create_tool"), Err(NameError::Reserved { .. })));
        assert!(matches!(ToolName::parse("get_job_result"), Err(NameError::Reserved { .. })));
    }

    #[test]
    fn names_fold_as_omp_mounts_them() {
        let fold = |name: &str| ToolName::parse(name).unwrap().folded();
        assert_eq!(fold("Add-VAT"), "add_vat");
        assert_eq!(fold("add__vat_"), "add_vat");
        assert_eq!(fold("a9-_-b"), "a9_b");
    }
}
