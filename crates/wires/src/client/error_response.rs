//! The content of an error response, independent of the wire format.

use std::collections::BTreeMap;
use std::time::Duration;

use domain::money::Usd;
use serde_json::{Map, Value};

use super::object::ObjectWriter;

/// The location of an error in a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ErrorLocation {
    /// The body as a whole.
    Body,
    /// A path in the body, such as `questions.tone.criteria`.
    Member(String),
    /// A header.
    Header(&'static str),
}

/// The content of an error response, from which each wire writes its body.
#[derive(Debug, Clone)]
pub struct ErrorResponse<'a> {
    /// The HTTP status.
    pub status: u16,
    /// The public message.
    pub message: &'a str,
    /// The location of the error, if it lies in the request.
    pub location: Option<&'a ErrorLocation>,
    /// Machine-readable details.
    pub metadata: &'a Map<String, Value>,
    /// The USD amounts of the metadata, written without a float.
    pub amounts: &'a [(&'static str, Usd)],
    /// The owner of the caller's workspace, if set.
    pub user_id: Option<&'a str>,
    /// The name and value of the service metadata member, if the client asked for it.
    pub service_metadata: Option<(&'static str, &'a Value)>,
    /// The delay before a retry.
    pub retry_after: Option<Duration>,
}

impl ErrorResponse<'_> {
    /// Returns the message without its leading path, for formats with a separate path member.
    pub(crate) fn fault(&self) -> &str {
        match self.location {
            Some(ErrorLocation::Member(path)) => self
                .message
                .strip_prefix(path.as_str())
                .and_then(|rest| rest.strip_prefix(": "))
                .unwrap_or(self.message),
            _ => self.message,
        }
    }

    /// Returns the path of the error in the body, if it has one.
    pub(crate) fn member(&self) -> Option<&str> {
        match self.location {
            Some(ErrorLocation::Member(path)) => Some(path),
            _ => None,
        }
    }

    /// Returns the metadata members by name, as JSON.
    pub(crate) fn metadata_members(&self) -> BTreeMap<&str, String> {
        let members = self.metadata.iter().map(|(name, value)| (name.as_str(), value.to_string()));
        members.chain(self.amounts.iter().map(|(name, amount)| (*name, amount.to_string()))).collect()
    }

    /// Returns the metadata as JSON.
    pub fn metadata_json(&self) -> String {
        let members = self.metadata_members();
        members.iter().fold(ObjectWriter::new(), |object, (name, json)| object.json(name, json)).end()
    }
}
