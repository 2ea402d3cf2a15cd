//! Reading destinations.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use super::DestinationError;
use crate::api_key::{ApiKeyRepository, KeyReference};
use crate::ids::{ApiKeyId, DestinationId, WorkspaceId};
use crate::observability::{Destination, DestinationRepository};
use crate::secret::ApiKeyHash;

/// Reads one destination.
pub struct GetDestination {
    destinations: Arc<dyn DestinationRepository>,
}

impl GetDestination {
    /// Wires the port.
    pub fn new(destinations: Arc<dyn DestinationRepository>) -> Self {
        Self { destinations }
    }

    /// Returns the destination with this id.
    ///
    /// # Errors
    /// An unknown destination; a store failure.
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

    /// Returns the destinations of one workspace, or with `None` of all workspaces; oldest first.
    ///
    /// # Errors
    /// A store failure.
    pub async fn execute(&self, workspace_id: Option<WorkspaceId>) -> Result<Vec<Destination>, DestinationError> {
        Ok(self.destinations.list(workspace_id).await?)
    }
}

/// Finds the hashes of the keys of destinations.
pub struct FindDestinationKeys {
    keys: Arc<dyn ApiKeyRepository>,
}

impl FindDestinationKeys {
    /// Wires the port.
    pub fn new(keys: Arc<dyn ApiKeyRepository>) -> Self {
        Self { keys }
    }

    /// Returns the current hash of each key, deleted keys included.
    ///
    /// # Errors
    /// A store failure.
    pub async fn execute(
        &self,
        destinations: &[Destination],
    ) -> Result<HashMap<ApiKeyId, ApiKeyHash>, DestinationError> {
        let ids: BTreeSet<ApiKeyId> =
            destinations.iter().flat_map(|one| one.api_key_ids.iter().flatten().copied()).collect();
        if ids.is_empty() {
            return Ok(HashMap::new());
        }
        let names: Vec<KeyReference> = ids.into_iter().map(KeyReference::Id).collect();
        let found = self.keys.identities(&names).await?;
        Ok(found.into_iter().map(|key| (key.id, key.hash)).collect())
    }
}
