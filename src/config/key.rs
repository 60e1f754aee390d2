//! Where the operator's key is.

use std::path::PathBuf;

/// The name of a credential that the service manager hands over (`LoadCredential=` of systemd).
const CREDENTIAL: &str = "omniforge-key";

/// Where the operator's key is.
#[derive(Clone, Debug)]
pub enum KeySource {
    /// In a file of the data directory, which the first start makes.
    DataDirectory,
    /// In this file, which must be there.
    File(PathBuf),
    /// In a variable.
    Text(KeyText),
}

/// The text of a key, which is never printed.
#[derive(Clone)]
pub struct KeyText(String);

impl KeyText {
    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Debug for KeyText {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("KeyText(…)")
    }
}

/// The option, else the variable, else the service manager's credential, else the data directory.
pub(super) fn source(file: Option<PathBuf>) -> KeySource {
    if let Some(file) = file {
        return KeySource::File(file);
    }
    if let Some(text) = std::env::var("OMNIFORGE_KEY").ok().filter(|text| !text.is_empty()) {
        return KeySource::Text(KeyText(text));
    }
    let credential = std::env::var_os("CREDENTIALS_DIRECTORY").map(|dir| PathBuf::from(dir).join(CREDENTIAL));
    credential.filter(|path| path.exists()).map_or(KeySource::DataDirectory, KeySource::File)
}
