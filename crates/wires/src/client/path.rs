//! Paths into a body: `questions.tone.criteria[2]`, `questions["odd name"].type`.

/// Returns the path of a member. A long or unusual name is truncated and quoted, so that the error message stays
/// readable.
pub(crate) fn member(parent: &str, name: &str) -> String {
    let plain =
        !name.is_empty() && name.len() <= 64 && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-".contains(&b));
    if plain {
        format!("{parent}.{name}")
    } else {
        format!("{parent}[{:?}]", name.chars().take(64).collect::<String>())
    }
}

/// Returns the path of an array element.
pub(crate) fn element(parent: &str, index: usize) -> String {
    format!("{parent}[{index}]")
}

/// One step of a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Segment<'p> {
    /// A member of an object.
    Member(&'p str),
    /// An element of an array.
    Element(usize),
}

/// Splits a path into its steps; a quoted name is returned as written between the quotes.
pub(crate) fn segments(path: &str) -> Vec<Segment<'_>> {
    let mut segments = Vec::new();
    let mut rest = path;
    while !rest.is_empty() {
        let (segment, after) = if let Some(quoted) = rest.strip_prefix("[\"") {
            let (name, after) = until_quote(quoted);
            (Segment::Member(name), after.strip_prefix(']').unwrap_or(after))
        } else if let Some((index, after)) = rest.strip_prefix('[').and_then(|inside| inside.split_once(']')) {
            (index.parse().map_or(Segment::Member(index), Segment::Element), after)
        } else {
            let name = rest.strip_prefix('.').unwrap_or(rest);
            let end = name.find(['.', '[']).unwrap_or(name.len());
            // A foreign path may begin with any character; every iteration must consume at least one.
            let end = if end == 0 { name.chars().next().map_or(0, char::len_utf8) } else { end };
            (Segment::Member(&name[..end]), &name[end..])
        };
        segments.push(segment);
        rest = after;
    }
    segments
}

/// Splits the text at the closing quote.
fn until_quote(text: &str) -> (&str, &str) {
    let mut escaped = false;
    for (at, c) in text.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return (&text[..at], &text[at + 1..]),
            _ => {}
        }
    }
    (text, "")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn unusual_names_are_quoted_and_truncated() {
        assert_eq!(member("questions", "tone_1-a"), "questions.tone_1-a");
        assert_eq!(member("questions", "a.b"), "questions[\"a.b\"]");
        assert_eq!(member("q", ""), "q[\"\"]");
        assert_eq!(member("q", &"é".repeat(100)).chars().count(), 5 + 64);
        assert_eq!(element("questions", 3), "questions[3]");
    }

    #[test]
    fn segments_splits_path_into_steps() {
        use Segment::{Element, Member};
        assert_eq!(segments("model"), [Member("model")]);
        assert_eq!(
            segments("questions[0].choices[12].value"),
            [Member("questions"), Element(0), Member("choices"), Element(12), Member("value")]
        );
        assert_eq!(segments(r#"questions["a.\"b]"].type"#), [Member("questions"), Member(r#"a.\"b]"#), Member("type")]);
        assert_eq!(segments(""), []);
    }

    proptest! {
        #[test]
        fn segments_terminates_for_any_text(text in ".{0,60}") {
            segments(&text);
        }

        #[test]
        fn segments_inverts_joining(
            first in "[a-z]{1,9}",
            names in prop::collection::vec("[a-zA-Z0-9_-]{1,9}|[ .\\[\\]é]{0,9}", 0..6),
        ) {
            let path = names.iter().fold(first.clone(), |path, name| member(&path, name));
            let expected: Vec<_> = std::iter::once(&first).chain(&names).map(|name| Segment::Member(name)).collect();
            prop_assert_eq!(segments(&path), expected);
        }
    }
}
