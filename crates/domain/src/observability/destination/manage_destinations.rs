//! The use cases of managing destinations: their ports and shared parts.

use std::collections::HashSet;
use std::sync::Arc;

use super::fields::key_names;
use super::{DestinationError, DestinationFields, InvalidDestination};
use crate::api_key::{ApiKeyRepository, ApiKeyScope, KeyReference};
use crate::authority::Authority;
use crate::edit::Edit;
use crate::ids::{ApiKeyId, WorkspaceId};
use crate::observability::{Delivery, Destination, DestinationRepository, MessageSender};
use crate::system::{Clock, IdGenerator};
use crate::workspace::{WorkspaceRepository, choose_workspace};

/// The use cases of managing destinations, over their ports. Changes and tests need
/// [`crate::authority::Right::Write`].
#[derive(Clone)]
pub struct ManageDestinations {
    /// The destinations.
    pub destinations: Arc<dyn DestinationRepository>,
    /// The workspaces of the destinations.
    pub workspaces: Arc<dyn WorkspaceRepository>,
    /// The keys whose requests may be sent.
    pub keys: Arc<dyn ApiKeyRepository>,
    /// The sender of test deliveries.
    pub sender: Arc<dyn MessageSender>,
    /// The clock of creation and update times.
    pub clock: Arc<dyn Clock>,
    /// The generator of ids.
    pub ids: Arc<dyn IdGenerator>,
}

impl ManageDestinations {
    /// Returns the given workspace, or that of a call that names none.
    pub(super) async fn workspace(
        &self,
        by: &Authority,
        named: Option<WorkspaceId>,
    ) -> Result<WorkspaceId, DestinationError> {
        Ok(choose_workspace(&*self.workspaces, by, named).await?.id)
    }

    /// Sends a test delivery without traces.
    pub(super) async fn send_test(&self, destination: &Destination) -> Result<(), DestinationError> {
        let delivery = Delivery { ids: vec![self.ids.outbox_id()], traces: Vec::new(), is_test: true };
        let sent = self.sender.send(destination, &delivery).await;
        sent.map_err(|failed| DestinationError::TestFailed(failed.reason))
    }

    /// Resolves the given keys of a destination. Each must be a live inference key of its workspace, or already in use
    /// by the destination.
    pub(super) async fn with_keys(
        &self,
        destination: Destination,
        fields: &DestinationFields,
    ) -> Result<Destination, DestinationError> {
        let names = match &fields.api_key_hashes {
            Edit::Keep => return Ok(destination),
            Edit::Clear => return Ok(Destination { api_key_ids: None, ..destination }),
            Edit::Set(given) => key_names(given)?,
        };
        let known = self.keys.identities(&names).await?;
        let mut ids = Vec::with_capacity(names.len());
        for name in &names {
            let id = known.iter().find(|key| key.is(name)).map(|key| key.id);
            let is_kept = |id: &ApiKeyId| destination.api_key_ids.iter().flatten().any(|kept| kept == id);
            ids.push(match id.filter(is_kept) {
                Some(kept) => kept,
                None => self.live_key(name, destination.workspace_id).await?,
            });
        }
        let mut seen = HashSet::new();
        ids.retain(|id| seen.insert(*id));
        Ok(Destination { api_key_ids: Some(ids), ..destination })
    }

    async fn live_key(&self, name: &KeyReference, workspace_id: WorkspaceId) -> Result<ApiKeyId, DestinationError> {
        let found = self.keys.find(name).await?.filter(|key| key.scope == ApiKeyScope::Inference(workspace_id));
        let fault = || format!("has {name}, which is not an active inference key of the workspace");
        Ok(found.ok_or_else(|| InvalidDestination::new("api_key_hashes", fault()))?.id)
    }
}
