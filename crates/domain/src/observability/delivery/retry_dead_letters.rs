//! Retrying dead letters.

use std::sync::Arc;

use crate::audit::Actor;
use crate::error::StoreError;
use crate::ids::DestinationId;
use crate::observability::{DeadLetterRetry, Outbox};
use crate::system::Clock;

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
