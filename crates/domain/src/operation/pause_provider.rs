//! Pauses and resumes a provider.

use std::sync::Arc;

use crate::audit::AuditDraft;
use crate::authority::{Authority, Restricted, Right};
use crate::error::{ErrorKind, StoreError};
use crate::json::Json;
use crate::routing::{ListProviders, PausedProviders, ProviderPauses, ProviderStatus};

/// Pauses and resumes a provider with a configured endpoint. A paused provider gets no new attempts on any server;
/// running attempts end.
pub struct PauseProvider {
    providers: Arc<ListProviders>,
    stored: Arc<dyn ProviderPauses>,
    paused: PausedProviders,
}

/// An error of pausing a provider.
#[derive(Debug, thiserror::Error)]
pub enum PauseProviderError {
    /// The caller lacks the right.
    #[error(transparent)]
    Restricted(#[from] Restricted),
    /// No endpoint of the configuration has this provider.
    #[error("provider not found")]
    NotFound,
    /// The store failed.
    #[error("the pause cannot be stored")]
    Store(#[from] StoreError),
}

impl PauseProviderError {
    /// Returns the meaning of the error.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Restricted(restricted) => restricted.kind(),
            Self::NotFound => ErrorKind::NotFound,
            Self::Store(store) => store.kind(),
        }
    }
}

impl PauseProvider {
    /// Wires the ports. `paused` are the providers that this process does not call.
    pub fn new(providers: Arc<ListProviders>, stored: Arc<dyn ProviderPauses>, paused: PausedProviders) -> Self {
        Self { providers, stored, paused }
    }

    /// Sets the state of a provider. It is stored, in force in this process at once, and in others by the change feed.
    /// Setting the state that it has changes nothing.
    ///
    /// # Errors
    /// The caller lacks [`Right::Unrestricted`]; an unknown provider; a store failure.
    pub async fn execute(
        &self,
        by: &Authority,
        slug: &str,
        paused: bool,
    ) -> Result<ProviderStatus, PauseProviderError> {
        by.check(Right::Unrestricted)?;
        let mut listed = self.providers.execute().into_iter();
        let status = listed.find(|status| status.slug.as_str() == slug).ok_or(PauseProviderError::NotFound)?;
        let state = |paused: bool| Some(Json::object([("paused", if paused { "true" } else { "false" })]));
        let subject = format!("provider {}", status.slug);
        let audit = AuditDraft::change(by.actor(), "provider.update", subject, state(!paused), state(paused));
        self.stored.set(&status.slug, paused, &audit).await?;
        self.paused.replace(self.stored.list().await?);
        Ok(ProviderStatus { is_paused: paused, ..status })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::audit::AuditLog;
    use crate::routing::{Endpoint, EndpointDirectory, HealthBoard, HealthPolicy, Wire};
    use crate::testing::{FixedClock, MemoryStore};

    #[tokio::test]
    async fn pause_is_stored_and_in_force_and_repeated_changes_write_nothing() {
        let store = MemoryStore::new();
        let paused = PausedProviders::default();
        let endpoint = Endpoint::new("a/b".parse().unwrap(), "one".parse().unwrap(), Wire::SystemOne, "m");
        let board = HealthBoard::new(1, HealthPolicy::default()).with_paused(paused.clone());
        let directory = Arc::new(EndpointDirectory::new(vec![endpoint]));
        let list = Arc::new(ListProviders::new(directory, Arc::new(board), Arc::new(FixedClock::default())));
        let pause = PauseProvider::new(Arc::clone(&list), store.provider_pauses(), paused.clone());
        let by = Authority::system();
        let entries = async || store.audit_log().newest(10).await.unwrap();
        assert!(!pause.execute(&by, "one", false).await.unwrap().is_paused);
        assert_eq!(entries().await, [], "it runs already");
        for _ in 0..2 {
            assert!(pause.execute(&by, "one", true).await.unwrap().is_paused);
            assert!(paused.contains(&"one".parse().unwrap()) && list.execute()[0].is_paused);
            assert_eq!(store.provider_pauses().list().await.unwrap(), ["one".parse().unwrap()]);
        }
        let written = entries().await;
        assert_eq!((written.len(), written[0].subject.as_str()), (1, "provider one"));
        assert_eq!(written[0].details.text(), r#"{"before":{"paused":false},"after":{"paused":true}}"#);
        assert!(!pause.execute(&by, "one", false).await.unwrap().is_paused);
        assert!(!paused.contains(&"one".parse().unwrap()));
        for slug in ["two", "", "ONE", "../one"] {
            assert_eq!(pause.execute(&by, slug, true).await.unwrap_err().kind(), ErrorKind::NotFound, "{slug}");
        }
        assert_eq!(entries().await.len(), 2);
    }
}
