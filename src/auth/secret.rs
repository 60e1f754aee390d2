//! Random texts, their hashes, and comparing them.

use subtle::ConstantTimeEq;

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

/// The hash under which a secret is stored. It needs no salt and no slow function: it has 256 random bits.
pub(super) fn hash(secret: &str) -> Hash {
    blake3::hash(secret.as_bytes()).into()
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
