//! The secret of an API key, its digest and its mask, and secrets that are sent to others.

use std::fmt;
use std::str::FromStr;

use sha2::{Digest, Sha256};

use crate::text::hex;

/// The secret of an API key: `sk-tg-v1-` and 64 lower-case hex digits. Shown once, never stored; `Debug` redacts it.
#[derive(Clone, PartialEq, Eq)]
pub struct ApiKeySecret(String);

impl ApiKeySecret {
    /// The prefix of every secret.
    pub const PREFIX: &'static str = "sk-tg-v1-";

    /// Creates a secret from 256 random bits.
    pub fn from_random(bytes: [u8; 32]) -> Self {
        Self(format!("{}{}", Self::PREFIX, hex(&bytes)))
    }

    /// Returns the whole secret, to be shown to its owner once.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// Returns the SHA-256 of the whole secret, which identifies the key in the store.
    pub fn hash(&self) -> ApiKeyHash {
        ApiKeyHash(Sha256::digest(self.0.as_bytes()).into())
    }

    /// Returns the mask for recognition: the prefix, three digits, `...`, three digits.
    pub fn label(&self) -> String {
        let digits = &self.0[Self::PREFIX.len()..];
        format!("{}{}...{}", Self::PREFIX, &digits[..3], &digits[61..])
    }
}

impl FromStr for ApiKeySecret {
    type Err = InvalidApiKeySecret;

    fn from_str(text: &str) -> Result<Self, InvalidApiKeySecret> {
        let digits = text.strip_prefix(Self::PREFIX).ok_or(InvalidApiKeySecret)?;
        if digits.len() == 64 && is_lower_hex(digits) { Ok(Self(text.to_owned())) } else { Err(InvalidApiKeySecret) }
    }
}

impl fmt::Debug for ApiKeySecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ApiKeySecret(…)")
    }
}

/// The error for a text that is not `sk-tg-v1-` and 64 lower-case hex digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not an API key")]
pub struct InvalidApiKeySecret;

/// The SHA-256 of a key's whole secret; written as 64 lower-case hex digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ApiKeyHash([u8; 32]);

impl ApiKeyHash {
    /// Wraps the digest's bytes.
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// Returns the digest's bytes.
    pub const fn bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Display for ApiKeyHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex(&self.0))
    }
}

impl fmt::Debug for ApiKeyHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for ApiKeyHash {
    type Err = InvalidApiKeyHash;

    /// Accepts exactly 64 lower-case hex digits.
    fn from_str(text: &str) -> Result<Self, InvalidApiKeyHash> {
        if text.len() != 64 || !is_lower_hex(text) {
            return Err(InvalidApiKeyHash);
        }
        let mut bytes = [0; 32];
        for (byte, pair) in bytes.iter_mut().zip(text.as_bytes().chunks_exact(2)) {
            *byte = nibble(pair[0]) << 4 | nibble(pair[1]);
        }
        Ok(Self(bytes))
    }
}

/// The error for a text that is not 64 lower-case hex digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a key hash is 64 lower-case hex digits")]
pub struct InvalidApiKeyHash;

fn is_lower_hex(text: &str) -> bool {
    // Checks all bytes without a branch, several at once.
    text.bytes().fold(true, |is_hex, b| is_hex & matches!(b, b'0'..=b'9' | b'a'..=b'f'))
}

fn nibble(digit: u8) -> u8 {
    if digit.is_ascii_digit() { digit - b'0' } else { digit - b'a' + 10 }
}

/// The secret of a provider, a destination or an object store; `Debug` redacts it.
#[derive(Clone, PartialEq, Eq)]
pub struct SecretString(String);

impl SecretString {
    /// Wraps a secret.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// Returns the secret, to be sent.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for SecretString {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[hidden]")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hash_is_sha256_of_whole_secret() {
        let secret = ApiKeySecret::from_random([0xab; 32]);
        assert_eq!(secret.expose().len(), 73);
        // printf 'sk-tg-v1-abab…' | sha256sum
        let again: ApiKeySecret = secret.expose().parse().unwrap();
        assert_eq!(again.hash(), secret.hash());
        assert_eq!(secret.hash().to_string().parse::<ApiKeyHash>().unwrap(), secret.hash());
        assert_eq!(secret.label(), "sk-tg-v1-aba...bab");
    }

    #[test]
    fn debug_redacts_secret() {
        assert_eq!(format!("{:?}", ApiKeySecret::from_random([1; 32])), "ApiKeySecret(…)");
    }

    #[test]
    fn other_formats_are_rejected() {
        let good = ApiKeySecret::from_random([0xab; 32]).expose().to_owned();
        for bad in
            [String::new(), good.to_uppercase(), good[1..].to_owned(), format!("{good}0"), good.replace("v1", "v2")]
        {
            assert!(bad.parse::<ApiKeySecret>().is_err());
        }
        for bad in ["", "é", &"A".repeat(64), &"a".repeat(63)] {
            assert!(bad.parse::<ApiKeyHash>().is_err());
        }
    }

    #[test]
    fn debug_redacts_secret_string() {
        assert_eq!(format!("{:?}", SecretString::new("sk-1")), "[hidden]");
    }
}
