//! The members of one request object, with their paths for errors: `questions.tone.criteria[2]`,
//! `questions["odd name"].type`.

use std::borrow::Cow;
use std::collections::HashSet;

use domain::decision::InvalidDecision;
use domain::json::{Json, JsonKind};

/// The most members of an object that are listed. A list of many small members takes many times their memory; they are
/// searched for in the text.
const MAX_LISTED: usize = 32;

/// The members of an object. Null counts as absent.
pub(crate) struct Fields {
    path: String,
    json: Json,
    /// All members, if there are few.
    listed: Option<Vec<(String, Json)>>,
}

impl Fields {
    /// Reads the members of the object at `path`.
    pub(crate) fn new(json: &Json, path: impl Into<String>) -> Result<Self, InvalidDecision> {
        let path = path.into();
        if json.kind() != JsonKind::Object {
            return Err(InvalidDecision::new(path, format!("must be an object, not {}", json.kind().with_article())));
        }
        let first: Vec<_> =
            members_of(json).map(|(name, json)| (name.into_owned(), json)).take(MAX_LISTED + 1).collect();
        let listed = (first.len() <= MAX_LISTED).then_some(first);
        Ok(Self { path, json: json.clone(), listed })
    }

    /// Returns the path of the object.
    pub(crate) fn path(&self) -> &str {
        &self.path
    }

    /// Returns the path of a member.
    pub(crate) fn member_path(&self, name: &str) -> String {
        member_path(&self.path, name)
    }

    /// Creates the error of a member.
    pub(crate) fn fault(&self, name: &str, fault: impl Into<String>) -> InvalidDecision {
        InvalidDecision::new(self.member_path(name), fault)
    }

    /// Returns a member. A duplicate member is rejected because it is ambiguous.
    pub(crate) fn get(&self, name: &str) -> Result<Option<Json>, InvalidDecision> {
        let found: Vec<Json> = match &self.listed {
            Some(listed) => listed.iter().filter(|(member, _)| member == name).map(|(_, json)| json.clone()).collect(),
            None => members_of(&self.json).filter(|(member, _)| member == name).map(|(_, json)| json).take(2).collect(),
        };
        match <[Json; 1]>::try_from(found) {
            Ok([json]) => Ok(Some(json).filter(|json| json.kind() != JsonKind::Null)),
            Err(found) if found.is_empty() => Ok(None),
            Err(_) => Err(self.fault(name, DUPLICATE)),
        }
    }

    pub(crate) fn required(&self, name: &str) -> Result<Json, InvalidDecision> {
        self.get(name)?.ok_or_else(|| self.fault(name, "is required"))
    }

    /// Returns an optional string member.
    pub(crate) fn text(&self, name: &str) -> Result<Option<String>, InvalidDecision> {
        self.get(name)?.map(|json| json.as_string().ok_or_else(|| self.fault(name, "must be a string"))).transpose()
    }

    pub(crate) fn required_text(&self, name: &str) -> Result<String, InvalidDecision> {
        self.text(name)?.ok_or_else(|| self.fault(name, "is required"))
    }

    /// Returns an optional string member as JSON.
    pub(crate) fn text_json(&self, name: &str) -> Result<Option<Json>, InvalidDecision> {
        let json = self.get(name)?;
        match json {
            Some(json) if json.kind() != JsonKind::String => Err(self.fault(name, "must be a string")),
            other => Ok(other),
        }
    }

    /// Returns the elements of a required array of `least` to `most` elements; `things` names them in the error.
    pub(crate) fn elements(
        &self,
        name: &str,
        least: usize,
        most: usize,
        things: &str,
    ) -> Result<Vec<Json>, InvalidDecision> {
        let array = self.required(name)?;
        let elements = array.iter_elements();
        let elements = elements.ok_or_else(|| self.fault(name, format!("must be an array of {things}")))?;
        check_count(elements.count(), least, most, things).map_err(|fault| self.fault(name, fault))?;
        Ok(array.elements().unwrap_or_default())
    }

    /// Returns the number of members.
    pub(crate) fn count(&self) -> usize {
        self.listed.as_ref().map_or_else(|| members_of(&self.json).count(), Vec::len)
    }

    /// Returns all members; duplicates are rejected.
    pub(crate) fn members(&self) -> Result<Vec<(String, Json)>, InvalidDecision> {
        let list = || members_of(&self.json).map(|(name, json)| (name.into_owned(), json)).collect();
        let members: Vec<_> = self.listed.clone().unwrap_or_else(list);
        let mut names = HashSet::new();
        match members.iter().find(|(name, _)| !names.insert(name)) {
            Some((name, _)) => Err(self.fault(name, DUPLICATE)),
            None => Ok(members),
        }
    }
}

fn members_of(json: &Json) -> impl Iterator<Item = (Cow<'_, str>, Json)> {
    json.iter_members().into_iter().flatten().flatten()
}

const DUPLICATE: &str = "is in the object more than once";

/// Checks that the count is within its bounds.
pub(crate) fn check_count(count: usize, least: usize, most: usize, things: &str) -> Result<(), String> {
    if (least..=most).contains(&count) {
        Ok(())
    } else {
        Err(format!("must have {least} to {most} {things}, not {count}"))
    }
}

/// Returns the path of a member. A long or unusual name is truncated and quoted, so that the error message stays
/// readable.
pub(crate) fn member_path(parent: &str, name: &str) -> String {
    let plain =
        !name.is_empty() && name.len() <= 64 && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-".contains(&b));
    if plain {
        format!("{parent}.{name}")
    } else {
        format!("{parent}[{:?}]", name.chars().take(64).collect::<String>())
    }
}

/// Returns the path of an array element.
pub(crate) fn element_path(parent: &str, index: usize) -> String {
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
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn unusual_names_are_quoted_and_truncated() {
        assert_eq!(member_path("questions", "tone_1-a"), "questions.tone_1-a");
        assert_eq!(member_path("questions", "a.b"), "questions[\"a.b\"]");
        assert_eq!(member_path("q", ""), "q[\"\"]");
        assert_eq!(member_path("q", &"é".repeat(100)).chars().count(), 5 + 64);
        assert_eq!(element_path("questions", 3), "questions[3]");
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
            let path = names.iter().fold(first.clone(), |path, name| member_path(&path, name));
            let expected: Vec<_> = std::iter::once(&first).chain(&names).map(|name| Segment::Member(name)).collect();
            prop_assert_eq!(segments(&path), expected);
        }
    }
}
