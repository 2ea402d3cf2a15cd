//! The port that reports completed requests to destinations.

use crate::ids::WorkspaceId;
use crate::json::Json;
use crate::question::ProviderInput;
use crate::usage::RequestLabels;
use crate::usage::{OutboxMessage, UsageRecord};

/// The request and response that destinations may receive.
#[derive(Debug, Clone, Copy)]
pub struct TraceContent<'a> {
    /// The input as it was sent, after redaction.
    pub provider_input: &'a ProviderInput,
    /// The answers in canonical form, with the aliases of redacted names. `None` without answers.
    pub answers: Option<&'a Json>,
    /// The labels of the request after content filters; `None` if they equal those of the record.
    pub redacted_labels: Option<&'a RequestLabels>,
}

impl TraceContent<'_> {
    /// Returns the labels that a destination may receive.
    pub fn labels(&self, record: &UsageRecord) -> RequestLabels {
        self.redacted_labels.cloned().unwrap_or_else(|| RequestLabels {
            session_id: record.session_id.clone(),
            trace: record.trace.clone(),
            user: record.user.clone(),
        })
    }
}

/// Creates the messages for the destinations of a workspace.
///
/// # Contract
/// - Called on every request, before the response is sent: it MUST do no I/O and MUST NOT wait. It SHOULD take almost
///   no time without destinations.
/// - It cannot fail: a request never fails because of its messages.
#[cfg_attr(feature = "mock", mockall::automock)]
#[expect(clippy::elidable_lifetime_names, reason = "mockall needs the lifetime's name")]
pub trait Broadcast: Send + Sync {
    /// Returns one message for each destination that receives this request. `record` will be charged next.
    fn messages<'a>(&self, record: &UsageRecord, exchange: &TraceContent<'a>) -> Vec<OutboxMessage>;

    /// Returns true if a destination may receive `session_id`, `user` and `trace` of requests of this workspace.
    fn takes_labels(&self, workspace_id: WorkspaceId) -> bool;
}

/// Creates no messages, for embedding and for tests.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoBroadcast;

impl Broadcast for NoBroadcast {
    fn messages(&self, _: &UsageRecord, _: &TraceContent<'_>) -> Vec<OutboxMessage> {
        Vec::new()
    }

    fn takes_labels(&self, _: WorkspaceId) -> bool {
        false
    }
}
