//! Suggestions for misspelt names.

/// Returns the known name that is most similar to `name`; `None` only if there are no known names.
pub fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    known.into_iter().min_by_key(|candidate| (strsim::damerau_levenshtein(name, candidate), *candidate))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nearest_returns_most_similar_name() {
        assert_eq!(nearest("server.lisen", ["server.listen", "storage.url"]), Some("server.listen"));
        assert_eq!(nearest("x", []), None);
    }
}
