//! The subjects of contract suites.

use std::any::Any;
use std::sync::Arc;
use std::time::Duration;

use super::super::{FixedClock, MemoryBlobStore, MemoryStore};
use crate::api_key::{ApiKeyRepository, KeyGrants};
use crate::audit::AuditLog;
use crate::budget::{BudgetAlertStore, BudgetStore, Ledger, LedgerMaintenance, LedgerReader};
use crate::change_feed::ChangeFeed;
use crate::container::BlobStore;
use crate::evidence::EvidenceRepository;
use crate::file::DocumentRepository;
use crate::guardrail::GuardrailRepository;
use crate::model::ModelRepository;
use crate::observability::{DestinationRepository, Outbox};
use crate::preset::PresetRepository;
use crate::repetition::IdempotentRequests;
use crate::routing::ProviderPauses;
use crate::system::Timer;
use crate::usage::{RejectionStore, UsageRepository};
use crate::workspace::WorkspaceRepository;

/// All ports of one empty database.
pub struct Stores {
    /// Workspaces.
    pub workspaces: Arc<dyn WorkspaceRepository>,
    /// Keys.
    pub api_keys: Arc<dyn ApiKeyRepository>,
    /// Grants of keys.
    pub key_grants: Arc<dyn KeyGrants>,
    /// Guardrails.
    pub guardrails: Arc<dyn GuardrailRepository>,
    /// Documents.
    pub documents: Arc<dyn DocumentRepository>,
    /// The catalogue's rows.
    pub models: Arc<dyn ModelRepository>,
    /// The paused providers.
    pub pauses: Arc<dyn ProviderPauses>,
    /// Presets.
    pub presets: Arc<dyn PresetRepository>,
    /// Evidence.
    pub evidence: Arc<dyn EvidenceRepository>,
    /// The change feed.
    pub changes: Arc<dyn ChangeFeed>,
    /// Usage records.
    pub usage: Arc<dyn UsageRepository>,
    /// Holds and charges.
    pub ledger: Arc<dyn Ledger>,
    /// Allowances, and the charges that are folded.
    pub budget: Arc<dyn BudgetStore>,
    /// Budget alerts.
    pub alerts: Arc<dyn BudgetAlertStore>,
    /// The current amounts of limits.
    pub limits: Arc<dyn LedgerReader>,
    /// The audit of the ledger, and the removal of old records.
    pub maintenance: Arc<dyn LedgerMaintenance>,
    /// The audit log.
    pub audit: Arc<dyn AuditLog>,
    /// Destinations of traces.
    pub destinations: Arc<dyn DestinationRepository>,
    /// Messages to destinations.
    pub outbox: Arc<dyn Outbox>,
    /// Counts of rejected requests.
    pub rejections: Arc<dyn RejectionStore>,
    /// Requests with an idempotency key.
    pub repetitions: Arc<dyn IdempotentRequests>,
    /// For a cache in front of `key_grants`: a timer, and the time until changes are visible (at most a second). `None`
    /// if changes are visible at once.
    pub grants_lag: Option<(Arc<dyn Timer>, Duration)>,
    /// The clock of the stores.
    pub clock: FixedClock,
    /// Values that must live as long as the stores, such as a temporary folder.
    pub keep: Box<dyn Any + Send + Sync>,
}

impl Stores {
    /// Returns the fakes.
    pub fn memory() -> Self {
        let clock = FixedClock::default();
        Self::over(&MemoryStore::new().with_clock(clock.clone()), clock)
    }

    /// Returns the fakes of one store, with its clock.
    pub fn over(store: &MemoryStore, clock: FixedClock) -> Self {
        Self {
            workspaces: store.workspaces(),
            api_keys: store.api_keys(),
            key_grants: store.key_grants(),
            guardrails: store.guardrails(),
            documents: store.documents(),
            models: store.models(),
            pauses: store.provider_pauses(),
            presets: store.presets(),
            evidence: store.evidence(),
            changes: store.changes(),
            usage: store.usage(),
            ledger: store.ledger(),
            budget: store.budget(),
            alerts: store.alerts(),
            limits: store.limits(),
            maintenance: store.maintenance(),
            audit: store.audit_log(),
            destinations: store.destinations(),
            outbox: store.outbox(),
            rejections: store.rejections(),
            repetitions: store.repetitions(),
            grants_lag: None,
            clock,
            keep: Box::new(()),
        }
    }

    pub(super) async fn wait_for_grants(&self) {
        if let Some((timer, lag)) = &self.grants_lag {
            timer.sleep(*lag).await;
        }
    }
}

/// An empty blob store.
pub struct Blobs {
    /// The store.
    pub store: Arc<dyn BlobStore>,
    /// Values that must live as long as the store, such as a temporary folder.
    pub keep: Box<dyn Any + Send + Sync>,
}

impl Blobs {
    /// Returns the fake.
    pub fn memory() -> Self {
        Self { store: Arc::new(MemoryBlobStore::default()), keep: Box::new(()) }
    }
}
