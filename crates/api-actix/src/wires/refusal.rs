//! A failure on its way to a client, before it has the form that the client reads.

use std::collections::BTreeMap;
use std::time::Duration;

use domain::money::Usd;
use serde_json::{Map, Value};

use super::object::Object;

/// Where in a request a fault lies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// In the body as a whole.
    Body,
    /// At a path in the body, such as `questions.tone.criteria`.
    Member(String),
    /// In a header.
    Header(&'static str),
}

/// What every form of failure is written from.
#[derive(Debug, Clone)]
pub struct Refusal<'a> {
    /// The HTTP status.
    pub status: u16,
    /// What may be shown.
    pub message: &'a str,
    /// Where the fault lies, where it lies in the request.
    pub place: Option<&'a Place>,
    /// Details for programs.
    pub metadata: &'a Map<String, Value>,
    /// Amounts of USD among them, which no float may touch.
    pub amounts: &'a [(&'static str, Usd)],
    /// The owner of the caller's workspace, where one is set.
    pub user_id: Option<&'a str>,
    /// What is told of the handling to those who ask for it, and the member that it is told in.
    pub told: Option<(&'static str, &'a Value)>,
    /// How long to wait before asking again.
    pub retry_after: Option<Duration>,
}

impl Refusal<'_> {
    /// The message without the path that it begins with, for forms that tell the path by itself.
    pub(super) fn fault(&self) -> &str {
        match self.place {
            Some(Place::Member(path)) => self
                .message
                .strip_prefix(path.as_str())
                .and_then(|rest| rest.strip_prefix(": "))
                .unwrap_or(self.message),
            _ => self.message,
        }
    }

    /// The path of the fault in the body, where it has one.
    pub(super) fn member(&self) -> Option<&str> {
        match self.place {
            Some(Place::Member(path)) => Some(path),
            _ => None,
        }
    }

    /// The members of the metadata, each as JSON, by their names.
    pub(super) fn metadata_members(&self) -> BTreeMap<&str, String> {
        let members = self.metadata.iter().map(|(name, value)| (name.as_str(), value.to_string()));
        members.chain(self.amounts.iter().map(|(name, amount)| (*name, amount.to_string()))).collect()
    }

    /// The metadata as JSON.
    pub(crate) fn metadata_json(&self) -> String {
        let members = self.metadata_members();
        members.iter().fold(Object::new(), |object, (name, json)| object.json(name, json)).end()
    }
}
