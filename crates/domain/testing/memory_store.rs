//! The database in memory: one state with one lock, so that every method of every port is one transaction.

use std::sync::{Arc, Mutex};

use super::FixedClock;
use super::memory_state::Database;

/// A database in memory, which hands out a fake of each port. Clones and fakes share the state.
#[derive(Clone, Default)]
pub struct MemoryStore(Database);

impl MemoryStore {
    /// Creates an empty database.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the clock; the default clock never moves.
    #[must_use]
    pub fn with_clock(self, clock: FixedClock) -> Self {
        Self(Database { clock, ..self.0 })
    }

    /// Returns a copy of the current state, with the same clock.
    #[must_use]
    pub fn copy(&self) -> Self {
        let state = Arc::new(Mutex::new(self.0.state().clone()));
        Self(Database { state, clock: self.0.clock.clone() })
    }
}

/// Defines the fake of each port, and the method of [`MemoryStore`] that returns it.
macro_rules! fakes {
    ($($(#[$doc:meta])* $method:ident: $fake:ident,)+) => {
        $(
            $(#[$doc])*
            #[derive(Clone)]
            pub struct $fake(pub(super) Database);
        )+

        impl MemoryStore {
            $(
                $(#[$doc])*
                pub fn $method(&self) -> Arc<$fake> {
                    Arc::new($fake(self.0.clone()))
                }
            )+
        }
    };
}

fakes! {
    /// The fake of [`crate::workspace::WorkspaceRepository`].
    workspaces: MemoryWorkspaces,
    /// The fake of [`crate::api_key::ApiKeyRepository`].
    api_keys: MemoryApiKeys,
    /// The fake of [`crate::api_key::KeyGrants`].
    key_grants: MemoryKeyGrants,
    /// The fake of [`crate::guardrail::GuardrailRepository`].
    guardrails: MemoryGuardrails,
    /// The fake of [`crate::file::DocumentRepository`].
    documents: MemoryDocuments,
    /// The fake of [`crate::model::ModelRepository`].
    models: MemoryModels,
    /// The fake of [`crate::routing::ProviderPauses`].
    provider_pauses: MemoryProviderPauses,
    /// The fake of [`crate::preset::PresetRepository`].
    presets: MemoryPresets,
    /// The fake of [`crate::evidence::EvidenceRepository`].
    evidence: MemoryEvidence,
    /// The fake of [`crate::change_feed::ChangeFeed`].
    changes: MemoryChangeFeed,
    /// The fake of [`crate::usage::UsageRepository`].
    usage: MemoryUsage,
    /// The fake of [`crate::budget::Ledger`].
    ledger: MemoryLedger,
    /// The fake of [`crate::budget::BudgetStore`].
    budget: MemoryBudget,
    /// The fake of [`crate::budget::BudgetAlertStore`].
    alerts: MemoryAlerts,
    /// The fake of [`crate::budget::LedgerReader`].
    limits: MemoryLimits,
    /// The fake of [`crate::budget::LedgerMaintenance`].
    maintenance: MemoryLedgerMaintenance,
    /// The fake of [`crate::audit::AuditLog`].
    audit_log: MemoryAuditLog,
    /// The fake of [`crate::observability::DestinationRepository`].
    destinations: MemoryDestinations,
    /// The fake of [`crate::observability::Outbox`].
    outbox: MemoryOutbox,
    /// The fake of [`crate::usage::RejectionStore`].
    rejections: MemoryRejections,
    /// The fake of [`crate::repetition::IdempotentRequests`].
    repetitions: MemoryIdempotentRequests,
}
