//! Calling a receiver for a test.

use super::{DestinationError, DestinationPorts};
use crate::observability::Destination;

/// Calls the receiver of a destination for a test.
pub struct TestDestination {
    ports: DestinationPorts,
}

impl TestDestination {
    /// Wires the ports.
    pub fn new(ports: DestinationPorts) -> Self {
        Self { ports }
    }

    /// Sends a body without a span, enabled or not.
    ///
    /// # Errors
    /// A receiver that refuses it; no such destination; the store.
    pub async fn execute(&self, id: &str) -> Result<Destination, DestinationError> {
        let destination = self.ports.find(id).await?;
        self.ports.test(&destination).await?;
        Ok(destination)
    }
}
