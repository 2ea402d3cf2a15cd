//! The port that records metrics of decisions.

use std::time::Duration;

use crate::budget::BudgetScope;
use crate::usage::UsageRecord;

/// Records metrics for the operator. Labels MUST come from configuration or from fixed lists, never from a
/// caller's text.
#[cfg_attr(feature = "mock", mockall::automock)]
pub trait Metrics: Send + Sync {
    /// Records the charge of a Decisions request. Its attempts are in the record.
    fn record_charge(&self, record: &UsageRecord);

    /// Records a hold that was granted, or rejected by a limit of that scope. A hold that still waits is not rejected.
    /// `took` is the time of the store.
    fn record_hold(&self, rejected_by: Option<BudgetScope>, took: Duration);

    /// Records the action of a guardrail: block, redact or flag.
    fn record_guardrail_action(&self, action: &'static str);

    /// Records a charge above its hold.
    fn record_hold_exceeded(&self);

    /// Records requests of dead processes that were charged by their upper bounds.
    fn record_abandoned_requests(&self, requests: u64);
}

/// Records nothing. For embedding and tests.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoMetrics;

impl Metrics for NoMetrics {
    fn record_charge(&self, _: &UsageRecord) {}
    fn record_hold(&self, _: Option<BudgetScope>, _: Duration) {}
    fn record_guardrail_action(&self, _: &'static str) {}
    fn record_hold_exceeded(&self) {}
    fn record_abandoned_requests(&self, _: u64) {}
}
