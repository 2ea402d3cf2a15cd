//! Signatures.

use std::fmt::Write as _;

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

/// Returns the value of `x-tollgate-signature`: `v1=` and the HMAC-SHA256 in lower-case hex, with the secret as key, of
/// the timestamp in `x-tollgate-timestamp`, a full stop, and the body.
pub fn signature(secret: &str, timestamp: &str, body: &[u8]) -> String {
    let mut text = "v1=".to_owned();
    // HMAC accepts keys of any length.
    let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(secret.as_bytes()) else { return text };
    mac.update(timestamp.as_bytes());
    mac.update(b".");
    mac.update(body);
    for byte in mac.finalize().into_bytes() {
        // Writing to a string does not fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signature_matches_openssl() {
        // printf '1790000000.{}' | openssl dgst -sha256 -hmac 0123456789abcdef
        assert_eq!(signature("0123456789abcdef", "1790000000", b"{}"), EXPECTED);
        for other in [
            signature("0123456789abcdeg", "1790000000", b"{}"),
            signature("0123456789abcdef", "1790000001", b"{}"),
            signature("0123456789abcdef", "1790000000", b"{ }"),
        ] {
            assert_ne!(other, EXPECTED);
        }
    }

    const EXPECTED: &str = "v1=3d02334942fff50e279f641c1b104ff5f49380d94ff307bb92b1e03f5aee6ff0";
}
