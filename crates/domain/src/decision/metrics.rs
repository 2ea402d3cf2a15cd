//! The port that counts for the operator.

use std::time::Duration;

use crate::budget::BudgetScope;
use crate::usage::UsageRecord;

/// Counts what happens, for the operator. Labels MUST come from configuration or from fixed lists, never from a
/// caller's text.
#[cfg_attr(feature = "mock", mockall::automock)]
pub trait Meter: Send + Sync {
    /// A Decisions request was charged. Its attempts are in the record.
    fn settled(&self, record: &UsageRecord);

    /// Money was reserved, or refused by a limit of that scope for good: what is only waited for is not refused. The time
    /// it took is that of the store.
    fn reserved(&self, refused_by: Option<BudgetScope>, took: Duration);

    /// A guardrail blocked, redacted or flagged something: `action`.
    fn filtered(&self, action: &'static str);

    /// A charge went beyond what was reserved for it.
    fn beyond_bound(&self);

    /// So many requests of dead processes were charged by their bounds.
    fn abandoned(&self, requests: u64);
}

/// Counts nothing: for embedding and for tests.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoMeter;

impl Meter for NoMeter {
    fn settled(&self, _: &UsageRecord) {}
    fn reserved(&self, _: Option<BudgetScope>, _: Duration) {}
    fn filtered(&self, _: &'static str) {}
    fn beyond_bound(&self) {}
    fn abandoned(&self, _: u64) {}
}
