//! Random texts, their hashes, and comparing them.

use subtle::ConstantTimeEq;

use crate::model::{PrincipalId, Scopes, Timestamp, ToolsetId};
use crate::store::Hash;

const LETTERS_AND_DIGITS: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// How long a text of letters and digits must be to hold 256 random bits (43 × log₂ 62 = 256.03).
pub(super) const SECRET_LENGTH: usize = 43;

/// A random text of letters and digits, each as likely as any other.
pub(super) fn random_text(length: usize) -> String {
    let mut text = String::with_capacity(length);
    let mut bytes = [0; 64];
    while text.len() < length {
        getrandom::fill(&mut bytes).expect("the kernel's random numbers do not fail once it is up");
        // 248 is the largest multiple of 62 in a byte: what is above would make some characters likelier.
        let characters =
            bytes.iter().filter(|byte| **byte < 248).map(|byte| LETTERS_AND_DIGITS[usize::from(byte % 62)]);
        text.extend(characters.take(length - text.len()).map(char::from));
    }
    text
}

/// Whether the text could have come from [`random_text`].
pub(super) fn is_random_text(text: &str, length: usize) -> bool {
    text.len() == length && text.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

/// The hash of a secret, for comparing it within this process.
pub(super) fn hash(secret: &str) -> Hash {
    blake3::hash(secret.as_bytes()).into()
}

/// Makes the hashes under which secrets are stored. They need no salt and no slow function: a secret has 256 random bits.
/// They are keyed with a key of the server's, so that whoever writes the database alone makes no credential.
#[derive(Clone)]
pub(super) struct CredentialKey(pub(super) [u8; 32]);

impl std::fmt::Debug for CredentialKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("CredentialKey(…)")
    }
}

impl CredentialKey {
    /// The stored hash of a sign-in code or of a session's id.
    pub(super) fn hash(&self, secret: &str) -> Hash {
        blake3::keyed_hash(&self.0, secret.as_bytes()).into()
    }

    /// The stored hash of a token: of its secret, and of what it allows, which nobody changes therefore.
    pub(super) fn of_token(&self, secret: &str, grants: &TokenGrants<'_>) -> Hash {
        let TokenGrants { id, principal, scopes, expires_at, toolset } = grants;
        let expires_at = expires_at.map(|at| at.0);
        let toolset = toolset.map(|toolset| toolset.0.as_str());
        let all = serde_json::json!([secret, id, principal.0, scopes.to_string(), expires_at, toolset]);
        self.hash(&all.to_string())
    }
}

/// What a token allows.
pub(super) struct TokenGrants<'a> {
    pub(super) id: &'a str,
    pub(super) principal: &'a PrincipalId,
    pub(super) scopes: Scopes,
    pub(super) expires_at: Option<Timestamp>,
    pub(super) toolset: Option<&'a ToolsetId>,
}

/// Compares two hashes in a time that does not tell where they differ.
pub(super) fn same(a: &Hash, b: &Hash) -> bool {
    a.ct_eq(b).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn random_texts_have_the_length_and_use_every_character() {
        let long = random_text(20_000);
        assert_eq!(long.len(), 20_000);
        assert!(LETTERS_AND_DIGITS.iter().all(|byte| long.bytes().any(|other| other == *byte)));
        assert_ne!(random_text(SECRET_LENGTH), random_text(SECRET_LENGTH));
        assert!(is_random_text(&random_text(16), 16));
        assert!(!is_random_text("0123456789abcde_", 16));
        assert!(!is_random_text("é23456789abcde", 15));
    }
}
