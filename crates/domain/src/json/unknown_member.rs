//! The message for a member that an object must not have.

/// Characters of a name that are repeated at most.
const MAX_CHARS: usize = 64;

/// Returns the message for an unknown member: its name, and the most similar known name.
pub fn unknown_member<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    let shown: String = name.chars().take(MAX_CHARS).collect();
    let distance = |other: &&str| strsim::damerau_levenshtein(&shown, other);
    match known.into_iter().min_by_key(distance) {
        Some(nearest) => format!("unknown member {shown:?}; the nearest known member is {nearest:?}"),
        None => format!("unknown member {shown:?}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nearest_known_member_is_named_and_long_names_are_cut() {
        let known = ["content_filters", "content_filter_builtins", "name"];
        assert_eq!(
            unknown_member("content_filter_builtin", known),
            r#"unknown member "content_filter_builtin"; the nearest known member is "content_filter_builtins""#
        );
        let message = unknown_member(&"\u{1}".repeat(10_000), []);
        assert!(message.len() < 600 && !message.contains('\u{1}'), "{message}");
    }
}
