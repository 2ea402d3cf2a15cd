//! Suggestions for misspelt names.

/// Returns the known name that is most similar to `name`; `None` only if there are no known names.
pub fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    known.into_iter().min_by_key(|candidate| (strsim::damerau_levenshtein(name, candidate), *candidate))
}

/// Returns the known name that `name` probably means; `None` if no known name is similar.
pub fn similar<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let name = name.to_lowercase();
    let is_similar = |candidate: &&str| {
        let is_prefix = name.len() > 2 && candidate.starts_with(&name);
        is_prefix || 2 * strsim::damerau_levenshtein(&name, candidate) <= name.len().max(candidate.len())
    };
    nearest(&name, known.into_iter().filter(is_similar))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nearest_returns_most_similar_name() {
        assert_eq!(nearest("server.lisen", ["server.listen", "storage.url"]), Some("server.listen"));
        assert_eq!(nearest("x", []), None);
    }

    #[test]
    fn similar_returns_only_probable_names() {
        let wires = ["chat-completions", "openai-decisions", "system-one"];
        for (name, expected) in [
            ("sytem-one", Some("system-one")),
            ("System_One", Some("system-one")),
            ("openai", Some("openai-decisions")),
            ("chat-completion", Some("chat-completions")),
            ("sandbox", None),
            ("", None),
        ] {
            assert_eq!(similar(name, wires), expected, "{name}");
        }
    }
}
