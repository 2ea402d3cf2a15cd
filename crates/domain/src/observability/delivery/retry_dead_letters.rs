//! Delivering once more what was given up.

use std::sync::Arc;

use crate::audit::{Actor, AuditDraft};
use crate::error::StoreError;
use crate::ids::DestinationId;
use crate::json::Json;
use crate::observability::Outbox;
use crate::system::Clock;

/// Which dead letters are to be delivered once more, and who says so.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeadLetterRetry {
    /// Who.
    pub actor: Actor,
    /// Those of this destination, or with `None` all of them.
    pub destination: Option<DestinationId>,
}

impl DeadLetterRetry {
    /// What the audit log says where it concerned so many.
    pub fn audited(&self, retried: u64) -> AuditDraft {
        let subject = match self.destination {
            Some(id) => format!("destination {id}"),
            None => "every destination".to_owned(),
        };
        let details = Json::object([("revived_count", retried.to_string().as_str())]);
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

    /// Makes those of one destination (of every one with `None`) due now, and returns how many. Their destination need
    /// not be there any more.
    ///
    /// # Errors
    /// The store; then nothing is changed.
    pub async fn execute(&self, actor: &Actor, destination: Option<DestinationId>) -> Result<u64, StoreError> {
        let retry = DeadLetterRetry { actor: actor.clone(), destination };
        self.outbox.retry_dead_letters(&retry, self.clock.now()).await
    }
}
