//! Reading destinations.

use std::sync::Arc;

use super::DestinationError;
use crate::ids::{DestinationId, WorkspaceId};
use crate::observability::{Destination, DestinationRepository};

/// Reads one destination.
pub struct GetDestination {
    destinations: Arc<dyn DestinationRepository>,
}

impl GetDestination {
    /// Wires the port.
    pub fn new(destinations: Arc<dyn DestinationRepository>) -> Self {
        Self { destinations }
    }

    /// The destination of that id.
    ///
    /// # Errors
    /// No such destination; the store.
    pub async fn execute(&self, id: &str) -> Result<Destination, DestinationError> {
        let id: DestinationId = id.parse().map_err(|_| DestinationError::NotFound)?;
        self.destinations.find(id).await?.ok_or(DestinationError::NotFound)
    }
}

/// Lists destinations.
pub struct ListDestinations {
    destinations: Arc<dyn DestinationRepository>,
}

impl ListDestinations {
    /// Wires the port.
    pub fn new(destinations: Arc<dyn DestinationRepository>) -> Self {
        Self { destinations }
    }

    /// Those of one workspace, or with `None` all of them; oldest first.
    ///
    /// # Errors
    /// The store.
    pub async fn execute(&self, workspace_id: Option<WorkspaceId>) -> Result<Vec<Destination>, DestinationError> {
        Ok(self.destinations.list(workspace_id).await?)
    }
}
