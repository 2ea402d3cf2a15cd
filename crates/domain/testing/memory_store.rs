//! The database in memory: one state with one lock, so that every method of every port is one transaction.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};

use chrono::{DateTime, Utc};

use super::FixedClock;
use super::memory_alerts::StoredAlert;
use super::memory_budget::Allotments;
use super::memory_changes::MemoryChanges;
use super::memory_ledger::LedgerState;
use super::memory_outbox::StoredMessage;
use super::system::lock;
use crate::api_key::ApiKey;
use crate::audit::{AuditDraft, AuditEntry, AuditHash};
use crate::file::{Document, IdempotencyKey, PendingDocument};
use crate::guardrail::{Guardrail, GuardrailVersion};
use crate::ids::{ApiKeyId, DocumentId};
use crate::model::Model;
use crate::observability::Destination;
use crate::system::Clock;
use crate::usage::{Rejection, UsageRecord};
use crate::workspace::Workspace;

/// A database in memory, which hands out a fake of each port. Clones and fakes share the state.
#[derive(Clone, Default)]
pub struct MemoryStore(Database);

/// The state of a database, and its clock.
#[derive(Clone, Default)]
pub(super) struct Database {
    state: Arc<Mutex<State>>,
    clock: FixedClock,
}

#[derive(Default, Clone)]
pub(super) struct State {
    pub(super) changes: MemoryChanges,
    pub(super) workspaces: Vec<Workspace>,
    pub(super) keys: HashMap<ApiKeyId, StoredKey>,
    pub(super) guardrails: Vec<Guardrail>,
    pub(super) documents: HashMap<DocumentId, StoredDocument>,
    pub(super) claims: HashMap<(ApiKeyId, &'static str, IdempotencyKey), StoredClaim>,
    pub(super) models: Vec<Model>,
    pub(super) usage: Vec<UsageRecord>,
    pub(super) ledger: LedgerState,
    pub(super) allotments: Allotments,
    pub(super) destinations: Vec<Destination>,
    pub(super) outbox: Vec<StoredMessage>,
    pub(super) guardrail_versions: Vec<GuardrailVersion>,
    pub(super) audit: Vec<AuditEntry>,
    pub(super) alerts: Vec<StoredAlert>,
    pub(super) rejections: HashMap<(Rejection, DateTime<Utc>), u64>,
}

impl State {
    /// Appends the audit entry of a change, in its transaction.
    pub(super) fn note(&mut self, audit: &AuditDraft, at: DateTime<Utc>) -> AuditEntry {
        let previous = self.audit.last().map(|entry| (entry.seq, entry.hash));
        // Rows in memory cannot be modified past the log, so there is no row state to verify.
        let entry = AuditEntry::following(previous, at, audit, AuditHash::NONE);
        self.audit.push(entry.clone());
        entry
    }
}

#[derive(Clone)]
pub(super) struct StoredKey {
    pub(super) key: ApiKey,
    /// The row stays so that id and hash are never reused.
    pub(super) deleted: bool,
    /// The actor and the time of the guardrail's assignment.
    pub(super) assigned: Option<(String, DateTime<Utc>)>,
}

#[derive(Clone)]
pub(super) enum StoredDocument {
    Pending(PendingDocument),
    /// The document, and its bytes of the quota.
    Ready(Document, u64),
}

#[derive(Clone)]
pub(super) struct StoredClaim {
    pub(super) subject: String,
    pub(super) document: DocumentId,
    pub(super) made_at: DateTime<Utc>,
}

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

impl Database {
    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    pub(super) fn now(&self) -> DateTime<Utc> {
        self.clock.now()
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
    /// The fake of [`crate::guardrail::GuardrailAssignments`].
    assignments: MemoryAssignments,
    /// The fake of [`crate::file::DocumentRepository`].
    documents: MemoryDocuments,
    /// The fake of [`crate::model::ModelRepository`].
    models: MemoryModels,
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
    /// The fake of [`crate::budget::LimitStatusReader`].
    limits: MemoryLimits,
    /// The fake of [`crate::budget::RecordVolumeReader`].
    volumes: MemoryVolumes,
    /// The fake of [`crate::budget::LedgerAuditor`].
    auditor: MemoryLedgerAuditor,
    /// The fake of [`crate::budget::UsagePruner`].
    pruner: MemoryUsagePruner,
    /// The fake of [`crate::audit::AuditLog`].
    audit_log: MemoryAuditLog,
    /// The fake of [`crate::observability::DestinationRepository`].
    destinations: MemoryDestinations,
    /// The fake of [`crate::observability::Outbox`].
    outbox: MemoryOutbox,
    /// The fake of [`crate::usage::RejectionStore`].
    rejections: MemoryRejections,
}
