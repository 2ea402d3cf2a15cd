//! The log of a call's attempts, including those still running at its end.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::outcome::{CallOutcome, SubRequestOutcome};
use crate::decision::{DecisionSettings, SentBytes, TokenFactor};
use crate::ids::WorkspaceId;
use crate::money::Charge;
use crate::pricing::ReportedUsage;
use crate::routing::{AttemptFailure, AttemptReport, BoundExcess, Candidate, FailureCause, HealthBoard, Observation};
use crate::system::TimeSource;
use crate::usage::{AttemptOutcome, AttemptRecord, UnknownUsage, UsageSource};

/// The log of one call's attempts.
pub(super) struct AttemptLog<'a> {
    pub(super) health: &'a HealthBoard,
    pub(super) time: &'a TimeSource,
    pub(super) settings: &'a DecisionSettings,
    pub(super) workspace: WorkspaceId,
    /// When the request began, on the monotonic clock.
    pub(super) began: Duration,
    pub(super) entries: Mutex<Vec<Entry>>,
}

pub(super) struct Entry {
    record: AttemptRecord,
    /// The sent bytes, and the tokens that the provider may add to them.
    sent: SentBytes,
    overhead: u64,
    /// The most tokens that it may use, if an increasing hold covers its cost.
    bound: u64,
    /// How far the endpoint had exceeded its configured bound when the attempt began.
    excess: Option<BoundExcess>,
    /// The endpoint's index in the configuration.
    endpoint: usize,
    is_running: bool,
    cause: Option<FailureCause>,
}

impl Entry {
    /// Charges the bound of what was sent.
    fn charge_bound(&mut self, factor: TokenFactor, sent: u64) {
        let configured = bound_tokens(factor, sent, self.overhead);
        let tokens = self.excess.map_or(configured, |excess| excess.raise(configured));
        let record = &mut self.record;
        (record.input_tokens, record.output_tokens) = record.prices.dearest(tokens);
        record.usage_source = UsageSource::UpperBound;
    }

    /// Returns its cost, or the most that it may cost while it is under way.
    fn max_cost(&self) -> Option<Charge> {
        let AttemptRecord { prices, input_tokens, output_tokens, .. } = self.record;
        let (input, output) = if self.is_running { prices.dearest(self.bound) } else { (input_tokens, output_tokens) };
        prices.charge(input, output)
    }
}

/// Returns the most tokens that a provider may count for the sent bytes.
pub(super) fn bound_tokens(factor: TokenFactor, sent: u64, overhead: u64) -> u64 {
    factor.times(sent.saturating_add(overhead))
}

/// Returns the record of an attempt that begins.
pub(super) fn new_record(candidate: &Candidate, number: u32, began: Duration) -> AttemptRecord {
    let endpoint = &candidate.endpoint;
    AttemptRecord {
        provider: endpoint.provider.to_shared(),
        model: candidate.model.clone(),
        upstream_model: Arc::clone(&endpoint.upstream_model),
        part: number,
        outcome: AttemptOutcome::Cancelled,
        upstream_status: None,
        began,
        latency: Duration::ZERO,
        input_tokens: 0,
        output_tokens: 0,
        usage_source: UsageSource::None,
        prices: candidate.prices,
    }
}

/// The position of an attempt in the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct AttemptIndex(usize);

/// How an attempt ended: with an answer, its usage and the sent bytes, or with a failure.
pub(super) type AttemptEnd<'a> = Result<(Option<ReportedUsage>, u64), &'a AttemptFailure>;

impl AttemptLog<'_> {
    /// Adds an attempt that begins. `sent` counts its bytes; it may use `bound` tokens.
    pub(super) fn begin(
        &self,
        candidate: &Candidate,
        number: u32,
        (sent, bound): (SentBytes, u64),
        now: Duration,
    ) -> AttemptIndex {
        let record = new_record(candidate, number, now.saturating_sub(self.began));
        let overhead = candidate.endpoint.prompt_overhead_tokens;
        let endpoint = candidate.endpoint.index;
        let excess = self.health.bound_excess(endpoint, now);
        let mut entries = self.entries();
        entries.push(Entry { record, sent, overhead, bound, excess, endpoint, is_running: true, cause: None });
        AttemptIndex(entries.len() - 1)
    }

    /// Returns the cost of all attempts, with the bounds of running ones. `None` if it exceeds the range of money.
    pub(super) fn max_cost(&self) -> Option<Charge> {
        self.entries().iter().try_fold(Charge::ZERO, |sum, entry| sum.checked_add(entry.max_cost()?))
    }

    /// Ends an attempt. A sent attempt without reported usage is `unknown`: it may be billed up to its bound. An error
    /// status is not billed.
    pub(super) fn end(&self, index: AttemptIndex, end: AttemptEnd<'_>, now: Duration) {
        let mut entries = self.entries();
        let Some(entry) = entries.get_mut(index.0) else { return };
        let latency = now.saturating_sub(self.began).saturating_sub(entry.record.began);
        let record = &mut entry.record;
        record.latency = latency;
        let sent_bytes = end.map_or_else(|failure| failure.sent_bytes, |(_, sent_bytes)| sent_bytes);
        let (usage, unknown, observation) = match end {
            Ok((usage, sent_bytes)) => {
                record.outcome = AttemptOutcome::Completed;
                let tokens = usage.map_or(0, |usage| usage.input_tokens.saturating_add(usage.output_tokens));
                // The provider answered, so the bound is charged regardless of the setting for unreported usage.
                let bound = usage.is_none().then_some(sent_bytes);
                (usage, bound, Observation::Succeeded { latency, tokens })
            }
            Err(failure) => {
                record.outcome = failure.kind.outcome();
                entry.cause = failure.cause;
                record.upstream_status = failure.upstream_status;
                // A usage that cannot be charged is ignored.
                let usage = failure.usage.filter(|usage| record.prices.can_charge(*usage));
                let has_error_status = failure.upstream_status.is_some_and(|status| !(200..300).contains(&status));
                let unknown = usage.is_none() && failure.sent_bytes > 0 && !has_error_status;
                let charged = unknown && self.settings.unknown_usage == UnknownUsage::Bound;
                (usage, charged.then_some(failure.sent_bytes), Observation::from(failure))
            }
        };
        if let Some(usage) = usage {
            record.input_tokens = usage.input_tokens;
            record.output_tokens = usage.output_tokens;
            if sent_bytes > 0 || usage.input_tokens > 0 || usage.output_tokens > 0 {
                record.usage_source = UsageSource::Reported;
            }
            if sent_bytes > 0 {
                self.compare_with_bound(entry, sent_bytes, usage, now);
            }
        } else if let Some(sent) = unknown {
            entry.charge_bound(self.settings.max_tokens_per_byte, sent);
        }
        if std::mem::take(&mut entry.is_running) {
            let began = self.began.saturating_add(entry.record.began);
            let (endpoint, workspace) = (entry.endpoint, self.workspace);
            self.health.report(&AttemptReport { endpoint, workspace, began, observation }, now);
        }
    }

    /// Raises the bound of an endpoint whose count exceeds it. Logs the first raise: the operator should configure it.
    fn compare_with_bound(&self, entry: &Entry, sent_bytes: u64, usage: ReportedUsage, now: Duration) {
        let bound = bound_tokens(self.settings.max_tokens_per_byte, sent_bytes, entry.overhead);
        let counted = usage.input_tokens.saturating_add(usage.output_tokens);
        if let Some(BoundExcess { ratio_milli, .. }) = self.health.count_tokens(entry.endpoint, bound, counted, now) {
            tracing::warn!(
                provider.slug = &*entry.record.provider,
                upstream.model = &*entry.record.upstream_model,
                bound_tokens = bound,
                counted_tokens = counted,
                ratio = format_args!("{}.{:03}", ratio_milli / 1_000, ratio_milli % 1_000),
                "token count exceeds the bound of its endpoint; bound raised: check prompt_overhead_tokens"
            );
        }
    }

    /// Ends a hedged attempt that lost.
    pub(super) fn lose(&self, index: AttemptIndex) {
        if let Some(entry) = self.entries().get_mut(index.0) {
            entry.record.outcome = AttemptOutcome::HedgeLost;
            self.give_up(entry);
        }
    }

    fn give_up(&self, entry: &mut Entry) {
        if !std::mem::take(&mut entry.is_running) {
            return;
        }
        entry.record.latency = self.time.monotonic().saturating_sub(self.began).saturating_sub(entry.record.began);
        let sent = entry.sent.get();
        if self.settings.unknown_usage == UnknownUsage::Bound && sent > 0 {
            entry.charge_bound(self.settings.max_tokens_per_byte, sent);
        }
    }

    /// Ends the running attempts and the call. A single answer ends it; after other attempts it may have waited.
    pub(super) fn close(self, outcomes: Vec<SubRequestOutcome>) -> CallOutcome {
        let mut entries = std::mem::take(&mut *self.entries());
        for entry in &mut entries {
            self.give_up(entry);
        }
        let ended = match &entries[..] {
            [Entry { record, .. }] if record.outcome == AttemptOutcome::Completed => {
                self.began.saturating_add(record.began).saturating_add(record.latency)
            }
            _ => self.time.monotonic(),
        };
        let has_causes = entries.iter().any(|entry| entry.cause.is_some());
        let causes = entries.iter().filter(|_| has_causes).map(|entry| entry.cause).collect();
        let attempts = entries.into_iter().map(|entry| entry.record).collect();
        CallOutcome { outcomes, staged: None, attempts, causes, ended }
    }

    fn entries(&self) -> MutexGuard<'_, Vec<Entry>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
