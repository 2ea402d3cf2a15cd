//! What managing destinations needs.

use std::sync::Arc;

use super::{DestinationError, InvalidDestination};
use crate::api_key::{ApiKeyRepository, ApiKeyScope};
use crate::ids::{DestinationId, WorkspaceId};
use crate::observability::{Delivery, Destination, DestinationRepository, MessageSender};
use crate::system::{Clock, IdGenerator};
use crate::workspace::WorkspaceRepository;

/// The ports of the use cases.
#[derive(Clone)]
pub struct DestinationPorts {
    /// Where they are kept.
    pub destinations: Arc<dyn DestinationRepository>,
    /// The workspaces that they belong to.
    pub workspaces: Arc<dyn WorkspaceRepository>,
    /// The keys that they may be for.
    pub keys: Arc<dyn ApiKeyRepository>,
    /// What tests them.
    pub sender: Arc<dyn MessageSender>,
    /// When they are made and changed.
    pub clock: Arc<dyn Clock>,
    /// Their ids.
    pub ids: Arc<dyn IdGenerator>,
}

impl DestinationPorts {
    /// The destination of an id as it was given.
    pub(super) async fn find(&self, id: &str) -> Result<Destination, DestinationError> {
        let id: DestinationId = id.parse().map_err(|_| DestinationError::NotFound)?;
        self.destinations.find(id).await?.ok_or(DestinationError::NotFound)
    }

    /// The workspace that is named, else the default one.
    pub(super) async fn workspace(&self, named: Option<WorkspaceId>) -> Result<WorkspaceId, DestinationError> {
        let found = match named {
            Some(id) => self.workspaces.find(id).await?,
            None => self.workspaces.list().await?.into_iter().find(|workspace| workspace.is_default),
        };
        found.map(|workspace| workspace.id).ok_or(DestinationError::UnknownWorkspace)
    }

    /// Sends a delivery without a trace.
    pub(super) async fn test(&self, destination: &Destination) -> Result<(), DestinationError> {
        let delivery = Delivery { ids: vec![self.ids.outbox_id()], traces: Vec::new(), is_test: true };
        let sent = self.sender.send(destination, &delivery).await;
        sent.map_err(|failed| DestinationError::Refused(failed.reason))
    }

    /// Every key that it is for must be a live inference key of its workspace.
    pub(super) async fn check_keys(&self, destination: &Destination) -> Result<(), DestinationError> {
        for hash in destination.api_key_hashes.iter().flatten() {
            let key = self.keys.find(hash).await?;
            if key.is_none_or(|key| key.scope != ApiKeyScope::Inference(destination.workspace_id)) {
                let fault = format!("has {hash}, which is no live inference key of the workspace");
                return Err(InvalidDestination::new("api_key_hashes", fault).into());
            }
        }
        Ok(())
    }
}
