//! The catalogue's rows in memory.

use async_trait::async_trait;

use super::memory_store::MemoryModels;
use crate::audit::AuditDraft;
use crate::change_feed::ChangeSubject;
use crate::error::StoreError;
use crate::model::{CatalogueChange, Model, ModelRepository};

#[async_trait]
impl ModelRepository for MemoryModels {
    async fn list(&self) -> Result<Vec<Model>, StoreError> {
        Ok(self.0.state().models.clone())
    }

    async fn version(&self) -> Result<u64, StoreError> {
        Ok(self.0.state().changes.catalogue)
    }

    async fn apply(
        &self,
        change: &CatalogueChange,
        expected_version: u64,
        audit: &AuditDraft,
    ) -> Result<bool, StoreError> {
        let mut state = self.0.begin(audit)?;
        if state.changes.catalogue != expected_version {
            return Ok(false);
        }
        state.models.retain(|row| !change.remove.contains(&row.id));
        for row in &change.upsert {
            match state.models.iter_mut().find(|stored| stored.id == row.id) {
                Some(stored) => stored.clone_from(row),
                None => state.models.push(row.clone()),
            }
        }
        state.changed(self.0.now(), [ChangeSubject::Catalogue]);
        state.note(audit, self.0.now());
        Ok(true)
    }
}
