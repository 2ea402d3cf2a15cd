//! Reading destinations.

use std::collections::{BTreeSet, HashMap};

use super::{DestinationError, DestinationFields, ManageDestinations};
use crate::api_key::{ApiKeyRepository, KeyReference};
use crate::authority::Authority;
use crate::edit::Edit;
use crate::ids::{ApiKeyId, DestinationId, WorkspaceId};
use crate::naming::{NameError, only_match};
use crate::observability::{Destination, NamedDestination};
use crate::secret::ApiKeyHash;

impl ManageDestinations {
    /// Returns the destination with this id, or with this unique name.
    ///
    /// # Errors
    /// No destination or several ones have the name; a store failure.
    pub async fn get(&self, by: &Authority, name: &str) -> Result<Destination, DestinationError> {
        let id = match name.parse() {
            Ok(id) => id,
            Err(_) => self.named(by, name).await?.id,
        };
        let found = self.destinations.find(id).await?.filter(|one| by.sees(one.workspace_id));
        Ok(found.ok_or(NameError::Unknown)?)
    }

    /// Returns the destination with this id, or with this unique name, without its settings. A workspace has few
    /// destinations, so a name is looked up in the list of all.
    ///
    /// # Errors
    /// As [`Self::get`].
    pub(super) async fn named(&self, by: &Authority, name: &str) -> Result<NamedDestination, DestinationError> {
        let id = name.parse::<DestinationId>().ok();
        let mut found = self.destinations.names(None).await?;
        found.retain(|one| by.sees(one.workspace_id) && id.map_or(one.name == name, |id| one.id == id));
        Ok(only_match(found, |one| one.id.to_string())?)
    }

    /// Returns a page of the destinations of one workspace, or with `None` of all that the caller sees, oldest first, and
    /// their number on all pages.
    ///
    /// # Errors
    /// A workspace that the caller does not see; a store failure.
    pub async fn list(
        &self,
        by: &Authority,
        workspace_id: Option<WorkspaceId>,
        offset: u64,
        limit: u64,
    ) -> Result<(Vec<Destination>, u64), DestinationError> {
        let within = by.list_scope(workspace_id).ok_or(NameError::Unknown)?;
        Ok(self.destinations.page(&within, offset, limit).await?)
    }

    /// Returns the current hash of each key that the fields name; malformed and unknown names have none.
    ///
    /// # Errors
    /// A store failure.
    pub async fn named_key_hashes(
        &self,
        fields: &DestinationFields,
    ) -> Result<HashMap<ApiKeyId, ApiKeyHash>, DestinationError> {
        let Edit::Set(given) = &fields.api_key_hashes else { return Ok(HashMap::new()) };
        let names: Vec<KeyReference> = given.iter().filter_map(|name| name.parse().ok()).collect();
        if names.is_empty() {
            return Ok(HashMap::new());
        }
        let found = self.keys.identities(&names).await?;
        Ok(found.into_iter().map(|key| (key.id, key.hash)).collect())
    }
}

/// Returns the current hash of each key that the destinations name, deleted keys included.
///
/// # Errors
/// A store failure.
pub async fn find_key_hashes(
    keys: &dyn ApiKeyRepository,
    destinations: &[Destination],
) -> Result<HashMap<ApiKeyId, ApiKeyHash>, DestinationError> {
    let ids: BTreeSet<ApiKeyId> =
        destinations.iter().flat_map(|one| one.api_key_ids.iter().flatten().copied()).collect();
    if ids.is_empty() {
        return Ok(HashMap::new());
    }
    let names: Vec<KeyReference> = ids.into_iter().map(KeyReference::Id).collect();
    let found = keys.identities(&names).await?;
    Ok(found.into_iter().map(|key| (key.id, key.hash)).collect())
}
