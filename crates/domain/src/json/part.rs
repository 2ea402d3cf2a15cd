//! A value inside a JSON text, borrowed from it.

use std::borrow::Cow;
use std::collections::HashSet;
use std::ops::Range;
use std::sync::Arc;

use super::lexer::{Scanner, WrittenName};
use super::{Json, JsonKind};

/// One value of a [`Json`]: the value itself, or one inside it.
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
    /// Returns the JSON text, byte for byte.
    pub(crate) fn text(self) -> &'a str {
        &self.whole[self.start..self.end]
    }

    /// Returns the type of the value.
    pub(crate) fn kind(self) -> JsonKind {
        JsonKind::from_first_byte(self.whole.as_bytes().get(self.start))
    }

    /// Returns true if the value is `null`.
    pub(crate) fn is_null(self) -> bool {
        self.kind() == JsonKind::Null
    }

    /// Returns the content of a string; `None` for other types and for strings with a lone surrogate.
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

    /// Returns a number as a float, for comparisons only. Amounts of money never use it. A number out of range is
    /// infinite.
    pub(crate) fn as_f64(self) -> Option<f64> {
        (self.kind() == JsonKind::Number).then(|| self.text().parse().ok()).flatten()
    }

    /// Returns this value as a [`Json`], which keeps the whole text in memory.
    pub(crate) fn to_json(self) -> Json {
        Json { whole: Arc::clone(self.whole), start: self.start, end: self.end }
    }

    /// Returns the members of an object in order, with duplicates; `None` for other types and for a name with a lone
    /// surrogate.
    pub(crate) fn members(self) -> Option<Vec<Member<'a>>> {
        if self.kind() != JsonKind::Object {
            return None;
        }
        let text = self.text();
        let mut scanner = Scanner::inside(text);
        let mut members = Vec::new();
        while let Some(name) = scanner.next_name() {
            members.push(Member { name: name_of(text, name)?, value: self.part(scanner.next_value()?) });
        }
        Some(members)
    }

    /// Returns true if the value is an object with a member of one of these names. Needs no memory, unlike a list of the
    /// members.
    pub(crate) fn has_member(self, names: &[&str]) -> bool {
        let text = self.text();
        let mut scanner = Scanner::inside(text);
        self.kind() == JsonKind::Object
            && std::iter::from_fn(|| {
                let name = scanner.next_name()?;
                scanner.next_value()?;
                name_of(text, name)
            })
            .any(|name| names.contains(&&*name))
    }

    /// Iterates over the elements of an array, without a list of them; there are none in other types.
    pub(crate) fn iter_elements(self) -> impl Iterator<Item = Self> {
        let mut scanner = Scanner::inside(self.text());
        let is_array = self.kind() == JsonKind::Array;
        std::iter::from_fn(move || scanner.next_value().filter(|_| is_array).map(|element| self.part(element)))
    }

    /// Returns the elements of an array; `None` for other types.
    pub(crate) fn elements(self) -> Option<Vec<Self>> {
        if self.kind() != JsonKind::Array {
            return None;
        }
        let mut scanner = Scanner::inside(self.text());
        let mut elements = Vec::new();
        while let Some(element) = scanner.next_value() {
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

/// Up to this number of members, comparing all names is faster than a set.
const MAX_PAIRWISE: usize = 16;

/// Returns the index of the first member whose name an earlier member has.
pub(crate) fn first_duplicate(members: &[Member<'_>]) -> Option<usize> {
    if members.len() > MAX_PAIRWISE {
        let mut names = HashSet::with_capacity(members.len());
        return members.iter().position(|member| !names.insert(&*member.name));
    }
    (1..members.len()).find(|&place| members[..place].iter().any(|before| before.name == members[place].name))
}
