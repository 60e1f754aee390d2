//! The server's key: one secret per data directory, from which every other key is derived.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chacha20poly1305::aead::{Aead, KeyInit, Payload};
use chacha20poly1305::{XChaCha20Poly1305, XNonce};

/// The key's file in the data directory.
const FILE: &str = "server.key";
const BYTES: usize = 32;
const NONCE_BYTES: usize = 24;

/// 256 random bits that never leave the server.
#[derive(Clone)]
pub struct ServerKey([u8; BYTES]);

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
    #[error("the server's key {} has not {BYTES} bytes; put the right file back from a backup", .path.display())]
    Malformed {
        /// Which file.
        path: PathBuf,
    },
    /// The system gives no random bytes.
    #[error("the system gives no random bytes: {0}")]
    Random(getrandom::Error),
}

impl std::fmt::Debug for ServerKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ServerKey(…)")
    }
}

impl ServerKey {
    /// The key of a data directory; made (mode 0600) where there is none.
    ///
    /// # Errors
    /// [`KeyError`].
    pub fn open(data_dir: &Path) -> Result<Self, KeyError> {
        let path = data_dir.join(FILE);
        match Self::read(&path) {
            Err(KeyError::File { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
                Self::create(data_dir, &path)?;
                Self::read(&path)
            }
            found => found,
        }
    }

    fn read(path: &Path) -> Result<Self, KeyError> {
        let failed = |source| KeyError::File { path: path.to_owned(), source };
        let mut file = File::open(path).map_err(failed)?;
        let mode = file.metadata().map_err(failed)?.mode() & 0o777;
        if mode & 0o077 != 0 {
            return Err(KeyError::Open { path: path.to_owned(), mode });
        }
        let mut bytes = Vec::with_capacity(BYTES);
        file.read_to_end(&mut bytes).map_err(failed)?;
        let key = bytes.try_into().map_err(|_| KeyError::Malformed { path: path.to_owned() })?;
        Ok(Self(key))
    }

    /// Writes a fresh key beside its place and links it there, so that of two processes one wins whole.
    fn create(data_dir: &Path, path: &Path) -> Result<(), KeyError> {
        let failed = |source| KeyError::File { path: path.to_owned(), source };
        let mut key = [0; BYTES];
        getrandom::fill(&mut key).map_err(KeyError::Random)?;
        let draft = data_dir.join(format!("{FILE}.{}", uuid::Uuid::new_v4()));
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

    /// A key for one purpose.
    pub fn derive(&self, purpose: &str) -> [u8; BYTES] {
        blake3::derive_key(&format!("omniforge 2026-12-01 {purpose}"), &self.0)
    }

    /// What seals and opens texts for one purpose.
    pub fn sealer(&self, purpose: &str) -> Sealer {
        Sealer { cipher: XChaCha20Poly1305::new(&self.derive(purpose).into()) }
    }
}

/// Seals bytes into texts that only this server can read or make (XChaCha20-Poly1305).
#[derive(Clone)]
pub struct Sealer {
    cipher: XChaCha20Poly1305,
}

impl std::fmt::Debug for Sealer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Sealer(…)")
    }
}

impl Sealer {
    /// Seals bytes, bound to `context`: base64url of nonce and ciphertext.
    ///
    /// # Errors
    /// [`KeyError::Random`].
    pub fn seal(&self, plain: &[u8], context: &[u8]) -> Result<String, KeyError> {
        let mut sealed = vec![0; NONCE_BYTES];
        getrandom::fill(&mut sealed).map_err(KeyError::Random)?;
        let nonce = XNonce::try_from(sealed.as_slice()).expect("the nonce has its length");
        let payload = Payload { msg: plain, aad: context };
        sealed.extend(self.cipher.encrypt(&nonce, payload).expect("the text is far below the cipher's limit"));
        Ok(URL_SAFE_NO_PAD.encode(sealed))
    }

    /// Opens a sealed text; `None` when it was not sealed here, for this context, or was changed.
    pub fn open(&self, sealed: &str, context: &[u8]) -> Option<Vec<u8>> {
        let bytes = URL_SAFE_NO_PAD.decode(sealed).ok()?;
        let (nonce, ciphertext) = bytes.split_at_checked(NONCE_BYTES)?;
        let nonce = XNonce::try_from(nonce).ok()?;
        self.cipher.decrypt(&nonce, Payload { msg: ciphertext, aad: context }).ok()
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_key_is_made_once_and_found_again() {
        let directory = tempfile::tempdir().unwrap();
        let keys: Vec<ServerKey> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..8).map(|_| scope.spawn(|| ServerKey::open(directory.path()).unwrap())).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert!(keys.iter().all(|key| key.0 == keys[0].0));
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 1);
        let path = directory.path().join(FILE);
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).unwrap();
        assert!(matches!(ServerKey::open(directory.path()), Err(KeyError::Open { mode: 0o640, .. })));
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
        std::fs::write(&path, "short").unwrap();
        assert!(matches!(ServerKey::open(directory.path()), Err(KeyError::Malformed { .. })));
    }

    #[test]
    fn only_the_same_purpose_and_context_open_a_seal() {
        let directory = tempfile::tempdir().unwrap();
        let key = ServerKey::open(directory.path()).unwrap();
        let (sealer, sealed) = (key.sealer("a"), key.sealer("a").seal(b"text", b"context").unwrap());
        assert_eq!(sealer.open(&sealed, b"context").as_deref(), Some(&b"text"[..]));
        assert_ne!(sealed, sealer.seal(b"text", b"context").unwrap());
        assert_eq!(key.sealer("b").open(&sealed, b"context"), None);
        assert_eq!(sealer.open(&sealed, b"other"), None);
        let flipped: String = sealed.chars().rev().collect();
        for wrong in [flipped.as_str(), "", "AAAA", "no base64!"] {
            assert_eq!(sealer.open(wrong, b"context"), None, "{wrong}");
        }
    }
}
