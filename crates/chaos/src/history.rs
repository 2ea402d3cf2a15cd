//! The history of a run: each call of a client, each fault, and the state of the stores at the end.

use std::collections::BTreeMap;
use std::fmt;

/// Milliseconds since the start of the run.
pub type Millis = u64;

/// A call of a client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// The operation.
    pub operation: Operation,
    /// The replica that the call was sent to.
    pub replica: usize,
    /// The number of restarts of the replica before the call.
    pub incarnation: usize,
    /// The key, an index of [`History::keys`].
    pub key: usize,
    /// The time at which the client began.
    pub invoked: Millis,
    /// The time at which the client knew the outcome.
    pub completed: Millis,
    /// The outcome.
    pub outcome: Outcome,
}

/// The operation of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// A Decisions request.
    Decide,
    /// A Decisions request of the preset with two stages, each of which calls the provider.
    DecideInStages,
    /// The promotion of a container file, by its number.
    Promote {
        /// The number of the file.
        file: usize,
        /// The number in its idempotency key. A client repeats a call with its number until it succeeds.
        number: u64,
    },
}

impl Operation {
    /// Returns the number of calls of the provider that an answer costs; `None` if it is no Decisions request.
    pub fn provider_calls(self) -> Option<i64> {
        match self {
            Self::Decide => Some(1),
            Self::DecideInStages => Some(2),
            Self::Promote { .. } => None,
        }
    }

    /// Returns true for Decisions requests.
    pub fn is_decision(self) -> bool {
        self.provider_calls().is_some()
    }
}

/// The outcome of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// An acknowledged answer or document.
    Ok {
        /// The id of the answer or document.
        id: String,
        /// The cost of the answer.
        cost_pico: i64,
        /// The last stage that answered a question; 0 without stages.
        stage: i64,
    },
    /// An error response.
    Rejected {
        /// The status.
        status: u16,
        /// Whether the response has `Retry-After`.
        has_retry_after: bool,
        /// The error's message.
        message: String,
        /// For 402: the limit less what the response says is spent and reserved.
        remaining_pico: Option<i64>,
    },
    /// The replica accepted no connection: the call had no effect.
    Failed,
    /// No response: the call may have had its effect.
    Unknown(String),
    /// A response that the interface does not describe.
    Invalid(String),
}

/// A key of the run, without its secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Key {
    /// The name.
    pub name: String,
    /// The limit that can reject its requests.
    pub limit: KeyLimit,
    /// The time of the acknowledged creation.
    pub created: Millis,
    /// The revocation.
    pub revocation: Option<Revocation>,
}

/// The limit of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyLimit {
    /// None.
    None,
    /// An amount of money that no run spends.
    Roomy,
    /// An amount of money that is spent within a phase.
    Tight,
    /// An amount of money that is spent within a phase, by charges above their holds.
    Overcharged,
    /// Requests per minute: [`Settings::requests_per_minute`].
    Rate,
}

/// The disabling or deletion of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Revocation {
    /// The start of the command.
    pub invoked: Millis,
    /// The successful end of the command.
    pub acknowledged: Option<Millis>,
}

/// An account with a limit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Account {
    /// The scope of its counter.
    pub scope: String,
    /// The subject of its counter.
    pub subject: String,
    /// The limit.
    pub limit_pico: i64,
    /// The most by which charges above their holds may exceed the limit; 0 if the provider bills within the bound.
    pub excess_pico: i64,
    /// The keys whose requests count in it.
    pub keys: Vec<usize>,
}

/// The store that replicas cannot use during a fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outage {
    /// Every store can be used, or a replica does not run.
    None,
    /// The database.
    Database,
    /// The object store.
    Blobs,
    /// The server of rate limits.
    Rates {
        /// True if the server loses its counts.
        forgets: bool,
    },
}

/// A fault and the recovery from it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FaultWindow {
    /// The name of the fault.
    pub fault: String,
    /// The affected replica; `None` for all.
    pub replica: Option<usize>,
    /// The store that the affected replicas cannot use.
    pub outage: Outage,
    /// The start.
    pub began: Millis,
    /// The time from which the fault was complete.
    pub in_force: Millis,
    /// The time until which the fault was complete.
    pub until: Millis,
    /// The end.
    pub ended: Millis,
    /// The time from which every replica answered again; `None` if one did not.
    pub recovered: Option<Millis>,
    /// The end of the quiet phase after the recovery.
    pub quiet_until: Millis,
    /// The use of resources during the fault.
    pub usage: ResourceUsage,
}

/// The resources that the replicas used during a fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ResourceUsage {
    /// The largest resident memory of a replica.
    pub memory_kib: u64,
    /// The largest processor time of a replica, in thousandths of the duration.
    pub processor_permille: u64,
    /// The 99th percentile of the time of answers.
    pub p99_ms: Millis,
    /// The longest time that the harness waited for a processor: other work on the machine.
    pub delay_ms: Millis,
}

/// An end of a replica's process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Restart {
    /// The replica.
    pub replica: usize,
    /// The incarnation that ended.
    pub incarnation: usize,
    /// The end of the process.
    pub stopped: Millis,
    /// The time at which the next incarnation was ready.
    pub ready: Millis,
    /// Whether the journal of the incarnation is gone.
    pub lost_journal: bool,
}

/// The replacement of the database by an asynchronous standby.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failover {
    /// The time from which the standby received nothing.
    pub lag_began: Millis,
    /// The time at which the standby took over.
    pub promoted: Millis,
    /// The amounts of each account that the standby did not know, by scope and subject.
    pub unknown: BTreeMap<(String, String), Unknown>,
}

/// The amounts of an account that a standby did not know.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Unknown {
    /// The amount by which more was spent and allotted on the lost server: it may be drawn again.
    pub drawn_pico: i64,
    /// The sum of the amounts that grew on the lost server: spent, or allotted to a process. What one process returned
    /// and another drew in the lag stands on both until the journals of the lag are folded.
    pub moved_pico: i64,
}

/// The settings that the checks depend on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// `keys.max_stale_ms`.
    pub max_stale: Millis,
    /// `limits.request_timeout_ms`.
    pub request_timeout: Millis,
    /// The upper bound of the cost of a request.
    pub bound_pico: i64,
    /// The cost that the provider charges for a call.
    pub call_cost_pico: i64,
    /// The cost of each call of a key of [`KeyLimit::Overcharged`], above its hold.
    pub overcharge_pico: i64,
    /// The limit of the keys with a rate.
    pub requests_per_minute: u32,
    /// `rate_limits.timeout_ms`.
    pub rate_timeout: Millis,
}

/// Everything that happened in a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct History {
    /// The start, in milliseconds since 1970 by the clock of the database.
    pub started_at: i64,
    /// The longest time that the harness waited for a processor. Other work on the machine delays replicas as much.
    pub delay: Millis,
    /// The settings.
    pub settings: Settings,
    /// The number of replicas.
    pub replicas: usize,
    /// The keys.
    pub keys: Vec<Key>,
    /// The accounts with limits.
    pub accounts: Vec<Account>,
    /// The faults, in their order.
    pub windows: Vec<FaultWindow>,
    /// The ended processes.
    pub restarts: Vec<Restart>,
    /// The replacements of the database.
    pub failovers: Vec<Failover>,
    /// The calls, in the order of their completion.
    pub calls: Vec<Call>,
}

/// A usage record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// The id, that of the answer.
    pub id: String,
    /// The outcome.
    pub outcome: String,
    /// The cost.
    pub cost_pico: i64,
    /// The time that the charge counts in, in milliseconds since 1970; `None` if the record names none.
    pub charged_at: Option<i64>,
    /// The questions with evidence; `None` if the request names no preset.
    pub evidence: Option<Vec<String>>,
}

/// A counter of an account.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counter {
    /// The spent amount.
    pub spent_pico: i64,
    /// The sum of the allowances.
    pub allotted_pico: i64,
}

/// A committed state of a counter above its limit, which a trigger in the database has recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Excess {
    /// The scope.
    pub scope: String,
    /// The subject.
    pub subject: String,
    /// The counter.
    pub counter: Counter,
    /// The time of the commit by the database's clock, in milliseconds since 1970.
    pub at: i64,
}

/// The content of a stored document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Content {
    /// The bytes of a container file.
    File(usize),
    /// Other bytes.
    Other,
}

/// The state of the stores at the end of a run, when no replica serves.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Snapshot {
    /// The usage records.
    pub records: Vec<Record>,
    /// The rows of evidence whose record is missing.
    pub lone_evidence: Vec<String>,
    /// The counters of the limited accounts, by scope and subject.
    pub counters: BTreeMap<(String, String), Counter>,
    /// The states of counters above their limits.
    pub excesses: Vec<Excess>,
    /// The sum of all allowances.
    pub allotted_pico: i64,
    /// The calls that arrived at the provider, by key.
    pub provider_calls: BTreeMap<usize, i64>,
    /// The states of the documents, by id.
    pub documents: BTreeMap<String, String>,
    /// The ids of documents by the numbers in their idempotency keys.
    pub claims: BTreeMap<u64, String>,
    /// The workspaces whose used storage is not the sum of their documents.
    pub wrong_usage: Vec<String>,
    /// The contents of the documents' blobs, by id.
    pub blobs: BTreeMap<String, Content>,
    /// The error of `doctor --audit`.
    pub audit_error: Option<String>,
    /// The panics in the logs of the replicas.
    pub panics: Vec<String>,
}

/// A broken property and its evidence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// The check that found it.
    pub check: &'static str,
    /// The broken property.
    pub text: String,
    /// The calls and events that prove it.
    pub evidence: Vec<String>,
}

impl History {
    /// Returns the acknowledged Decisions answers: the call, the id and the cost.
    pub fn answers(&self) -> impl Iterator<Item = (&Call, &str, i64)> {
        self.calls.iter().filter(|call| call.operation.is_decision()).filter_map(|call| match &call.outcome {
            Outcome::Ok { id, cost_pico, .. } => Some((call, id.as_str(), *cost_pico)),
            _ => None,
        })
    }

    /// Returns true if the process that a call was sent to ended, or had not started, while the call ran.
    pub fn is_interrupted(&self, call: &Call) -> bool {
        self.restarts.iter().any(|restart| {
            restart.replica == call.replica && call.invoked <= restart.ready && call.completed >= restart.stopped
        })
    }

    /// Returns true if the database lost a change that was acknowledged at this time, because its standby had not
    /// received it.
    pub fn is_lost(&self, acknowledged: Millis) -> bool {
        self.failovers.iter().any(|failover| {
            let from = failover.lag_began.saturating_sub(REPLICATED);
            (from..=failover.promoted).contains(&acknowledged)
        })
    }

    /// Returns what was drawn of an account on servers that were lost before their standby knew of it.
    pub fn drawn_in_lag(&self, scope: &str, subject: &str) -> i64 {
        self.failovers.iter().map(|failover| failover.unknown_of(scope, subject).drawn_pico).sum()
    }

    /// Returns what may stand above the limit of an account at a time, because its journals of a lag are not folded yet.
    pub fn unfolded_at(&self, scope: &str, subject: &str, at: Millis) -> i64 {
        let folds =
            |failover: &&Failover| (failover.lag_began..=failover.promoted.saturating_add(FOLDED)).contains(&at);
        self.failovers.iter().filter(folds).map(|failover| failover.unknown_of(scope, subject).moved_pico).sum()
    }

    /// Returns the limit of a key.
    pub fn limit_of(&self, key: usize) -> Option<KeyLimit> {
        self.keys.get(key).map(|key| key.limit)
    }

    /// Returns the name of a key.
    pub fn key_name(&self, key: usize) -> &str {
        self.keys.get(key).map_or("an unknown key", |key| key.name.as_str())
    }
}

impl Failover {
    fn unknown_of(&self, scope: &str, subject: &str) -> Unknown {
        self.unknown.get(&(scope.to_owned(), subject.to_owned())).copied().unwrap_or_default()
    }
}

impl Violation {
    /// Creates a violation that calls prove.
    pub fn of_calls<'a>(
        check: &'static str,
        text: String,
        history: &History,
        calls: impl IntoIterator<Item = &'a Call>,
    ) -> Self {
        let evidence = calls.into_iter().map(|call| describe(call, history)).collect();
        Self { check, text, evidence }
    }
}

fn describe(call: &Call, history: &History) -> String {
    let Call { operation, replica, incarnation, key, invoked, completed, outcome } = call;
    let name = history.key_name(*key);
    format!("{invoked}..{completed} ms replica {replica}.{incarnation} key {name} {operation:?}: {outcome:?}")
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.check, self.text)?;
        self.evidence.iter().take(MAX_EVIDENCE).try_for_each(|line| write!(f, "\n    {line}"))?;
        match self.evidence.len().checked_sub(MAX_EVIDENCE) {
            Some(more) if more > 0 => write!(f, "\n    and {more} more"),
            _ => Ok(()),
        }
    }
}

/// The time within which a standby has a change that was acknowledged before its network failed.
const REPLICATED: Millis = 1_000;
/// The time after a failover within which every process has folded its journal again and ended its old id.
const FOLDED: Millis = 10_000;
/// The most lines of evidence that are printed for a violation.
const MAX_EVIDENCE: usize = 5;
