//! Which known name somebody may have meant.

/// The known name that is spelled most like `name`; `None` only where nothing is known.
pub fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    known.into_iter().min_by_key(|candidate| (strsim::damerau_levenshtein(name, candidate), *candidate))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_closest_spelling_wins() {
        assert_eq!(nearest("server.lisen", ["server.listen", "storage.url"]), Some("server.listen"));
        assert_eq!(nearest("x", []), None);
    }
}
