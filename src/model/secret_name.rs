//! The names of secrets. A secret stands in a run's environment under its name, so not every name will do.

/// The most characters of a name.
const LENGTH: usize = 64;
/// Variables that the runner sets itself, and beginnings of others that change how programs start.
const RESERVED: &[&str] = &[
    "PATH",
    "HOME",
    "TMPDIR",
    "LANG",
    "IFS",
    "ENV",
    "BASH_ENV",
    "NODE_OPTIONS",
    "NODE_PATH",
    "PYTHONHOME",
    "PYTHONPATH",
    "PYTHONSTARTUP",
    "PYTHONDONTWRITEBYTECODE",
    "MALLOC_ARENA_MAX",
];
const RESERVED_PREFIXES: &[&str] = &["OMNIFORGE_", "ARG_", "LD_", "LC_"];

/// Why a text can't be the name of a secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SecretNameError {
    /// No name of a variable.
    #[error("it must be the name of a variable: letters, digits and `_`, at most {LENGTH}, no digit first")]
    NoVariable,
    /// A name with a meaning already.
    #[error("the name is reserved: it changes how programs start, or is one that every run has")]
    Reserved,
}

/// Checks a secret's name.
///
/// # Errors
/// [`SecretNameError`].
pub fn check_secret_name(name: &str) -> Result<(), SecretNameError> {
    let starts_well = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    if !starts_well || name.len() > LENGTH || !name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_') {
        return Err(SecretNameError::NoVariable);
    }
    if RESERVED.contains(&name) || RESERVED_PREFIXES.iter().any(|prefix| name.starts_with(prefix)) {
        return Err(SecretNameError::Reserved);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_free_variables_are_taken() {
        for name in ["API_KEY", "_x", "token2", "PATHS"] {
            assert_eq!(check_secret_name(name), Ok(()), "{name}");
        }
        let long = "A".repeat(65);
        for name in ["", "2A", "A-B", "A B", "A=B", "É", "a\0", &long] {
            assert_eq!(check_secret_name(name), Err(SecretNameError::NoVariable), "{name}");
        }
        for name in ["PATH", "LD_PRELOAD", "OMNIFORGE_TOOL", "ARG_NAME", "PYTHONPATH", "NODE_OPTIONS", "BASH_ENV"] {
            assert_eq!(check_secret_name(name), Err(SecretNameError::Reserved), "{name}");
        }
    }
}
