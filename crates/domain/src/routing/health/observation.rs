//! What an attempt told about its endpoint.

use std::time::Duration;

use crate::routing::{AttemptFailure, AttemptFailureKind};

/// What an attempt told about its endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Observation {
    /// It answered, and the answer was good.
    Succeeded {
        /// From the call to the whole answer.
        latency: Duration,
        /// Input and output tokens together; 0 where the provider counted none, which says nothing on throughput.
        tokens: u64,
    },
    /// It broke or took too long.
    Failed,
    /// It turned our credentials down.
    Unauthorised,
    /// It has too much to do, or we asked too often.
    Overloaded {
        /// How long the provider asked to wait; nothing and zero are a failure like another.
        retry_after: Option<Duration>,
    },
    /// Nothing about the endpoint: the caller left, another one was quicker, or the request itself was refused.
    Neutral,
}

impl Observation {
    /// True for all but an answer and what says nothing.
    pub fn is_failure(&self) -> bool {
        matches!(self, Self::Failed | Self::Unauthorised | Self::Overloaded { .. })
    }
}

impl From<&AttemptFailure> for Observation {
    fn from(failure: &AttemptFailure) -> Self {
        match failure.kind {
            AttemptFailureKind::Broken | AttemptFailureKind::TimedOut => Self::Failed,
            AttemptFailureKind::Unauthorised => Self::Unauthorised,
            AttemptFailureKind::Overloaded => Self::Overloaded { retry_after: failure.retry_after },
            AttemptFailureKind::Refused
            | AttemptFailureKind::NotAnswered
            | AttemptFailureKind::CallerGone
            | AttemptFailureKind::Simulated(_) => Self::Neutral,
        }
    }
}
