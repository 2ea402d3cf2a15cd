//! Ids of traces and spans.

use std::fmt::Write as _;

use sha2::{Digest, Sha256};

/// Returns the trace's id for a caller's name: the name in lower case where it is an id, else the first 16 bytes of its
/// SHA-256 in hexadecimal.
pub(super) fn trace_id(name: &str) -> String {
    as_it_is(name, 32).unwrap_or_else(|| hashed(name, 16))
}

/// Returns the span's id for a name: the name in lower case where it is an id, else the first 8 bytes of its SHA-256 in
/// hexadecimal.
pub fn span_id(name: &str) -> String {
    as_it_is(name, 16).unwrap_or_else(|| hashed(name, 8))
}

/// Returns the name as an id, unless it is all zeros.
fn as_it_is(name: &str, digits: usize) -> Option<String> {
    let is_id = name.len() == digits
        && name.bytes().all(|byte| byte.is_ascii_hexdigit())
        && name.bytes().any(|byte| byte != b'0');
    is_id.then(|| name.to_ascii_lowercase())
}

fn hashed(name: &str, bytes: usize) -> String {
    let digest = Sha256::digest(name.as_bytes());
    let mut id = String::with_capacity(2 * bytes);
    for byte in digest.iter().take(bytes) {
        // Writing into a string does not fail.
        let _ = write!(id, "{byte:02x}");
    }
    id
}
