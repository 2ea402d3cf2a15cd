//! The members of one request object, with their paths for errors.

use std::borrow::Cow;
use std::collections::HashSet;

use domain::decision::InvalidDecision;
use domain::json::{Json, JsonKind};

use super::path;

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
        path::member(&self.path, name)
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
