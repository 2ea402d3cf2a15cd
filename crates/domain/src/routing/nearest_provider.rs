//! Suggestions for misspelt slugs of providers.

use std::fmt;

/// The number of similar slugs that an error suggests.
const NEAREST: usize = 3;
/// The highest number of characters of a name that are compared.
const MAX_COMPARED_CHARS: usize = 64;

/// A provider that a request names and that does not exist.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownProvider {
    /// The name, truncated.
    pub name: String,
    /// Up to three slugs that are spelled like it, the closest first.
    pub nearest: Vec<String>,
}

impl UnknownProvider {
    /// Describes a name by the known slugs.
    pub fn new<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Self {
        Self { name: name.chars().take(MAX_COMPARED_CHARS).collect(), nearest: nearest_providers(known, name) }
    }
}

impl fmt::Display for UnknownProvider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} is not a configured provider", self.name)?;
        if self.nearest.is_empty() { Ok(()) } else { write!(f, "; nearest: {}", self.nearest.join(", ")) }
    }
}

/// Returns up to three slugs that are spelled like `name`, the closest first.
pub(crate) fn nearest_providers<'a>(known: impl IntoIterator<Item = &'a str>, name: &str) -> Vec<String> {
    let lower: String = name.to_ascii_lowercase().chars().take(MAX_COMPARED_CHARS).collect();
    let distances = known.into_iter().map(|slug| (strsim::levenshtein(&lower, slug), slug));
    let mut close: Vec<(usize, &str)> = distances.filter(|(distance, slug)| *distance <= slug.len() / 2).collect();
    close.sort_unstable();
    close.dedup();
    close.into_iter().take(NEAREST).map(|(_, slug)| slug.to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_provider_names_similar_slugs_once() {
        let known = ["typesafe", "other", "typesafe", "typesave-eu"];
        let unknown = UnknownProvider::new("TypeSave", known);
        assert_eq!(unknown.nearest, ["typesafe", "typesave-eu"]);
        let message = "\"TypeSave\" is not a configured provider; nearest: typesafe, typesave-eu";
        assert_eq!(unknown.to_string(), message);
        let unlike = UnknownProvider::new(&"x".repeat(1_000), known);
        assert!(unlike.nearest.is_empty() && unlike.to_string().len() < 120, "{unlike}");
    }
}
