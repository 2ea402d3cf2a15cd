//! The state of the database in memory, with a lock, and its rows.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use chrono::{DateTime, NaiveDate, Utc};

use super::FixedClock;
use super::system::lock;
use crate::api_key::ApiKey;
use crate::audit::{AuditDraft, AuditEntry, AuditHash};
use crate::budget::allowances::CounterId;
use crate::budget::{Account, BudgetAlert, DrawReply, Hold, ProcessStatus, ResetInterval};
use crate::change_feed::{Change, ChangePosition, ChangeSubject};
use crate::evidence::{Evidence, Label};
use crate::file::{Document, PendingDocument};
use crate::guardrail::{Guardrail, GuardrailVersion};
use crate::ids::{ApiKeyId, DecisionId, DestinationId, DocumentId, ProcessId, WorkspaceId};
use crate::model::Model;
use crate::money::Usd;
use crate::observability::Destination;
use crate::preset::{Preset, PresetVersion};
use crate::repetition::{IdempotencyKey, RepetitionScope, StoredRepetition};
use crate::routing::ProviderSlug;
use crate::system::Clock;
use crate::usage::{OutboxMessage, Rejection, UsageRecord, UsageTotals};
use crate::workspace::Workspace;

/// The state of a database, and its clock.
#[derive(Clone, Default)]
pub(super) struct Database {
    pub(super) state: Arc<Mutex<State>>,
    pub(super) clock: FixedClock,
}

impl Database {
    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    pub(super) fn now(&self) -> DateTime<Utc> {
        self.clock.now()
    }
}

/// The day, workspace, key, model and provider of a sum.
pub(super) type SumName = (NaiveDate, WorkspaceId, ApiKeyId, String, String);

#[derive(Default, Clone)]
pub(super) struct State {
    pub(super) changes: MemoryChanges,
    pub(super) workspaces: Vec<Workspace>,
    pub(super) deleted_workspaces: Vec<WorkspaceId>,
    pub(super) keys: HashMap<ApiKeyId, StoredKey>,
    pub(super) guardrails: Vec<Guardrail>,
    pub(super) documents: HashMap<DocumentId, StoredDocument>,
    pub(super) claims: HashMap<(ApiKeyId, &'static str, IdempotencyKey), StoredClaim>,
    pub(super) models: Vec<Model>,
    pub(super) paused_providers: BTreeSet<ProviderSlug>,
    /// The presets with their versions, oldest first.
    pub(super) presets: Vec<(Preset, Vec<PresetVersion>)>,
    pub(super) usage: Vec<UsageRecord>,
    pub(super) evidence: Vec<StoredEvidence>,
    /// The sums by day, workspace, key, model and provider.
    pub(super) usage_sums: BTreeMap<SumName, UsageTotals>,
    pub(super) ledger: LedgerState,
    pub(super) allotments: Allotments,
    pub(super) destinations: Vec<Destination>,
    pub(super) outbox: Vec<StoredMessage>,
    /// The destinations that are paused, until which time.
    pub(super) destination_pauses: HashMap<DestinationId, DateTime<Utc>>,
    pub(super) guardrail_versions: Vec<GuardrailVersion>,
    pub(super) audit: Vec<AuditEntry>,
    pub(super) alerts: Vec<StoredAlert>,
    pub(super) rejections: HashMap<(Rejection, DateTime<Utc>), u64>,
    /// Stored requests with their times.
    pub(super) repetitions: HashMap<RepetitionScope, (StoredRepetition, DateTime<Utc>)>,
}

impl State {
    /// Appends the audit entry of a change, in the transaction that [`Database::begin`] began.
    pub(super) fn note(&mut self, audit: &AuditDraft, at: DateTime<Utc>) -> AuditEntry {
        let previous = self.audit.last().map(|entry| (entry.seq, entry.hash));
        // Rows in memory cannot be modified past the log, so there is no row state to verify.
        let entry = AuditEntry::following(previous, at, audit, AuditHash::NONE);
        self.audit.push(entry.clone());
        if let Some(stored) = &audit.repetition {
            self.repetitions.insert(stored.request.scope.clone(), (stored.clone(), at));
        }
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

/// An alert, and whether it was published.
#[derive(Clone)]
pub(super) struct StoredAlert {
    pub(super) alert: BudgetAlert,
    pub(super) is_published: bool,
}

/// Evidence with every version of its label.
#[derive(Clone)]
pub(super) struct StoredEvidence {
    pub(super) row: Evidence,
    pub(super) labels: Vec<Label>,
}

/// Processes and their allowances.
#[derive(Default, Clone)]
pub(super) struct Allotments {
    pub(super) processes: BTreeMap<ProcessId, Process>,
    pub(super) allowances: Amounts,
    pub(super) adjustments: Amounts,
    pub(super) recalled: BTreeMap<CounterId, Recalled>,
    pub(super) declared_older_at: Option<DateTime<Utc>>,
}

/// The first and the last recall of a counter.
#[derive(Clone, Copy)]
pub(super) struct Recalled {
    pub(super) began_at: DateTime<Utc>,
    pub(super) renewed_at: DateTime<Utc>,
}

pub(super) type Amounts = BTreeMap<(ProcessId, CounterId), Usd>;

#[derive(Clone)]
pub(super) struct Process {
    pub(super) status: ProcessStatus,
    pub(super) seen_at: DateTime<Utc>,
    /// The reply to the last call, if it was a draw.
    pub(super) last_reply: Option<DrawReply>,
}

/// The kept changes, and the numbers of the newest ones.
#[derive(Clone)]
pub(super) struct MemoryChanges {
    /// The changes with their times. Never empty.
    pub(super) kept: VecDeque<(Change, DateTime<Utc>)>,
    pub(super) newest: ChangePosition,
    /// The number of the newest change of limits.
    pub(super) limits: u64,
    /// The number of the newest change of the catalogue.
    pub(super) catalogue: u64,
}

impl Default for MemoryChanges {
    fn default() -> Self {
        let newest = ChangePosition { number: 0, mark: mark() };
        let first = Change { position: newest, subject: ChangeSubject::Everything };
        Self { kept: VecDeque::from([(first, DateTime::UNIX_EPOCH)]), newest, limits: 0, catalogue: 0 }
    }
}

/// Returns a mark that is unique in this process: copies of a store continue with different marks.
pub(super) fn mark() -> i64 {
    static MARKS: AtomicI64 = AtomicI64::new(1);
    MARKS.fetch_add(1, Ordering::Relaxed)
}

/// An account in one period: the interval (`None` is all time) and the beginning of the period.
pub(super) type CounterKey = (Account, Option<ResetInterval>, DateTime<Utc>);

/// The counters, holds and archived costs of the ledger.
#[derive(Default, Clone)]
pub(super) struct LedgerState {
    pub(super) counters: BTreeMap<CounterKey, Counter>,
    pub(super) holds: BTreeMap<DecisionId, Hold>,
    /// The cost of pruned records.
    pub(super) archived: BTreeMap<Account, Usd>,
    /// The bytes of records by workspace and day of their addition.
    pub(super) record_bytes: BTreeMap<(WorkspaceId, DateTime<Utc>), u64>,
    /// The total spend of a workspace at the beginning of its credit, by account.
    pub(super) credit_bases: BTreeMap<Account, Usd>,
    /// The beginning of the credit, by account.
    pub(super) credits_began: BTreeMap<Account, DateTime<Utc>>,
}

#[derive(Default, Clone, Copy)]
pub(super) struct Counter {
    pub(super) spent: Usd,
    pub(super) reserved: Usd,
    /// The sum of its allowances.
    pub(super) allotted: Usd,
}

/// A message with its delivery state.
#[derive(Clone)]
pub(super) struct StoredMessage {
    pub(super) message: OutboxMessage,
    pub(super) failures: u32,
    pub(super) created_at: DateTime<Utc>,
    /// `None` for a dead letter.
    pub(super) next_at: Option<DateTime<Utc>>,
}
