//! The server's key, from which every other key is derived; and what seals with those.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chacha20poly1305::aead::{Aead, KeyInit, Payload};
use chacha20poly1305::{XChaCha20Poly1305, XNonce};

use super::operator_key::{KeyError, OperatorKey};
use crate::store::{SealedKey, Store, StoreError};

const BYTES: usize = 32;
const NONCE_BYTES: usize = 24;
/// What a sealed server key is bound to.
const CONTEXT: &[u8] = b"server key";

/// The purpose of the key that the hashes of tokens, sign-in codes and sessions are made with.
pub const CREDENTIALS: &str = "credentials";

/// 256 random bits that never leave the server but sealed.
#[derive(Clone)]
pub struct ServerKey([u8; BYTES]);

/// Why the server's key can't be had.
#[derive(Debug, thiserror::Error)]
pub enum ServerKeyError {
    /// The operator's key can't.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// The operator's key opens none of the store's.
    #[error(
        "the key is not the one that this data directory is used with; name its file with `--key-file` or \
         OMNIFORGE_KEY_FILE, as for the server"
    )]
    Other,
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl std::fmt::Debug for ServerKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ServerKey(…)")
    }
}

impl ServerKey {
    /// The key of a store; made at its first use. Where the operator's key opens none of those that there are, a new one is
    /// made, under which nothing of before is approved or can be read, until the right key is back.
    ///
    /// The store's audit log gets its key with it.
    ///
    /// # Errors
    /// [`ServerKeyError`].
    pub async fn open(store: &Store, operator: &OperatorKey) -> Result<Self, ServerKeyError> {
        let key = Self::open_or_make(store, operator).await?;
        store.use_audit_key(key.derive("audit")).await?;
        Ok(key)
    }

    /// The key of a store, which no other key takes the place of: for commands, which somebody may run without the setting
    /// that the server runs with. What they recorded under a key of their own would count as forged.
    ///
    /// # Errors
    /// [`ServerKeyError`].
    pub async fn open_as_before(store: &Store, operator: &OperatorKey) -> Result<Self, ServerKeyError> {
        let known = store.sealed_keys().await?;
        if !known.is_empty() && opened(&known, operator).is_none() {
            return Err(ServerKeyError::Other);
        }
        Self::open(store, operator).await
    }

    async fn open_or_make(store: &Store, operator: &OperatorKey) -> Result<Self, ServerKeyError> {
        loop {
            let known = store.sealed_keys().await?;
            if let Some((key, _)) = opened(&known, operator) {
                return Ok(key);
            }
            if !known.is_empty() {
                tracing::warn!(
                    "The key file is not the one that this data directory was made with: approvals and secrets of before \
                     don't count until the right one is back"
                );
            }
            let mut key = Self([0; BYTES]);
            getrandom::fill(&mut key.0).map_err(KeyError::Random)?;
            // Else another process was faster.
            if store.add_sealed_key(&operator.sealer().seal(&key.0, CONTEXT)?, &known).await? {
                return Ok(key);
            }
        }
    }

    /// Seals the key with a new operator's key as well, so that both open it; what seals it until now, to be forgotten once
    /// the new one is in its place.
    ///
    /// # Errors
    /// [`ServerKeyError`].
    pub async fn seal_anew(&self, store: &Store, new: &OperatorKey) -> Result<Vec<SealedKey>, ServerKeyError> {
        let sealed = new.sealer().seal(&self.0, CONTEXT)?;
        loop {
            let known = store.sealed_keys().await?;
            if store.add_sealed_key(&sealed, &known).await? {
                return Ok(known);
            }
        }
    }

    /// The sealed keys that this operator's key does not open, where it opens one: nothing needs them any more.
    ///
    /// # Errors
    /// [`ServerKeyError`].
    pub async fn outdated(store: &Store, operator: &OperatorKey) -> Result<Vec<SealedKey>, ServerKeyError> {
        let known = store.sealed_keys().await?;
        let Some((_, id)) = opened(&known, operator) else { return Ok(Vec::new()) };
        Ok(known.into_iter().filter(|key| key.id != id).collect())
    }

    /// A key for one purpose.
    pub fn derive(&self, purpose: &str) -> [u8; BYTES] {
        blake3::derive_key(&format!("omniforge 2026-12-01 {purpose}"), &self.0)
    }

    /// What seals and opens texts for one purpose.
    pub fn sealer(&self, purpose: &str) -> Sealer {
        Sealer::new(self.derive(purpose))
    }
}

/// The newest key that this operator's key opens, and its id.
fn opened(known: &[SealedKey], operator: &OperatorKey) -> Option<(ServerKey, String)> {
    let sealer = operator.sealer();
    known.iter().find_map(|key| {
        let bytes = sealer.open(&key.sealed, CONTEXT)?.try_into().ok()?;
        Some((ServerKey(bytes), key.id.clone()))
    })
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
    pub(super) fn new(key: [u8; BYTES]) -> Self {
        Self { cipher: XChaCha20Poly1305::new(&key.into()) }
    }

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
    use super::*;

    #[test]
    fn only_the_same_purpose_and_context_open_a_seal() {
        let key = ServerKey([7; BYTES]);
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
