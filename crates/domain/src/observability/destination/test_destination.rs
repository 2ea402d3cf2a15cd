//! Testing a destination.

use super::{DestinationError, DestinationPorts};
use crate::observability::Destination;

/// Sends a test delivery to a destination.
pub struct TestDestination {
    ports: DestinationPorts,
}

impl TestDestination {
    /// Wires the ports.
    pub fn new(ports: DestinationPorts) -> Self {
        Self { ports }
    }

    /// Sends a delivery without spans, also to a disabled destination.
    ///
    /// # Errors
    /// A failed delivery; an unknown destination; a store failure.
    pub async fn execute(&self, id: &str) -> Result<Destination, DestinationError> {
        let destination = self.ports.find(id).await?;
        self.ports.test(&destination).await?;
        Ok(destination)
    }
}
