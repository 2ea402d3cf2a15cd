//! The names of objects in the bucket.

use domain::container::BlobKey;
use object_store::path::Path;

use crate::S3Error;

/// The longest name of an object, in bytes, prefix included.
const MAX_NAME_BYTES: usize = 1_024;

/// The prefix of all names of a store.
#[derive(Debug, Clone)]
pub(crate) struct Names {
    /// Empty, or ends with a slash.
    prefix: String,
}

impl Names {
    /// Checks the prefix, which has no slash at its ends.
    pub(crate) fn new(prefix: &str) -> Result<Self, S3Error> {
        if prefix.is_empty() {
            return Ok(Self { prefix: String::new() });
        }
        match parse(prefix) {
            Some(_) => Ok(Self { prefix: format!("{prefix}/") }),
            None => Err(S3Error::Prefix),
        }
    }

    /// Returns the name of an object; `None` if no object can have that key.
    pub(crate) fn of(&self, key: &BlobKey) -> Option<Path> {
        // The empty key would be the prefix itself.
        if key.as_str().is_empty() { None } else { parse(&self.below(key.as_str())) }
    }

    /// Returns the name of a key or of the beginning of keys.
    pub(crate) fn below(&self, text: &str) -> String {
        format!("{}{text}", self.prefix)
    }

    /// Returns the key of a listed object; `None` for an object of others.
    pub(crate) fn key(&self, name: &Path) -> Option<BlobKey> {
        let key = name.as_ref().strip_prefix(&self.prefix)?;
        Some(BlobKey::from_listing(key.to_owned()))
    }
}

/// Parses a name that the store takes as it is: nothing in it is encoded, cut off or resolved.
fn parse(name: &str) -> Option<Path> {
    let path = Path::parse(name).ok()?;
    (name.len() <= MAX_NAME_BYTES && path.as_ref() == name).then_some(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(name: &str) -> BlobKey {
        BlobKey::from_listing(name.to_owned())
    }

    #[test]
    fn names_are_the_keys_below_the_prefix() {
        for (prefix, expected) in [("", "a%2F b/é"), ("x/y", "x/y/a%2F b/é")] {
            let names = Names::new(prefix).unwrap();
            let name = names.of(&key("a%2F b/é")).unwrap();
            assert_eq!(name.as_ref(), expected);
            assert_eq!(names.key(&name), Some(key("a%2F b/é")));
        }
        assert_eq!(Names::new("x").unwrap().key(&Path::parse("xy/a").unwrap()), None);
    }

    #[test]
    fn keys_that_no_object_can_have_are_rejected() {
        let names = Names::new("p").unwrap();
        let long = "x".repeat(1_023);
        for name in ["", "/a", "a/", "a//b", "../a", "a/./b", "a\0b", "a\nb", &long] {
            assert_eq!(names.of(&key(name)), None, "{name:?}");
        }
        assert!(names.of(&key(&long[1..])).is_some());
        for prefix in ["/a", "a/", "a//b", "..", "a/../b"] {
            assert!(Names::new(prefix).is_err(), "{prefix}");
        }
    }
}
