//! The operator's key: what must be kept apart from the database, so that who has the one alone has little.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use super::Sealer;
use crate::config::KeySource;

/// The key's file in the data directory.
const FILE: &str = "server.key";
const BYTES: usize = 32;

/// 256 bits from a file, a variable or the service manager. It opens the server's own key, which is in the database.
#[derive(Clone)]
pub struct OperatorKey([u8; BYTES]);

/// Why there is no key.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// The file can't be read or written.
    #[error("cannot use the server's key {}: {source}", .path.display())]
    File {
        /// Which file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// Others can read it.
    #[error("the server's key {} can be read by others (mode {mode:o}); make it yours alone: chmod 600", .path.display())]
    Open {
        /// Which file.
        path: PathBuf,
        /// Its mode.
        mode: u32,
    },
    /// It isn't a key.
    #[error(
        "{place} holds no key: 32 bytes, as they are, in hex or in base64url; put the right one back from a backup"
    )]
    Malformed {
        /// Where it should be.
        place: String,
    },
    /// The system gives no random bytes.
    #[error("the system gives no random bytes: {0}")]
    Random(getrandom::Error),
}

impl std::fmt::Debug for OperatorKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("OperatorKey(…)")
    }
}

impl OperatorKey {
    /// The key from where the settings say; in the data directory one is made (mode 0600) where there is none.
    ///
    /// # Errors
    /// [`KeyError`].
    pub fn open(source: &KeySource, data_dir: &Path) -> Result<Self, KeyError> {
        match source {
            KeySource::File(path) => Self::read(path),
            KeySource::Text(text) => {
                let place = "the variable OMNIFORGE_KEY".to_owned();
                Self::parse(text.as_str().as_bytes()).ok_or(KeyError::Malformed { place })
            }
            KeySource::DataDirectory => Self::open_or_create(&data_dir.join(FILE)),
        }
    }

    /// The key in this file; made where there is none.
    ///
    /// # Errors
    /// [`KeyError`].
    pub fn open_or_create(path: &Path) -> Result<Self, KeyError> {
        match Self::read(path) {
            Err(KeyError::File { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
                Self::create(path)?;
                Self::read(path)
            }
            found => found,
        }
    }

    /// Prepares another key for the data directory; it takes the old one's place with [`NextKey::put`].
    ///
    /// # Errors
    /// [`KeyError`].
    pub fn prepare_next(data_dir: &Path) -> Result<(Self, NextKey), KeyError> {
        let (draft, path) = (data_dir.join(format!("{FILE}.next")), data_dir.join(FILE));
        // One that was left behind was never used.
        match std::fs::remove_file(&draft) {
            Err(source) if source.kind() != io::ErrorKind::NotFound => {
                return Err(KeyError::File { path: draft, source });
            }
            _ => {}
        }
        Ok((Self::open_or_create(&draft)?, NextKey { draft, path }))
    }

    /// What seals with this key.
    pub(super) fn sealer(&self) -> Sealer {
        Sealer::new(blake3::derive_key("omniforge 2026-12-01 operator key", &self.0))
    }

    fn read(path: &Path) -> Result<Self, KeyError> {
        let failed = |source| KeyError::File { path: path.to_owned(), source };
        let mut file = File::open(path).map_err(failed)?;
        let mode = file.metadata().map_err(failed)?.mode() & 0o777;
        if mode & 0o077 != 0 {
            return Err(KeyError::Open { path: path.to_owned(), mode });
        }
        let mut bytes = Vec::with_capacity(BYTES);
        (&mut file).take(1024).read_to_end(&mut bytes).map_err(failed)?;
        Self::parse(&bytes).ok_or_else(|| KeyError::Malformed { place: format!("the key file {}", path.display()) })
    }

    /// Raw, in hex or in base64url.
    fn parse(bytes: &[u8]) -> Option<Self> {
        if let Ok(key) = <[u8; BYTES]>::try_from(bytes) {
            return Some(Self(key));
        }
        let text = std::str::from_utf8(bytes).ok()?.trim();
        let decoded = match text.len() {
            64 => (0..BYTES)
                .map(|at| u8::from_str_radix(text.get(2 * at..2 * at + 2)?, 16).ok())
                .collect::<Option<_>>()?,
            _ => URL_SAFE_NO_PAD.decode(text.trim_end_matches('=')).ok()?,
        };
        decoded.try_into().ok().map(Self)
    }

    /// Writes a fresh key beside its place and links it there, so that of two processes one wins whole.
    fn create(path: &Path) -> Result<(), KeyError> {
        let failed = |source| KeyError::File { path: path.to_owned(), source };
        let mut key = [0; BYTES];
        getrandom::fill(&mut key).map_err(KeyError::Random)?;
        let draft = path.with_added_extension(uuid::Uuid::new_v4().simple().to_string());
        let written = (|| {
            let mut file = OpenOptions::new().create_new(true).write(true).mode(0o600).open(&draft)?;
            file.write_all(&key)?;
            file.sync_all()?;
            match std::fs::hard_link(&draft, path) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
                linked => linked,
            }
        })();
        let removed = std::fs::remove_file(&draft);
        written.and(removed).map_err(failed)
    }
}

/// A key that waits to take another one's place.
#[derive(Debug)]
pub struct NextKey {
    draft: PathBuf,
    path: PathBuf,
}

impl NextKey {
    /// Puts it there.
    ///
    /// # Errors
    /// [`KeyError::File`].
    pub fn put(self) -> Result<(), KeyError> {
        std::fs::rename(&self.draft, &self.path).map_err(|source| KeyError::File { path: self.path, source })
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_key_is_made_once_and_found_again() {
        let directory = tempfile::tempdir().unwrap();
        let keys: Vec<OperatorKey> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..8)
                .map(|_| scope.spawn(|| OperatorKey::open(&KeySource::DataDirectory, directory.path()).unwrap()))
                .collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert!(keys.iter().all(|key| key.0 == keys[0].0));
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 1);
        let path = directory.path().join(FILE);
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).unwrap();
        assert!(matches!(
            OperatorKey::open(&KeySource::DataDirectory, directory.path()),
            Err(KeyError::Open { mode: 0o640, .. })
        ));
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
        std::fs::write(&path, "short").unwrap();
        assert!(matches!(
            OperatorKey::open(&KeySource::DataDirectory, directory.path()),
            Err(KeyError::Malformed { .. })
        ));
    }

    #[test]
    fn a_key_is_read_in_every_notation() {
        let key = OperatorKey([0xab; BYTES]);
        for text in ["ab".repeat(32), format!("{}\n", "AB".repeat(32)), URL_SAFE_NO_PAD.encode([0xab; BYTES])] {
            assert_eq!(OperatorKey::parse(text.as_bytes()).unwrap().0, key.0, "{text}");
        }
        for wrong in ["", "ab", &"zz".repeat(32), &"a".repeat(63)] {
            assert!(OperatorKey::parse(wrong.as_bytes()).is_none(), "{wrong}");
        }
    }
}
