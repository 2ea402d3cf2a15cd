//! What a settled request is told to others of.

use crate::ids::WorkspaceId;
use crate::json::Json;
use crate::question::ProviderInput;
use crate::usage::RequestLabels;
use crate::usage::{OutboxMessage, UsageRecord};

/// What was asked and answered, for destinations that may know.
#[derive(Debug, Clone, Copy)]
pub struct Exchange<'a> {
    /// What was asked, as it was sent: redacted where a filter redacts.
    pub provider_input: &'a ProviderInput,
    /// The answers in canonical form, as they came to what was sent: where a name was redacted, under its alias. `None`
    /// where there are none.
    pub answers: Option<&'a Json>,
    /// The labels of the request after content filters; `None` where they are those of the record.
    pub redacted_labels: Option<&'a RequestLabels>,
}

impl Exchange<'_> {
    /// The labels of a record's request that a destination may see.
    pub fn labels(&self, record: &UsageRecord) -> RequestLabels {
        self.redacted_labels.cloned().unwrap_or_else(|| RequestLabels {
            session_id: record.session_id.clone(),
            trace: record.trace.clone(),
            user: record.user.clone(),
        })
    }
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

    /// Returns true if a destination may receive `session_id`, `user` and `trace` of requests of this workspace.
    fn takes_labels(&self, workspace_id: WorkspaceId) -> bool;
}

/// Tells nobody: for embedding and for tests.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoBroadcast;

impl Broadcast for NoBroadcast {
    fn messages(&self, _: &UsageRecord, _: &Exchange<'_>) -> Vec<OutboxMessage> {
        Vec::new()
    }

    fn takes_labels(&self, _: WorkspaceId) -> bool {
        false
    }
}
