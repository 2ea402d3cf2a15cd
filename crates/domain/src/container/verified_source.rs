//! The check of bytes as they are read.

use async_trait::async_trait;
use sha2::{Digest, Sha256};

use super::ByteSource;
use crate::error::StoreError;

/// Bytes whose size and SHA-256 are checked as they are read. The last piece is returned only after both were found
/// right, so that nobody takes wrong bytes for a whole object.
pub struct VerifiedSource {
    source: Box<dyn ByteSource>,
    hash: Sha256,
    remaining: u64,
    expected: String,
}

impl VerifiedSource {
    /// Wraps a source that must return `size_bytes` bytes with this SHA-256, in lower-case hex.
    pub fn new(source: Box<dyn ByteSource>, size_bytes: u64, sha256: &str) -> Self {
        Self { source, hash: Sha256::new(), remaining: size_bytes, expected: sha256.to_owned() }
    }

    fn check_hash(&self) -> Result<(), StoreError> {
        let found = self.hash.clone().finalize();
        let digit = |nibble: u8| char::from_digit(u32::from(nibble), 16).unwrap_or('0');
        let is_expected = found.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).eq(self.expected.chars());
        if is_expected { Ok(()) } else { Err(corrupt("its bytes have another SHA-256")) }
    }
}

fn corrupt(problem: &str) -> StoreError {
    StoreError::Corrupt(problem.to_owned())
}

#[async_trait]
impl ByteSource for VerifiedSource {
    async fn next(&mut self) -> Result<Option<Vec<u8>>, StoreError> {
        let piece = self.source.next().await?;
        let read = piece.as_ref().map_or(0, Vec::len) as u64;
        if piece.is_none() && self.remaining > 0 {
            return Err(corrupt("it has fewer bytes than recorded"));
        }
        self.hash.update(piece.as_deref().unwrap_or_default());
        self.remaining = self.remaining.checked_sub(read).ok_or_else(|| corrupt("it has more bytes than recorded"))?;
        if self.remaining == 0 {
            self.check_hash()?;
        }
        Ok(piece)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::container::MockByteSource;

    const SHA256_OF_ABC: &str = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
    const SHA256_OF_NOTHING: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

    /// Reads pieces to the end; returns what was read before the end or an error.
    async fn read(pieces: &[&str], size_bytes: u64, sha256: &str) -> (String, bool) {
        let mut pieces: std::collections::VecDeque<Vec<u8>> =
            pieces.iter().map(|piece| piece.as_bytes().to_vec()).collect();
        let mut source = MockByteSource::new();
        source.expect_next().returning(move || Ok(pieces.pop_front()));
        let mut verified = VerifiedSource::new(Box::new(source), size_bytes, sha256);
        let mut seen = Vec::new();
        loop {
            match verified.next().await {
                Ok(Some(piece)) => seen.extend(piece),
                Ok(None) => return (String::from_utf8(seen).unwrap(), true),
                Err(StoreError::Corrupt(_)) => return (String::from_utf8(seen).unwrap(), false),
                Err(error) => panic!("{error}"),
            }
        }
    }

    #[tokio::test]
    async fn last_piece_is_held_back_unless_size_and_hash_are_right() {
        for (pieces, size_bytes, sha256, seen, is_whole) in [
            (&["a", "bc"][..], 3, SHA256_OF_ABC, "abc", true),
            (&["abc"], 3, SHA256_OF_ABC, "abc", true),
            (&[], 0, SHA256_OF_NOTHING, "", true),
            (&["a", "bd"], 3, SHA256_OF_ABC, "a", false),
            (&["abd"], 3, SHA256_OF_ABC, "", false),
            (&["a", "b"], 3, SHA256_OF_ABC, "ab", false),
            (&["a", "bcd"], 3, SHA256_OF_ABC, "a", false),
            (&["abc"], 3, "", "", false),
            (&[], 0, SHA256_OF_ABC, "", false),
        ] {
            assert_eq!(
                read(pieces, size_bytes, sha256).await,
                (seen.to_owned(), is_whole),
                "{pieces:?} of {size_bytes}"
            );
        }
    }
}
