//! Path segments, percent-decoded once.

use std::borrow::Cow;

use percent_encoding::percent_decode_str;

/// Decodes a path segment; returns `None` if it is not UTF-8.
pub(crate) fn decode(segment: &str) -> Option<Cow<'_, str>> {
    percent_decode_str(segment).decode_utf8().ok()
}

#[cfg(test)]
mod tests {
    use super::decode;

    #[test]
    fn segment_is_decoded_exactly_once() {
        assert_eq!(decode("a%2Fb").unwrap(), "a/b");
        assert_eq!(decode("%252e").unwrap(), "%2e");
        assert_eq!(decode("a+b%").unwrap(), "a+b%");
        assert_eq!(decode("%ff"), None);
    }
}
