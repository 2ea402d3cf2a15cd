//! Who pays, where it is counted, and what may be spent.

use std::sync::Arc;

use chrono::{DateTime, Utc};

use super::ResetInterval;
use crate::ids::{ApiKeyId, DecisionId, GuardrailId, RequestId, WorkspaceId};
use crate::money::Usd;
use crate::usage::AttemptRecord;

/// An amount and the period after which it starts anew.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SpendLimit {
    /// The most that may be spent in a period; positive.
    pub amount: Usd,
    /// The period; `None` is for ever.
    pub reset: Option<ResetInterval>,
}

/// What a workspace may spend in each period, each on its own; `None` is no limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct WorkspaceBudgets {
    /// A UTC day.
    pub daily: Option<Usd>,
    /// Monday to Monday.
    pub weekly: Option<Usd>,
    /// A calendar month.
    pub monthly: Option<Usd>,
    /// All time.
    pub lifetime: Option<Usd>,
}

impl WorkspaceBudgets {
    /// The budgets that are set.
    pub fn limits(&self) -> impl Iterator<Item = SpendLimit> {
        let all = [
            (self.daily, Some(ResetInterval::Daily)),
            (self.weekly, Some(ResetInterval::Weekly)),
            (self.monthly, Some(ResetInterval::Monthly)),
            (self.lifetime, None),
        ];
        all.into_iter().filter_map(|(amount, reset)| amount.map(|amount| SpendLimit { amount, reset }))
    }
}

/// Whose limit it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum BudgetScope {
    /// The workspace's credit or one of its budgets.
    Workspace,
    /// The key's own limit.
    Key,
    /// The budget of a guardrail, counted for the key alone.
    Guardrail,
}

impl BudgetScope {
    /// Its name on every surface.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Workspace => "workspace",
            Self::Key => "key",
            Self::Guardrail => "guardrail",
        }
    }
}

/// Where money is counted: in total and by day, week and month.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Account {
    /// Everything that a workspace spends.
    Workspace(WorkspaceId),
    /// Everything that a key spends.
    Key(ApiKeyId),
    /// What a key spends while it is under a guardrail.
    Guardrail(GuardrailId, ApiKeyId),
}

impl Account {
    /// Whose limits it is for.
    pub fn scope(&self) -> BudgetScope {
        match self {
            Self::Workspace(_) => BudgetScope::Workspace,
            Self::Key(_) => BudgetScope::Key,
            Self::Guardrail(..) => BudgetScope::Guardrail,
        }
    }
}

/// Who pays for a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Payer {
    /// The workspace.
    pub workspace_id: WorkspaceId,
    /// The key.
    pub api_key: ApiKeyId,
    /// The guardrails that the key is under, the workspace's first; each at most once.
    pub guardrails: Vec<GuardrailId>,
}

impl Payer {
    /// Every account that a request of this payer counts in.
    pub fn accounts(&self) -> impl Iterator<Item = Account> {
        let own = [Account::Workspace(self.workspace_id), Account::Key(self.api_key)];
        own.into_iter().chain(self.guardrails.iter().map(|id| Account::Guardrail(*id, self.api_key)))
    }
}

/// A limit as it stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LimitStatus {
    /// Whose it is.
    pub scope: BudgetScope,
    /// The guardrail, where it is one's budget.
    pub guardrail_id: Option<GuardrailId>,
    /// True for the workspace's prepaid credit: `limit` is then all that was granted since the last time that the
    /// workspace had none, and `spent` what was spent of it.
    pub is_credit: bool,
    /// The most that may be spent in the period.
    pub limit: Usd,
    /// The period; `None` is for ever.
    pub reset: Option<ResetInterval>,
    /// What has been spent in the period.
    pub spent: Usd,
    /// What requests in flight may come to.
    pub reserved: Usd,
    /// When the period ends.
    pub resets_at: Option<DateTime<Utc>>,
}

/// What a request asks the ledger to keep for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HoldRequest {
    /// The id of the request and of its usage record; settling it ends the hold.
    pub id: DecisionId,
    /// Who pays.
    pub payer: Payer,
    /// The amount; zero is granted always.
    pub amount: Usd,
    /// False where no limit applies to the payer: the hold then only accounts for the attempts, should the process die.
    pub is_limited: bool,
    /// The HTTP request.
    pub request_id: RequestId,
    /// The model as the caller named it.
    pub requested_model: String,
    /// The attempts that `amount` is the bound of: their tokens times their prices come to it. They are charged if the
    /// process dies. Without any, the hold is released then.
    pub attempts: Arc<[AttemptRecord]>,
}

/// Money that is held for a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hold {
    /// The request's id.
    pub id: DecisionId,
    /// By the store's clock; the charge belongs to the periods that this moment lies in, whenever it is settled.
    pub at: DateTime<Utc>,
    /// Who pays.
    pub payer: Payer,
    /// How much is reserved.
    pub amount: Usd,
}

/// What retention did.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PruneReport {
    /// Records that went.
    pub removed: u64,
    /// Records that were met, are old enough to go, and stay because they cannot be read.
    pub unreadable: u64,
    /// The ids of the first of these, up to [`PruneReport::NAMED`].
    pub named: Vec<String>,
}

impl PruneReport {
    /// How many are named.
    pub const NAMED: usize = 10;

    /// One more that cannot be read.
    pub fn cannot_read(&mut self, id: String) {
        self.unreadable += 1;
        if self.named.len() < Self::NAMED {
            self.named.push(id);
        }
    }
}

/// A counter that is not what the ledger comes to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Discrepancy {
    /// Which counter or record, such as `workspace 0199… daily 2026-11-21`.
    pub what: String,
    /// What the ledger comes to.
    pub expected: Usd,
    /// What stands there.
    pub found: Usd,
}

/// What an audit of the ledger found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LedgerAudit {
    /// Records whose cost was computed again from their tokens and prices.
    pub records: u64,
    /// Counters that were compared.
    pub counters: u64,
    /// Allowances of processes that were compared with the counters.
    pub allowances: u64,
    /// Everything that does not add up.
    pub discrepancies: Vec<Discrepancy>,
}
