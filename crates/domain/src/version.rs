//! Versions of records, by which a caller changes only the state that it has read.

use std::fmt;
use std::str::FromStr;

/// A digest of the writable members of a record, or a counter of its changes. Usage does not change it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Version(u128);

impl Version {
    /// Creates the version from the first half of a SHA-256 digest.
    pub fn from_digest(digest: [u8; 32]) -> Self {
        Self(digest.iter().take(16).fold(0, |number, byte| number << 8 | u128::from(*byte)))
    }

    /// Creates the version of a record that is counted up by every change.
    pub fn from_counter(counter: u64) -> Self {
        Self(counter.into())
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

/// The text is not the version of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a version is 32 lower-case hexadecimal digits")]
pub struct InvalidVersion;

impl FromStr for Version {
    type Err = InvalidVersion;

    fn from_str(text: &str) -> Result<Self, InvalidVersion> {
        let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        if text.len() != 32 || !text.bytes().all(is_digit) {
            return Err(InvalidVersion);
        }
        u128::from_str_radix(text, 16).map(Self).map_err(|_| InvalidVersion)
    }
}

/// The versions that a change accepts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum IfMatch {
    /// Any version of an existing record.
    Any,
    /// One of these. An empty list accepts none.
    Versions(Vec<Version>),
}

impl IfMatch {
    /// Returns true if the version is accepted.
    pub fn accepts(&self, version: Version) -> bool {
        match self {
            Self::Any => true,
            Self::Versions(versions) => versions.contains(&version),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn version_has_one_spelling() {
        let mut digest = [0; 32];
        (digest[0], digest[15], digest[16]) = (0x0a, 0xff, 0xee);
        let version = Version::from_digest(digest);
        assert_eq!(version.to_string(), "0a0000000000000000000000000000ff");
        assert_eq!(version.to_string().parse(), Ok(version));
        let upper = "0A0000000000000000000000000000FF";
        let sign = "+a0000000000000000000000000000ff";
        for text in ["", "0a", upper, sign, "0a0000000000000000000000000000ff0"] {
            assert_eq!(text.parse::<Version>(), Err(InvalidVersion), "{text}");
        }
    }

    #[test]
    fn if_match_accepts_any_or_a_listed_version() {
        let [one, two] = [1, 2].map(|first| Version::from_digest([first; 32]));
        assert!(IfMatch::Any.accepts(one));
        assert!(IfMatch::Versions(vec![two, one]).accepts(one));
        assert!(!IfMatch::Versions(vec![two]).accepts(one) && !IfMatch::Versions(vec![]).accepts(one));
    }
}
