//! Encryption of secrets in the database: AES-256-GCM with a random nonce per value.

use std::fmt;

use aws_lc_rs::aead::{AES_256_GCM, Aad, NONCE_LEN, Nonce, RandomizedNonceKey};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use domain::error::StoreError;

/// The prefix of encrypted values. JSON never begins with it.
pub(crate) const PREFIX: &str = "enc1:";

/// A key of 32 bytes for secrets in the database; `Debug` redacts it.
#[derive(Clone, PartialEq, Eq)]
pub struct EncryptionKey([u8; 32]);

impl EncryptionKey {
    /// Parses 32 bytes in Base64; white space around them is ignored. `None` for any other text.
    pub fn from_base64(text: &str) -> Option<Self> {
        STANDARD.decode(text.trim()).ok()?.try_into().ok().map(Self)
    }
}

impl fmt::Debug for EncryptionKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("EncryptionKey([hidden])")
    }
}

/// The setting of the encryption key.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum KeySetting {
    /// No key is configured: values are stored in plain text.
    #[default]
    Unset,
    /// The configured key cannot be read, for this reason. Plain values can be read; no value can be written.
    Unavailable(String),
    /// The key.
    Key(EncryptionKey),
}

/// Encrypts and decrypts the values of one column, with the key if one is set. A value is bound to its row: it cannot
/// be read in another one.
#[derive(Debug, Clone, Default)]
pub(crate) struct ColumnCipher {
    key: KeySetting,
}

/// An error of an encrypted value. It names the row, never the value.
#[derive(Debug, thiserror::Error)]
enum CipherError {
    #[error("the secrets of {row} are encrypted: storage.encryption_key must name their key")]
    NoKey { row: String },
    #[error("the secrets of {row} need the encryption key: {reason}")]
    Unavailable { row: String, reason: String },
    #[error(
        "the secrets of {row} cannot be decrypted: storage.encryption_key names another \
         key than the one that encrypted them, or the row was changed"
    )]
    WrongKey { row: String },
    #[error("the secrets of {row} cannot be encrypted")]
    Seal { row: String },
}

impl ColumnCipher {
    pub(crate) fn new(key: KeySetting) -> Self {
        Self { key }
    }

    /// Encrypts a value of a row; if no key is configured the value stays as it is.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] if the configured key cannot be read.
    pub(crate) fn encrypt(&self, row: &str, plain: String) -> Result<String, StoreError> {
        let Some(key) = self.key(row)? else { return Ok(plain) };
        let failed = |_| StoreError::unavailable(CipherError::Seal { row: row.to_owned() });
        let mut bytes = plain.into_bytes();
        let nonce = cipher(key).and_then(|cipher| cipher.seal_in_place_append_tag(Aad::from(row), &mut bytes));
        let nonce = nonce.map_err(failed)?;
        let sealed = [nonce.as_ref().as_slice(), &bytes].concat();
        Ok(format!("{PREFIX}{}", STANDARD.encode(sealed)))
    }

    /// Decrypts a value of a row; a plain value is returned as it is.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] without the key that encrypted the value: it can be read once the key is configured.
    pub(crate) fn decrypt(&self, row: &str, stored: String) -> Result<String, StoreError> {
        let Some(encoded) = stored.strip_prefix(PREFIX) else { return Ok(stored) };
        let owned = || row.to_owned();
        let key = self.key(row)?.ok_or_else(|| StoreError::unavailable(CipherError::NoKey { row: owned() }))?;
        open(key, row, encoded).ok_or_else(|| StoreError::unavailable(CipherError::WrongKey { row: owned() }))
    }

    /// Returns the key; `None` if no key is configured.
    fn key(&self, row: &str) -> Result<Option<&EncryptionKey>, StoreError> {
        match &self.key {
            KeySetting::Unset => Ok(None),
            KeySetting::Key(key) => Ok(Some(key)),
            KeySetting::Unavailable(reason) => {
                Err(StoreError::unavailable(CipherError::Unavailable { row: row.to_owned(), reason: reason.clone() }))
            }
        }
    }
}

/// Returns true if a value is encrypted.
pub(crate) fn is_encrypted(stored: &str) -> bool {
    stored.starts_with(PREFIX)
}

fn cipher(key: &EncryptionKey) -> Result<RandomizedNonceKey, aws_lc_rs::error::Unspecified> {
    RandomizedNonceKey::new(&AES_256_GCM, &key.0)
}

fn open(key: &EncryptionKey, row: &str, encoded: &str) -> Option<String> {
    let mut sealed = STANDARD.decode(encoded).ok()?;
    let (nonce, bytes) = sealed.split_at_mut_checked(NONCE_LEN)?;
    let nonce = Nonce::try_assume_unique_for_key(nonce).ok()?;
    let plain = cipher(key).ok()?.open_in_place(nonce, Aad::from(row), bytes).ok()?;
    String::from_utf8(plain.to_vec()).ok()
}

#[cfg(test)]
mod tests {
    use std::error::Error as _;

    use super::*;

    fn cipher_of(byte: u8) -> ColumnCipher {
        ColumnCipher::new(KeySetting::Key(EncryptionKey::from_base64(&STANDARD.encode([byte; 32])).unwrap()))
    }

    fn fault(result: Result<String, StoreError>) -> String {
        result.unwrap_err().source().unwrap().to_string()
    }

    #[test]
    fn value_round_trips_with_a_new_nonce_each_time() {
        let cipher = cipher_of(1);
        let (first, second) = (
            cipher.encrypt("row 1", "s3cret ✓".to_owned()).unwrap(),
            cipher.encrypt("row 1", "s3cret ✓".to_owned()).unwrap(),
        );
        assert_ne!(first, second);
        assert!(is_encrypted(&first) && !first.contains("s3cret"));
        for stored in [first, second] {
            assert_eq!(cipher.decrypt("row 1", stored).unwrap(), "s3cret ✓");
        }
    }

    #[test]
    fn plain_value_is_read_with_and_without_key() {
        for cipher in [cipher_of(1), ColumnCipher::default()] {
            assert_eq!(cipher.decrypt("row 1", "{\"a\":1}".to_owned()).unwrap(), "{\"a\":1}");
        }
        assert_eq!(ColumnCipher::default().encrypt("row 1", "{}".to_owned()).unwrap(), "{}");
    }

    #[test]
    fn unavailable_key_is_an_error_for_encrypted_and_new_values_only() {
        let cipher = ColumnCipher::new(KeySetting::Unavailable("the variable is not set".to_owned()));
        assert_eq!(cipher.decrypt("row 1", "{\"a\":1}".to_owned()).unwrap(), "{\"a\":1}");
        let stored = cipher_of(1).encrypt("row 1", "s3cret".to_owned()).unwrap();
        for result in [cipher.decrypt("row 1", stored), cipher.encrypt("row 1", "s3cret".to_owned())] {
            let message = fault(result);
            assert!(message.contains("row 1") && message.contains("the variable is not set"), "{message}");
            assert!(!message.contains("s3cret"), "{message}");
        }
    }

    #[test]
    fn wrong_or_missing_key_other_row_and_changed_value_are_errors() {
        let stored = cipher_of(1).encrypt("row 1", "s3cret".to_owned()).unwrap();
        let missing = fault(ColumnCipher::default().decrypt("row 1", stored.clone()));
        assert!(missing.contains("row 1 are encrypted") && missing.contains("storage.encryption_key"), "{missing}");
        let mut changed = stored.clone();
        let last = if changed.pop() == Some('A') { 'B' } else { 'A' };
        changed.push(last);
        for (cipher, row, stored) in [
            (cipher_of(2), "row 1", stored.clone()),
            (cipher_of(1), "row 2", stored),
            (cipher_of(1), "row 1", changed),
            (cipher_of(1), "row 1", format!("{PREFIX}AAAA")),
            (cipher_of(1), "row 1", format!("{PREFIX}no Base64")),
        ] {
            let message = fault(cipher.decrypt(row, stored));
            assert!(message.contains("another key") && !message.contains("s3cret"), "{message}");
        }
    }

    #[test]
    fn key_is_32_bytes_in_base64_and_hidden_in_debug() {
        let text = STANDARD.encode([7_u8; 32]);
        let key = EncryptionKey::from_base64(&format!(" {text}\n")).unwrap();
        assert!(!format!("{key:?} {:?}", ColumnCipher::new(KeySetting::Key(key.clone()))).contains('7'));
        for other in ["", "AAAA", &STANDARD.encode([7_u8; 31]), &STANDARD.encode([7_u8; 33]), "not Base64"] {
            assert_eq!(EncryptionKey::from_base64(other), None, "{other}");
        }
    }
}
