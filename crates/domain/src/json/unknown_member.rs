//! The error message for an unknown member of an object.

/// The highest number of characters of a name in the message.
const MAX_CHARS: usize = 64;

/// Returns the message for an unknown member: its name, and the most similar known name if half of it is the same.
pub fn unknown_member<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    let shown: String = name.chars().take(MAX_CHARS).collect();
    let distance = |other: &str| strsim::damerau_levenshtein(&shown, other);
    let nearest = known.into_iter().map(|other| (distance(other), other)).min();
    match nearest.filter(|(distance, _)| 2 * distance <= shown.chars().count()) {
        Some((_, nearest)) => format!("unknown member {shown:?}; the nearest known member is {nearest:?}"),
        None => format!("unknown member {shown:?}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_member_names_nearest_and_truncates_long_names() {
        let known = ["content_filters", "content_filter_builtins", "name"];
        assert_eq!(
            unknown_member("content_filter_builtin", known),
            r#"unknown member "content_filter_builtin"; the nearest known member is "content_filter_builtins""#
        );
        assert_eq!(unknown_member("unheard_of", known), r#"unknown member "unheard_of""#);
        let message = unknown_member(&"\u{1}".repeat(10_000), []);
        assert!(message.len() < 600 && !message.contains('\u{1}'), "{message}");
    }
}
