//! The record of one attempt.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::model::ModelId;
use crate::money::Usd;
use crate::pricing::TokenPrices;

named_enum! {
    /// The outcome of an attempt, with one name for records, metrics, traces and all interfaces.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub enum AttemptOutcome {
        /// The provider answered.
        Completed = "completed",
        /// No connection, or one that was lost before the response began.
        ConnectError = "connect_error",
        /// An error status without a more specific outcome.
        HttpError = "http_error",
        /// A response that is no answer to the questions.
        InvalidResponse = "invalid_response",
        /// The provider rejected our credentials or our account.
        ProviderAuthFailed = "provider_auth_failed",
        /// The provider was overloaded.
        Overloaded = "overloaded",
        /// The deadline of the attempt passed.
        TimedOut = "timed_out",
        /// The provider rejected the request.
        RejectedByProvider = "rejected_by_provider",
        /// The model did not answer the question.
        NoUsableAnswer = "no_usable_answer",
        /// The memory for requests and answers is used up.
        MemoryExhausted = "memory_exhausted",
        /// The client disconnected.
        ClientDisconnected = "client_disconnected",
        /// Another sub-request failed first, or the attempt was still running at the end of its call.
        Cancelled = "cancelled",
        /// A hedged attempt that was not the first to answer.
        HedgeLost = "hedge_lost",
        /// A failure that a sandbox model simulates.
        Simulated = "simulated",
        /// The process crashed before the attempt had an outcome.
        Abandoned = "abandoned",
        /// An outcome of a newer release, read by this one.
        Unknown = "unknown",
    } or Unknown
}

impl fmt::Display for AttemptOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// One attempt at one endpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttemptRecord {
    /// The provider's slug.
    pub provider: Arc<str>,
    /// The requested model, by its name in the catalogue.
    pub model: ModelId,
    /// The model's name at the provider.
    pub upstream_model: Arc<str>,
    /// The index of the sub-request that it was for, from 0.
    pub part: u32,
    /// How it ended.
    pub outcome: AttemptOutcome,
    /// The provider's HTTP status, if it failed with one.
    pub upstream_status: Option<u16>,
    /// The time from the start of the request to the start of the attempt.
    pub began: Duration,
    /// The duration of the attempt.
    pub latency: Duration,
    /// The number of input tokens.
    pub input_tokens: u64,
    /// The number of output tokens.
    pub output_tokens: u64,
    /// The source of the token counts.
    pub usage_source: UsageSource,
    /// The prices of the attempt.
    pub prices: TokenPrices,
}

impl AttemptRecord {
    /// Returns the provider's HTTP status, if it sent one: 200 with an answer.
    pub fn http_status(&self) -> Option<u16> {
        self.upstream_status.or((self.outcome == AttemptOutcome::Completed).then_some(200))
    }

    /// Returns the cost of this attempt, rounded up by itself. The cost of a request is rounded up once over all
    /// attempts, so that the sum of these can be a few picodollars higher. Returns `None` on overflow.
    pub fn cost(&self) -> Option<Usd> {
        self.prices.charge(self.input_tokens, self.output_tokens)?.round_up()
    }
}

named_enum! {
    /// The source of token counts.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum UsageSource {
        /// The provider reported them.
        Reported = "reported",
        /// The provider reported none; the counts are the upper bound by the size of the request.
        UpperBound = "upper_bound",
        /// No usage: nothing was sent, or the provider rejected the request and bills nothing.
        None = "none",
    }
}

impl UsageSource {
    /// Returns the source of a sum: one upper bound makes the sum an upper bound.
    #[must_use]
    pub fn combine(self, other: Self) -> Self {
        match (self, other) {
            (Self::UpperBound, _) | (_, Self::UpperBound) => Self::UpperBound,
            (Self::Reported, _) | (_, Self::Reported) => Self::Reported,
            (Self::None, Self::None) => Self::None,
        }
    }
}

/// The charge for an attempt that was sent but whose usage is unknown: it timed out, its connection broke, its response
/// was unreadable, or the client disconnected.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum UnknownUsage {
    /// The upper bound by the size of the request: the most that the provider can have billed.
    #[default]
    Bound,
    /// No charge; the operator pays.
    Free,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attempt_outcomes_keep_their_names() {
        // They are stored and shown.
        let names = [
            "completed",
            "connect_error",
            "http_error",
            "invalid_response",
            "provider_auth_failed",
            "overloaded",
            "timed_out",
            "rejected_by_provider",
            "no_usable_answer",
            "memory_exhausted",
            "client_disconnected",
            "cancelled",
            "hedge_lost",
            "simulated",
            "abandoned",
            "unknown",
        ];
        assert_eq!(AttemptOutcome::ALL.map(AttemptOutcome::as_str), names);
        for outcome in AttemptOutcome::ALL {
            assert_eq!(AttemptOutcome::from_name(outcome.as_str()), outcome);
        }
        assert_eq!(AttemptOutcome::from_name("of_a_newer_release"), AttemptOutcome::Unknown);
    }
}
