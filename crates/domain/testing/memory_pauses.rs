//! Paused providers in memory.

use async_trait::async_trait;

use super::memory_store::MemoryProviderPauses;
use crate::audit::AuditDraft;
use crate::change_feed::ChangeSubject;
use crate::error::StoreError;
use crate::routing::{ProviderPauses, ProviderSlug};

#[async_trait]
impl ProviderPauses for MemoryProviderPauses {
    async fn list(&self) -> Result<Vec<ProviderSlug>, StoreError> {
        Ok(self.0.state().paused_providers.iter().cloned().collect())
    }

    async fn set(&self, provider: &ProviderSlug, paused: bool, audit: &AuditDraft) -> Result<bool, StoreError> {
        let mut state = self.0.begin(audit)?;
        let paused_providers = &mut state.paused_providers;
        let is_changed =
            if paused { paused_providers.insert(provider.clone()) } else { paused_providers.remove(provider) };
        if is_changed {
            state.changed(self.0.now(), [ChangeSubject::Providers]);
            state.note(audit, self.0.now());
        }
        Ok(is_changed)
    }
}
