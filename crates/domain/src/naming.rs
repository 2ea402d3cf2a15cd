//! The grammar of names in paths, filters and arguments, one for all resources. A key is named by its id, its hash, a
//! unique prefix of the hash or its unique name; a workspace by its id, else its slug, else its unique name; other resources by
//! their id, or their unique name if they have one. Stores resolve names within the scope of the caller.

use std::fmt;
use std::str::FromStr;

use crate::error::ErrorKind;
use crate::secret::ApiKeyHash;

/// A name of a resource. A text that cannot name anything is a name of nothing.
///
/// `Debug` and `Display` leave the text out: it may be a secret.
#[derive(Clone, PartialEq, Eq)]
pub struct ResourceName(String);

impl ResourceName {
    /// The shortest prefix of a hash that names a key, in hexadecimal digits.
    pub const MIN_HASH_PREFIX: usize = 8;
    /// The most matches that a store returns, which is one more than an error lists.
    pub const MAX_MATCHES: usize = 11;

    /// Creates a name of this text. No resource has a name with control characters, so such a text is replaced by the
    /// empty one, which names nothing either: PostgreSQL fails statements with a NUL.
    pub fn new(text: impl Into<String>) -> Self {
        let text = text.into();
        Self(if text.chars().any(char::is_control) { String::new() } else { text })
    }

    /// Returns the text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the id, if the text is one. It then is nothing else.
    pub fn id<I: FromStr>(&self) -> Option<I> {
        self.0.parse().ok()
    }

    /// Returns the first and the last hash with this prefix of 8 to 64 hexadecimal digits.
    pub fn hashes(&self) -> Option<(ApiKeyHash, ApiKeyHash)> {
        let is_prefix = (Self::MIN_HASH_PREFIX..=64).contains(&self.0.len());
        if !is_prefix || !self.0.bytes().all(|digit| digit.is_ascii_hexdigit()) {
            return None;
        }
        let padded = |digit: char| {
            let rest = std::iter::repeat_n(digit, 64 - self.0.len());
            self.0.to_ascii_lowercase().chars().chain(rest).collect::<String>().parse().ok()
        };
        Some((padded('0')?, padded('f')?))
    }
}

impl<T: fmt::Display> From<&T> for ResourceName {
    fn from(id: &T) -> Self {
        Self(id.to_string())
    }
}

impl fmt::Debug for ResourceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ResourceName(…)")
    }
}

/// An error of resolving a name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// The caller sees no resource of this name.
    #[error("not found")]
    Unknown,
    /// Several resources have the name.
    #[error("is ambiguous; use an id: {}", list(.0))]
    Ambiguous(Vec<String>),
}

impl NameError {
    /// Returns the meaning of the error.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Unknown => ErrorKind::NotFound,
            Self::Ambiguous(_) => ErrorKind::Conflict,
        }
    }

    /// Returns the ids of the resources with the name, at most ten.
    pub fn ids(&self) -> &[String] {
        match self {
            Self::Unknown => &[],
            Self::Ambiguous(ids) => &ids[..ids.len().min(ResourceName::MAX_MATCHES - 1)],
        }
    }
}

fn list(ids: &[String]) -> String {
    let listed = ids.iter().take(ResourceName::MAX_MATCHES - 1).map(String::as_str);
    let more = (ids.len() >= ResourceName::MAX_MATCHES).then_some("and more");
    listed.chain(more).collect::<Vec<_>>().join(", ")
}

/// Returns the only match of a name.
///
/// # Errors
/// No match, or several.
pub fn only_match<T>(mut matches: Vec<T>, id: impl Fn(&T) -> String) -> Result<T, NameError> {
    match (matches.pop(), matches.is_empty()) {
        (None, _) => Err(NameError::Unknown),
        (Some(only), true) => Ok(only),
        (Some(last), false) => {
            matches.push(last);
            Err(NameError::Ambiguous(matches.iter().map(id).collect()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::ApiKeyId;

    #[test]
    fn name_is_an_id_or_a_prefix_of_a_hash_or_another_text() {
        let id = "01990000-0000-7000-8000-00000000000A";
        assert_eq!(ResourceName::new(id).id::<ApiKeyId>(), id.parse().ok());
        assert_eq!(ResourceName::new(id).hashes(), None);
        let hash = "0123456789abcdef".repeat(4);
        let exact = hash.parse::<ApiKeyHash>().unwrap();
        assert_eq!(ResourceName::new(hash.clone()).hashes(), Some((exact, exact)));
        assert_eq!(ResourceName::new(hash.to_uppercase()).hashes(), Some((exact, exact)));
        for length in [8, 9, 63] {
            let (first, last) = ResourceName::new(&hash[..length]).hashes().unwrap();
            assert!(first <= exact && exact <= last && first < last, "{length}");
            assert!(first.to_string().starts_with(&hash[..length]) && last.to_string().starts_with(&hash[..length]));
            assert!(first.to_string().ends_with('0') && last.to_string().ends_with('f'), "{length}");
        }
        for other in ["", "a name", &hash[..7], "0123456g", &format!("{hash}0"), "éééé"] {
            assert_eq!(ResourceName::new(other).hashes(), None, "{other}");
            assert_eq!(ResourceName::new(other).id::<ApiKeyId>(), None, "{other}");
        }
        assert!(!format!("{:?}", ResourceName::new("sk-tg-v1-secret")).contains("secret"));
        assert_eq!((ResourceName::new("a\0b").as_str(), ResourceName::new("\0").as_str()), ("", ""));
    }

    #[test]
    fn only_match_lists_up_to_ten_ids_of_an_ambiguous_name() {
        let of = |count: usize| only_match((0..count).collect(), ToString::to_string);
        assert_eq!((of(0), of(1)), (Err(NameError::Unknown), Ok(0)));
        let two = of(2).unwrap_err();
        assert_eq!(two.to_string(), "is ambiguous; use an id: 0, 1");
        assert_eq!((two.kind(), two.ids()), (ErrorKind::Conflict, ["0".to_owned(), "1".to_owned()].as_slice()));
        let many = of(ResourceName::MAX_MATCHES).unwrap_err();
        assert_eq!(many.ids().len(), 10);
        assert!(many.to_string().ends_with("8, 9, and more"), "{many}");
    }
}
