//! Additional headers of a destination.

/// Reserved headers: hop-by-hop headers, and headers that every delivery sets.
const RESERVED_NAMES: [&str; 14] = [
    "accept-encoding",
    "connection",
    "content-encoding",
    "content-length",
    "content-type",
    "expect",
    "host",
    "keep-alive",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "user-agent",
    "x-test-connection",
];
/// Reserved prefixes of header names.
const RESERVED_PREFIXES: [&str; 2] = ["proxy-", "x-tollgate-"];
/// The longest name, in bytes.
const MAX_NAME_BYTES: usize = 128;
/// The longest value, in bytes.
const MAX_VALUE_BYTES: usize = 4096;

/// Validates an additional header. Returns the name in lower case and the trimmed value.
///
/// # Errors
/// The violation, as the rest of a sentence, without the value, which may be secret.
pub fn checked(name: &str, value: &str) -> Result<(String, String), String> {
    let lower = name.to_ascii_lowercase();
    let token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    if lower.is_empty() || lower.len() > MAX_NAME_BYTES || !lower.bytes().all(token) {
        return Err(format!("must be the name of a header, of 1 to {MAX_NAME_BYTES} characters"));
    }
    if RESERVED_NAMES.contains(&lower.as_str()) || RESERVED_PREFIXES.iter().any(|taken| lower.starts_with(taken)) {
        return Err("is set by the connection or by every delivery; leave it out".to_owned());
    }
    let value = value.trim_matches(' ');
    let visible = |byte: u8| byte == b' ' || byte.is_ascii_graphic();
    if value.is_empty() || value.len() > MAX_VALUE_BYTES || !value.bytes().all(visible) {
        return Err(format!("must have a value of 1 to {MAX_VALUE_BYTES} visible ASCII characters"));
    }
    Ok((lower, value.to_owned()))
}
