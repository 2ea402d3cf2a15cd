//! Deleting a destination.

use super::fields::audited;
use super::{DestinationError, DestinationPorts};
use crate::audit::Actor;

/// Deletes a destination.
pub struct DeleteDestination {
    ports: DestinationPorts,
}

impl DeleteDestination {
    /// Wires the ports.
    pub fn new(ports: DestinationPorts) -> Self {
        Self { ports }
    }

    /// Deletes the destination and its pending messages.
    ///
    /// # Errors
    /// An unknown destination; a store failure.
    pub async fn execute(&self, actor: &Actor, id: &str) -> Result<(), DestinationError> {
        let before = self.ports.find(id).await?;
        let audit = audited(actor, "destination.delete", before.id, Some(&before), None);
        if self.ports.destinations.delete(before.id, &audit).await? { Ok(()) } else { Err(DestinationError::NotFound) }
    }
}
