//! A value inside a JSON text, borrowed from it.

use std::borrow::Cow;
use std::collections::HashSet;
use std::ops::Range;
use std::sync::Arc;

use super::scan::{Scanner, WrittenName};
use super::{Json, JsonKind};

/// One value of a [`Json`]: that itself, or one inside it.
#[derive(Clone, Copy)]
pub(crate) struct JsonPart<'a> {
    pub(super) whole: &'a Arc<str>,
    pub(super) start: usize,
    pub(super) end: usize,
}

/// A member of an object.
#[derive(Clone)]
pub(crate) struct Member<'a> {
    pub(crate) name: Cow<'a, str>,
    pub(crate) value: JsonPart<'a>,
}

impl<'a> JsonPart<'a> {
    /// The JSON text, byte for byte.
    pub(crate) fn text(self) -> &'a str {
        &self.whole[self.start..self.end]
    }

    /// What kind of value this is.
    pub(crate) fn kind(self) -> JsonKind {
        JsonKind::of(self.whole.as_bytes().get(self.start))
    }

    /// Whether this is `null`.
    pub(crate) fn is_null(self) -> bool {
        self.kind() == JsonKind::Null
    }

    /// The string inside, where this is a string and one of text: escapes can also make half a surrogate pair.
    pub(crate) fn as_str(self) -> Option<Cow<'a, str>> {
        if self.kind() != JsonKind::String {
            return None;
        }
        let text = self.text();
        match text.get(1..text.len() - 1) {
            Some(content) if !content.contains('\\') => Some(Cow::Borrowed(content)),
            _ => serde_json::from_str(text).ok().map(Cow::Owned),
        }
    }

    /// The number inside as a float, for comparing only; money never goes through here. Infinite where it is beyond
    /// all floats.
    pub(crate) fn as_f64(self) -> Option<f64> {
        (self.kind() == JsonKind::Number).then(|| self.text().parse().ok()).flatten()
    }

    /// This value by itself. It shares the text that it is a part of, and keeps all of it.
    pub(crate) fn to_json(self) -> Json {
        Json { whole: Arc::clone(self.whole), start: self.start, end: self.end }
    }

    /// The members of an object in their order, duplicates included; `None` where this is no object, or one with a
    /// name that is no text.
    pub(crate) fn members(self) -> Option<Vec<Member<'a>>> {
        if self.kind() != JsonKind::Object {
            return None;
        }
        let text = self.text();
        let mut scanner = Scanner::inside(text);
        let mut members = Vec::new();
        while let Some(name) = scanner.name() {
            members.push(Member { name: name_of(text, name)?, value: self.part(scanner.value()?) });
        }
        Some(members)
    }

    /// The elements of an array; `None` where this is no array.
    pub(crate) fn elements(self) -> Option<Vec<Self>> {
        if self.kind() != JsonKind::Array {
            return None;
        }
        let mut scanner = Scanner::inside(self.text());
        let mut elements = Vec::new();
        while let Some(element) = scanner.value() {
            elements.push(self.part(element));
        }
        Some(elements)
    }

    fn part(self, range: Range<usize>) -> Self {
        Self { whole: self.whole, start: self.start + range.start, end: self.start + range.end }
    }
}

fn name_of(text: &str, WrittenName { content, is_escaped }: WrittenName) -> Option<Cow<'_, str>> {
    if is_escaped {
        serde_json::from_str(&text[content.start - 1..=content.end]).ok().map(Cow::Owned)
    } else {
        Some(Cow::Borrowed(&text[content]))
    }
}

/// Most members whose names are compared with each other: among so few that is faster than a set.
const FEW: usize = 16;

/// The place of the first member whose name another one before it has.
pub(crate) fn first_repeated(members: &[Member<'_>]) -> Option<usize> {
    if members.len() > FEW {
        let mut names = HashSet::with_capacity(members.len());
        return members.iter().position(|member| !names.insert(&*member.name));
    }
    (1..members.len()).find(|&place| members[..place].iter().any(|before| before.name == members[place].name))
}
