//! The path of a value in a body. Formatted only for violations, because most requests have none.

use std::fmt;

use crate::decision::InvalidDecision;

/// A path such as `questions.tone.criteria`.
#[derive(Debug, Clone, Copy)]
pub(super) enum Path<'a> {
    /// The first name.
    Root(&'a str),
    /// A member of the value at a path.
    Member(&'a Path<'a>, &'a str),
    /// An element of the value at a path.
    Element(&'a Path<'a>, usize),
}

impl Path<'_> {
    /// Creates a validation error at this path.
    pub(super) fn fault(&self, fault: impl Into<String>) -> InvalidDecision {
        InvalidDecision::new(self.to_string(), fault)
    }
}

impl fmt::Display for Path<'_> {
    /// Truncates and quotes long or unusual names, to keep messages readable.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Root(path) => f.write_str(path),
            Self::Member(parent, name) if is_plain(name) => write!(f, "{parent}.{name}"),
            Self::Member(parent, name) => write!(f, "{parent}[{:?}]", name.chars().take(64).collect::<String>()),
            Self::Element(parent, index) => write!(f, "{parent}[{index}]"),
        }
    }
}

fn is_plain(name: &str) -> bool {
    !name.is_empty() && name.len() <= 64 && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-".contains(&b))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case("tone_2-x", "questions.tone_2-x")]
    #[case("", r#"questions[""]"#)]
    #[case("a.b", r#"questions["a.b"]"#)]
    #[case("é\n\"", r#"questions["é\n\""]"#)]
    fn display_quotes_unusual_names(#[case] name: &str, #[case] expected: &str) {
        assert_eq!(Path::Member(&Path::Root("questions"), name).to_string(), expected);
    }

    #[test]
    fn display_truncates_long_names() {
        let root = Path::Root("questions");
        let [plain, long] = [64, 65].map(|length| "n".repeat(length));
        assert_eq!(Path::Member(&root, &plain).to_string(), format!("questions.{plain}"));
        assert_eq!(Path::Member(&root, &long).to_string(), format!("questions[\"{plain}\"]"));
    }

    #[test]
    fn fault_contains_full_path() {
        let root = Path::Root("questions[0]");
        let criteria = Path::Member(&root, "criteria");
        let fault = Path::Element(&criteria, 3).fault("must be a string");
        assert_eq!(fault.to_string(), "questions[0].criteria[3]: must be a string");
    }
}
