//! Providers that the operator paused.

use std::collections::HashSet;
use std::sync::{Arc, PoisonError, RwLock};

use async_trait::async_trait;

use super::ProviderSlug;
use crate::audit::AuditDraft;
use crate::error::StoreError;

/// The providers that get no new attempts in this process. Clones share the set.
#[derive(Debug, Clone, Default)]
pub struct PausedProviders(Arc<RwLock<HashSet<ProviderSlug>>>);

impl PausedProviders {
    /// Returns true if the provider is paused.
    pub fn contains(&self, provider: &ProviderSlug) -> bool {
        self.0.read().unwrap_or_else(PoisonError::into_inner).contains(provider)
    }

    /// Replaces the set.
    pub fn replace(&self, providers: Vec<ProviderSlug>) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = providers.into_iter().collect();
    }
}

/// Stores the paused providers.
///
/// # Contract
/// - A change writes the change feed and its audit entry in its own transaction. A change without effect writes nothing.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait ProviderPauses: Send + Sync {
    /// Returns the paused providers, sorted.
    async fn list(&self) -> Result<Vec<ProviderSlug>, StoreError>;

    /// Pauses or resumes a provider. Returns false if it had that state already.
    async fn set(&self, provider: &ProviderSlug, paused: bool, audit: &AuditDraft) -> Result<bool, StoreError>;
}
