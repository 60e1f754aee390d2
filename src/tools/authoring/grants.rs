//! The reach that an author asks for, checked name by name: what is saved can be granted as it stands.

use super::FieldError;
use super::draft::{keep_first, wrong};
use crate::model::{Network, ToolName, check_secret_name};

/// The most names in one list.
const MOST: usize = 64;

/// The hosts, normalised.
///
/// # Errors
/// [`FieldError`] names the entry that is none.
pub fn network(entries: &[String]) -> Result<Vec<String>, FieldError> {
    few("network", entries)?;
    match Network::parse(entries) {
        Ok(network) => Ok(network.entries()),
        Err(error) => wrong("network", format!("{error}; an entry is `host` or `host:port`, or `full` by itself")),
    }
}

/// The names of secrets.
///
/// # Errors
/// [`FieldError`] names the one that can't be a secret's.
pub fn secrets(mut names: Vec<String>) -> Result<Vec<String>, FieldError> {
    few("secrets", &names)?;
    for name in &names {
        if let Err(error) = check_secret_name(name) {
            return wrong("secrets", format!("`{name}`: {error}"));
        }
    }
    keep_first(&mut names);
    Ok(names)
}

/// The names of tools.
///
/// # Errors
/// [`FieldError`] names the one that can't be a saved tool's.
pub fn calls(mut names: Vec<String>) -> Result<Vec<String>, FieldError> {
    few("calls", &names)?;
    for name in &names {
        if let Err(error) = ToolName::parse(name) {
            return wrong("calls", format!("`{name}`: {error}"));
        }
    }
    keep_first(&mut names);
    Ok(names)
}

fn few(field: &'static str, list: &[String]) -> Result<(), FieldError> {
    if list.len() > MOST {
        return wrong(field, format!("{} are given; at most {MOST} are allowed", list.len()));
    }
    Ok(())
}
