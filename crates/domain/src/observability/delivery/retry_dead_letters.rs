//! Retrying dead letters.

use std::sync::Arc;

use crate::audit::{Actor, AuditDraft};
use crate::error::StoreError;
use crate::ids::DestinationId;
use crate::json::Json;
use crate::observability::Outbox;
use crate::system::Clock;

/// A request to retry dead letters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeadLetterRetry {
    /// The requesting actor.
    pub actor: Actor,
    /// The destination whose dead letters are retried; `None` for all.
    pub destination: Option<DestinationId>,
}

impl DeadLetterRetry {
    /// Returns the audit entry for the number of retried dead letters.
    pub fn audited(&self, retried: u64) -> AuditDraft {
        let subject = match self.destination {
            Some(id) => format!("destination {id}"),
            None => "every destination".to_owned(),
        };
        let details = Json::object([("retried_count", retried.to_string().as_str())]);
        AuditDraft::done(&self.actor, "destination.retry", subject, details)
    }
}

/// Makes dead letters due again.
pub struct RetryDeadLetters {
    outbox: Arc<dyn Outbox>,
    clock: Arc<dyn Clock>,
}

impl RetryDeadLetters {
    /// Wires the ports.
    pub fn new(outbox: Arc<dyn Outbox>, clock: Arc<dyn Clock>) -> Self {
        Self { outbox, clock }
    }

    /// Makes the dead letters of one destination (of all with `None`) due now, and returns their number. The
    /// destination may be deleted already.
    ///
    /// # Errors
    /// The store; then nothing is changed.
    pub async fn execute(&self, actor: &Actor, destination: Option<DestinationId>) -> Result<u64, StoreError> {
        let retry = DeadLetterRetry { actor: actor.clone(), destination };
        self.outbox.retry_dead_letters(&retry, self.clock.now()).await
    }
}
