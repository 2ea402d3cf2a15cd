//! Headers that are sent along.

/// Those of one connection, and those that every delivery has already.
const TAKEN: [&str; 14] = [
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
/// Beginnings of names that belong to a connection, or to deliveries of ours.
const TAKEN_BEGINNINGS: [&str; 2] = ["proxy-", "x-tollgate-"];
/// Longest name, in bytes.
const LONGEST_NAME: usize = 128;
/// Longest value, in bytes.
const LONGEST_VALUE: usize = 4096;

/// A header that can be sent along, its name in lower case and its value without white space around it.
///
/// # Errors
/// Why it cannot, as the rest of a sentence; the value, which may be secret, is not in it.
pub fn checked(name: &str, value: &str) -> Result<(String, String), String> {
    let lower = name.to_ascii_lowercase();
    let token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    if lower.is_empty() || lower.len() > LONGEST_NAME || !lower.bytes().all(token) {
        return Err(format!("must be the name of a header, of 1 to {LONGEST_NAME} characters"));
    }
    if TAKEN.contains(&lower.as_str()) || TAKEN_BEGINNINGS.iter().any(|taken| lower.starts_with(taken)) {
        return Err("belongs to the connection or is written by every delivery: leave it out".to_owned());
    }
    let value = value.trim_matches(' ');
    let visible = |byte: u8| byte == b' ' || byte.is_ascii_graphic();
    if value.is_empty() || value.len() > LONGEST_VALUE || !value.bytes().all(visible) {
        return Err(format!("must have a value of 1 to {LONGEST_VALUE} visible ASCII characters"));
    }
    Ok((lower, value.to_owned()))
}
