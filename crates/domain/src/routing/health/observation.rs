//! Reports of attempts to the health of their endpoints.

use std::fmt;
use std::time::Duration;

use crate::ids::WorkspaceId;
use crate::routing::{AttemptFailure, AttemptFailureKind, FailureCause};

/// The result of an attempt, as it counts for its endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Observation {
    /// A successful answer.
    Succeeded {
        /// The time from the call to the complete answer.
        latency: Duration,
        /// Input and output tokens together; 0 if the provider reported none.
        tokens: u64,
    },
    /// A failure.
    Failed {
        /// The class, which decides the workspaces that it counts for.
        class: FailureClass,
        /// The error for messages and logs.
        error: AttemptError,
    },
    /// No result for the endpoint: the client disconnected, or another attempt answered first.
    Neutral,
}

/// The class of a failure: its scope and weight.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailureClass {
    /// No connection: DNS, TCP or TLS failed. Counts for all workspaces at once.
    Connection,
    /// The provider rejected our credentials (401), or our account has no credit left. Leads to a back-off for all workspaces at once.
    Credentials,
    /// A failure that the content of the request can provoke: 4xx, 5xx, a malformed answer, a broken connection.
    Content,
    /// The deadline passed. As [`Self::Content`], with a weight.
    Timeout,
    /// 429, 503 or 529. As [`Self::Content`], with a back-off.
    Overloaded {
        /// The `Retry-After` of the provider.
        retry_after: Option<Duration>,
    },
}

/// The kind of a failure and its status, for messages and logs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AttemptError {
    /// The kind.
    pub kind: AttemptFailureKind,
    /// The HTTP status of the provider, if it sent one.
    pub upstream_status: Option<u16>,
    /// The cause, if it is one that an operator can mend.
    pub cause: Option<FailureCause>,
}

impl AttemptError {
    /// Returns true if the provider rejected our credential or our account. A 403 without such a cause is not counted,
    /// because moderation answers it, so that content can provoke it.
    pub fn is_rejected_credential(&self) -> bool {
        self.kind == AttemptFailureKind::ProviderAuthFailed
            && (self.upstream_status != Some(403) || self.cause.is_some_and(FailureCause::is_of_account))
    }
}

impl From<&AttemptFailure> for AttemptError {
    fn from(failure: &AttemptFailure) -> Self {
        Self { kind: failure.kind, upstream_status: failure.upstream_status, cause: failure.cause }
    }
}

impl fmt::Display for AttemptError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.kind, self.upstream_status) {
            (_, Some(status)) if !(200..300).contains(&status) => write!(f, "{status}"),
            (AttemptFailureKind::TimedOut, _) => f.write_str("a timeout"),
            (AttemptFailureKind::ConnectFailed, _) => f.write_str("a connection error"),
            (AttemptFailureKind::ConnectionLost, _) => f.write_str("a lost connection"),
            (AttemptFailureKind::HttpError, _) => f.write_str("an HTTP error"),
            (_, Some(_)) | (AttemptFailureKind::InvalidResponse, _) => f.write_str("an invalid response"),
            (_, None) => f.write_str(self.kind.as_str()),
        }?;
        self.cause.map_or(Ok(()), |cause| write!(f, " ({})", cause.sentence()))
    }
}

/// The end of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AttemptReport {
    /// The endpoint's index in the configuration.
    pub endpoint: usize,
    /// The workspace of the request.
    pub workspace: WorkspaceId,
    /// When the attempt began.
    pub began: Duration,
    /// The result.
    pub observation: Observation,
}

impl Observation {
    /// Returns true for a failure.
    pub fn is_failure(&self) -> bool {
        matches!(self, Self::Failed { .. })
    }
}

impl From<&AttemptFailure> for Observation {
    fn from(failure: &AttemptFailure) -> Self {
        let error = AttemptError::from(failure);
        let class = match failure.kind {
            AttemptFailureKind::ConnectFailed => FailureClass::Connection,
            AttemptFailureKind::ProviderAuthFailed if error.is_rejected_credential() => FailureClass::Credentials,
            AttemptFailureKind::ProviderAuthFailed
            | AttemptFailureKind::ConnectionLost
            | AttemptFailureKind::HttpError
            | AttemptFailureKind::InvalidResponse => FailureClass::Content,
            // A request that was not sent is no evidence about the endpoint.
            AttemptFailureKind::RejectedByProvider if failure.upstream_status.is_some() => FailureClass::Content,
            AttemptFailureKind::TimedOut => FailureClass::Timeout,
            AttemptFailureKind::Overloaded => FailureClass::Overloaded { retry_after: failure.retry_after },
            AttemptFailureKind::RejectedByProvider
            | AttemptFailureKind::NoUsableAnswer
            | AttemptFailureKind::MemoryExhausted
            | AttemptFailureKind::ClientDisconnected
            | AttemptFailureKind::Simulated(_) => return Self::Neutral,
        };
        Self::Failed { class, error }
    }
}

/// The shortest time for which an excess raises the bound; the longest is twice as long.
const PERIOD: Duration = Duration::from_hours(1);
/// The highest ratio, in thousandths. Higher counts are errors of the provider rather than tokens of a prompt.
const MAX_RATIO_MILLI: u64 = 1_000_000;

/// How far token counts exceed the configured bound of an endpoint. It raises the bound of later requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BoundExcess {
    /// The highest ratio of counted to bounded tokens, in thousandths, rounded up; 1,000 to 1,000,000.
    pub ratio_milli: u64,
    /// The highest difference between counted and bounded tokens.
    pub tokens: u64,
}

impl BoundExcess {
    /// Returns the excess of a count; `None` if it is within the bound, or nothing was bounded.
    pub fn observed(bound: u64, counted: u64) -> Option<Self> {
        let tokens = counted.checked_sub(bound).filter(|tokens| *tokens > 0 && bound > 0)?;
        let ratio = (u128::from(counted) * 1_000).div_ceil(u128::from(bound));
        let ratio_milli = u64::try_from(ratio).unwrap_or(u64::MAX).min(MAX_RATIO_MILLI);
        Some(Self { ratio_milli, tokens })
    }

    /// Returns the raised bound: the ratio or the difference more, whichever is lower. A hidden prompt adds the same to
    /// every request, so its ratio to a small request would be too much for a large one.
    pub fn raise(self, bound: u64) -> u64 {
        let by_ratio = (u128::from(bound) * u128::from(self.ratio_milli)).div_ceil(1_000);
        u64::try_from(by_ratio).unwrap_or(u64::MAX).min(bound.saturating_add(self.tokens))
    }

    fn max(self, other: Self) -> Self {
        Self { ratio_milli: self.ratio_milli.max(other.ratio_milli), tokens: self.tokens.max(other.tokens) }
    }
}

/// The excesses of the current period and of the one before.
#[derive(Debug, Default)]
pub(super) struct BoundExcesses {
    period: u64,
    current: Option<BoundExcess>,
    previous: Option<BoundExcess>,
}

impl BoundExcesses {
    /// Adds an excess. Returns the raised values if the bound was not raised before.
    pub(super) fn add(&mut self, excess: BoundExcess, now: Duration) -> Option<BoundExcess> {
        let is_first = self.highest(now).is_none();
        match self.periods_since(now) {
            0 => {}
            1 => self.previous = self.current.take(),
            _ => (self.previous, self.current) = (None, None),
        }
        self.period = self.period.max(period_of(now));
        self.current = highest(self.current, Some(excess));
        is_first.then_some(excess)
    }

    /// Returns the highest excess of both periods.
    pub(super) fn highest(&self, now: Duration) -> Option<BoundExcess> {
        match self.periods_since(now) {
            0 => highest(self.current, self.previous),
            1 => self.current,
            _ => None,
        }
    }

    fn periods_since(&self, now: Duration) -> u64 {
        period_of(now).saturating_sub(self.period)
    }
}

fn period_of(now: Duration) -> u64 {
    now.as_secs() / PERIOD.as_secs()
}

fn highest(one: Option<BoundExcess>, other: Option<BoundExcess>) -> Option<BoundExcess> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.max(other)),
        (one, other) => one.or(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case(401, None, true)]
    #[case(402, None, true)]
    #[case::moderation(403, None, false)]
    #[case(403, Some(FailureCause::KeyRejected), true)]
    #[case(400, Some(FailureCause::AccountExhausted), true)]
    #[case(429, Some(FailureCause::AccountExhausted), true)]
    #[case(400, None, false)]
    #[case(429, None, false)]
    fn account_trouble_counts_as_rejected_credential(
        #[case] status: u16,
        #[case] cause: Option<FailureCause>,
        #[case] expected: bool,
    ) {
        let by_status = AttemptFailure::from_status(status, None);
        let failure = match cause {
            None => by_status,
            Some(cause) => AttemptFailure { upstream_status: Some(status), ..AttemptFailure::of_cause(cause) },
        };
        let observation = Observation::from(&failure);
        let is_credentials = matches!(observation, Observation::Failed { class: FailureClass::Credentials, .. });
        assert_eq!((is_credentials, AttemptError::from(&failure).is_rejected_credential()), (expected, expected));
    }

    #[test]
    fn attempt_error_shows_status_and_cause() {
        let shown = |failure: &AttemptFailure| AttemptError::from(failure).to_string();
        assert_eq!(shown(&AttemptFailure::from_status(401, None)), "401");
        assert_eq!(
            shown(&AttemptFailure::from_status(402, None)),
            "402 (the account at the provider has no balance, credit or quota left)"
        );
        let unresolved = AttemptFailure::of_cause(FailureCause::NameNotFound);
        assert_eq!(shown(&unresolved), "a connection error (the host name was not found)");
    }
}

#[cfg(test)]
mod bound_excess_tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn raised_bound_follows_hidden_prompts_and_shorter_tokens() {
        let hidden_prompt = BoundExcess::observed(231, 4_000).unwrap();
        assert_eq!(hidden_prompt, BoundExcess { ratio_milli: 17_317, tokens: 3_769 });
        assert_eq!([231, 100, 100_000].map(|bound| hidden_prompt.raise(bound)), [4_000, 1_732, 103_769]);
        assert_eq!(BoundExcess::observed(231, 231), None);
        assert_eq!(BoundExcess::observed(0, 5), None, "nothing was sent");
        let absurd = BoundExcess::observed(231, 1_000_000_000).unwrap();
        assert_eq!(absurd.raise(231), 231_000, "at most a thousand times");
        assert_eq!(absurd.raise(u64::MAX), u64::MAX);
    }

    #[test]
    fn excess_is_reported_once_and_expires_after_one_to_two_periods() {
        let excess = |counted| BoundExcess::observed(100, counted).unwrap();
        let mut excesses = BoundExcesses::default();
        assert_eq!(excesses.highest(PERIOD), None);
        assert_eq!(excesses.add(excess(300), PERIOD), Some(excess(300)));
        assert_eq!(excesses.add(excess(200), PERIOD * 2), None, "it is raised already");
        assert_eq!(excesses.highest(PERIOD * 2), Some(excess(300)));
        assert_eq!(excesses.highest(PERIOD * 3), Some(excess(200)), "the higher one has expired");
        assert_eq!(excesses.highest(PERIOD), Some(excess(300)), "a clock that was read earlier");
        assert_eq!(excesses.highest(PERIOD * 4), None);
        assert_eq!(excesses.add(excess(150), PERIOD * 4), Some(excess(150)), "anew");
    }

    proptest! {
        #[test]
        fn raised_bound_covers_the_count_that_raised_it(counts in prop::collection::vec((1_u64..1_000_000, 1_u64..1_000_000), 1..20)) {
            let mut excesses = BoundExcesses::default();
            for (bound, counted) in counts {
                let Some(excess) = BoundExcess::observed(bound, counted) else { continue };
                excesses.add(excess, Duration::ZERO);
                let raised = excesses.highest(Duration::ZERO).unwrap().raise(bound);
                prop_assert!(raised >= counted.min(bound.saturating_mul(1_000)), "{raised} of {counted}");
            }
        }
    }
}
