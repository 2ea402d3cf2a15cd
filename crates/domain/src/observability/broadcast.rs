//! What a settled request is told to others of.

use super::OutboxMessage;
use crate::decision::Inquiry;
use crate::json::Json;
use crate::usage::UsageRecord;

/// What was asked and answered, for destinations that may know.
#[derive(Debug, Clone, Copy)]
pub struct Exchange<'a> {
    /// What was asked, as it was sent: redacted where a filter redacts.
    pub inquiry: &'a Inquiry,
    /// The answers in canonical form, as they came to what was sent: where a name was redacted, under its alias. `None`
    /// where there are none.
    pub answers: Option<&'a Json>,
}

/// Writes the messages that tell the destinations of a workspace of a request.
///
/// # Contract
/// - Called on every request between the provider's answer and the caller's: it MUST do no I/O and MUST NOT wait, and
///   it costs next to nothing where nobody listens.
/// - It cannot fail: a request is never refused because it cannot be told of.
#[cfg_attr(feature = "mock", mockall::automock)]
#[expect(clippy::elidable_lifetime_names, reason = "mockall needs the lifetime's name")]
pub trait Broadcast: Send + Sync {
    /// One message a destination that hears of this request. The record is the one that is about to be charged.
    fn messages<'a>(&self, record: &UsageRecord, exchange: &Exchange<'a>) -> Vec<OutboxMessage>;
}

/// Tells nobody: for embedding and for tests.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoBroadcast;

impl Broadcast for NoBroadcast {
    fn messages(&self, _: &UsageRecord, _: &Exchange<'_>) -> Vec<OutboxMessage> {
        Vec::new()
    }
}
