//! Destinations in memory.

use std::sync::Arc;

use async_trait::async_trait;
use chrono::{DateTime, Utc};

use super::memory_store::MemoryDestinations;
use crate::audit::AuditDraft;
use crate::authority::ManagementScope;
use crate::change_feed::ChangeSubject;
use crate::error::StoreError;
use crate::ids::{DestinationId, WorkspaceId};
use crate::observability::{Destination, DestinationInsert, DestinationRepository, Destinations, NamedDestination};

#[async_trait]
impl DestinationRepository for MemoryDestinations {
    async fn insert(
        &self,
        destination: &Destination,
        most: u64,
        audit: &AuditDraft,
    ) -> Result<DestinationInsert, StoreError> {
        let mut state = self.0.begin(audit)?;
        if state.workspace(destination.workspace_id).is_none() {
            return Ok(DestinationInsert::UnknownWorkspace);
        }
        let alike =
            |stored: &&Destination| stored.workspace_id == destination.workspace_id && stored.kind == destination.kind;
        if state.destinations.iter().filter(alike).count() as u64 >= most {
            return Ok(DestinationInsert::TooMany);
        }
        if state.destinations.iter().any(|stored| stored.id == destination.id) {
            return Err(StoreError::Corrupt("a destination of this id is there already".to_owned()));
        }
        state.destinations.push(destination.clone());
        state.changed(self.0.now(), [ChangeSubject::Destinations]);
        state.note(audit, self.0.now());
        Ok(DestinationInsert::Added)
    }

    async fn update(
        &self,
        destination: &Destination,
        seen: Option<DateTime<Utc>>,
        audit: &AuditDraft,
    ) -> Result<bool, StoreError> {
        let mut state = self.0.begin(audit)?;
        let same = |stored: &&mut Destination| stored.id == destination.id && stored.updated_at == seen;
        let Some(stored) = state.destinations.iter_mut().find(same) else { return Ok(false) };
        let Destination { workspace_id, kind, created_at, .. } = *stored;
        *stored = Destination { workspace_id, kind, created_at, ..destination.clone() };
        state.resume(destination.id, self.0.now());
        state.changed(self.0.now(), [ChangeSubject::Destinations]);
        state.note(audit, self.0.now());
        Ok(true)
    }

    async fn resume(&self, id: DestinationId) -> Result<(), StoreError> {
        self.0.state().resume(id, self.0.now());
        Ok(())
    }

    async fn delete(
        &self,
        id: DestinationId,
        seen: Option<DateTime<Utc>>,
        audit: &AuditDraft,
    ) -> Result<bool, StoreError> {
        let mut state = self.0.begin(audit)?;
        let before = state.destinations.len();
        state.destinations.retain(|stored| stored.id != id || stored.updated_at != seen);
        if state.destinations.len() == before {
            return Ok(false);
        }
        state.outbox.retain(|stored| stored.message.destination_id != id);
        state.destination_pauses.remove(&id);
        state.changed(self.0.now(), [ChangeSubject::Destinations]);
        state.note(audit, self.0.now());
        Ok(true)
    }

    async fn find(&self, id: DestinationId) -> Result<Option<Destination>, StoreError> {
        Ok(self.0.state().destinations.iter().find(|stored| stored.id == id).cloned())
    }

    async fn page(
        &self,
        within: &ManagementScope,
        offset: u64,
        limit: u64,
    ) -> Result<(Vec<Destination>, u64), StoreError> {
        let mut found = self.list(None).await?;
        found.retain(|destination| within.contains(destination.workspace_id));
        let total = found.len() as u64;
        let [offset, limit] = [offset, limit].map(|count| usize::try_from(count).unwrap_or(usize::MAX));
        Ok((found.into_iter().skip(offset).take(limit).collect(), total))
    }

    async fn names(&self, workspace_id: Option<WorkspaceId>) -> Result<Vec<NamedDestination>, StoreError> {
        Ok(self.list(workspace_id).await?.iter().map(Destination::named).collect())
    }

    async fn list(&self, workspace_id: Option<WorkspaceId>) -> Result<Vec<Destination>, StoreError> {
        let state = self.0.state();
        let of = |stored: &&Destination| workspace_id.is_none_or(|id| stored.workspace_id == id);
        let mut found: Vec<Destination> = state.destinations.iter().filter(of).cloned().collect();
        found.sort_by_key(|destination| (destination.created_at, destination.id));
        Ok(found)
    }
}

impl Destinations for MemoryDestinations {
    fn for_workspace(&self, workspace_id: WorkspaceId) -> Option<Arc<[Destination]>> {
        let state = self.0.state();
        let own = state.destinations.iter().filter(|stored| stored.workspace_id == workspace_id);
        let own: Vec<Destination> = own.cloned().collect();
        (!own.is_empty()).then(|| own.into())
    }
}
