//! Errors of Decisions requests.

use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};

use crate::budget::LimitExceeded;
use crate::error::{ErrorKind, StoreError};
use crate::guardrail::Forbidden;
use crate::guardrail::filter::Blocked;
use crate::ids::DecisionId;
use crate::model::{ModelId, or_nearest};
use crate::money::Usd;
use crate::preset::PresetStatus;
use crate::routing::{
    AttemptFailureKind, FailureCause, RoutingFunnel, ThrottledEndpoints, UnknownProvider, UnsupportedQuestions,
};
use crate::system::TaskError;
use crate::usage::{AttemptRecord, Finding, UsageSource};

/// A validation error of a Decisions request.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{path}: {fault}")]
pub struct InvalidDecision {
    /// The path of the invalid value, such as `questions.tone.criteria`.
    pub path: String,
    /// The violation, as a fragment: `must be a string`. Contains no value of the client.
    pub fault: String,
}

impl InvalidDecision {
    /// Creates a validation error at a path.
    pub fn new(path: impl Into<String>, fault: impl Into<String>) -> Self {
        Self { path: path.into(), fault: fault.into() }
    }
}

/// The failure of a request whose attempts all failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FailedAttempts {
    /// The id of the usage record.
    pub id: DecisionId,
    /// The kind of the error.
    pub kind: ErrorKind,
    /// The display name of the last provider.
    pub provider_name: String,
    /// Every attempt, in order.
    pub attempts: Arc<[AttemptRecord]>,
    /// The cause of each attempt's failure, if an operator can mend it.
    pub causes: Box<[Option<FailureCause>]>,
    /// The charge for attempts that the providers may bill.
    pub cost: Usd,
    /// The source of the charged token counts.
    pub usage_source: UsageSource,
    /// The shortest `Retry-After` of an overloaded provider.
    pub retry_after: Option<Duration>,
    /// The failure of the last attempt.
    pub last: AttemptFailureKind,
    /// The number of endpoints left after each routing step.
    pub funnel: RoutingFunnel,
    /// The findings of content filters.
    pub findings: Vec<Finding>,
}

/// The most characters of a slug in an error.
const MAX_SLUG_CHARS: usize = 50;

/// The error of a Decisions request.
#[derive(Debug, thiserror::Error)]
pub enum SubmitDecisionError {
    /// A content filter blocked the request. It was not sent.
    #[error(transparent)]
    Blocked(#[from] Blocked),
    /// The content filters did not finish. The request was not sent.
    #[error(transparent)]
    Filtering(#[from] FilteringError),
    /// The key's guardrails forbid every endpoint.
    #[error("{model} may not be used with this key: {forbidden}")]
    Forbidden {
        /// The model.
        model: ModelId,
        /// The rule that forbids the first endpoint.
        forbidden: Forbidden,
        /// The number of endpoints left after each routing step.
        funnel: RoutingFunnel,
    },
    /// The key has a spending limit, and the model has no price.
    #[error(
        "{0} has no price, and the key has a limit: the operator can set input_usd_per_million_tokens and \
         output_usd_per_million_tokens of its endpoint, import a catalogue row with its price, or set \
         money.default_usd_per_token or money.unpriced_models"
    )]
    Unpriced(ModelId),
    /// The possible cost of the request exceeds a limit.
    #[error(transparent)]
    LimitExceeded(LimitExceeded),
    /// No model has this name.
    #[error("Model not found{}", or_nearest(.nearest))]
    UnknownModel {
        /// Up to three ids of callable models with a similar spelling.
        nearest: Vec<String>,
    },
    /// The workspace of the key has no active preset of this name.
    #[error("{}", preset_fault(.slug, .status.map(PresetStatus::as_str)))]
    UnknownPreset {
        /// The slug in the request.
        slug: String,
        /// The status of the preset; `None` if there is none.
        status: Option<PresetStatus>,
    },
    /// The model exists, but does not answer Decisions requests.
    #[error("{0} does not answer Decisions requests: decisions is not among its output modalities")]
    NotADecisionModel(ModelId),
    /// The price depends on the routed model, so no charge can be computed.
    #[error("{0} has a variable price and cannot be used for Decisions")]
    VariablePrice(ModelId),
    /// No endpoint of the model supports the request.
    #[error("no endpoint of {model} takes {unsupported}")]
    Unsupported {
        /// The model.
        model: ModelId,
        /// The unsupported part of the request.
        unsupported: UnsupportedQuestions,
        /// The number of endpoints left after each routing step.
        funnel: RoutingFunnel,
    },
    /// The client's preferences exclude every endpoint.
    #[error("no endpoint of {model} is left by the provider preferences{}", or_unknown(.unknown.as_ref()))]
    ExcludedByPreferences {
        /// The model.
        model: ModelId,
        /// The first required provider that does not exist.
        unknown: Option<UnknownProvider>,
        /// The number of endpoints left after each routing step.
        funnel: RoutingFunnel,
    },
    /// All endpoints of the model are throttled and rejected the request.
    #[error("no endpoint of {model} is available: {endpoints}")]
    Throttled {
        /// The model.
        model: ModelId,
        /// The endpoints, and when to retry.
        endpoints: ThrottledEndpoints,
        /// The number of endpoints left after each routing step.
        funnel: RoutingFunnel,
    },
    /// No endpoint serves the model.
    #[error("no endpoint is configured for {model}{}", or_nearest(.nearest))]
    NoEndpoint {
        /// The model.
        model: ModelId,
        /// Up to three ids of callable models, the most similar first.
        nearest: Vec<String>,
        /// The number of endpoints left after each routing step.
        funnel: RoutingFunnel,
    },
    /// The records of the workspace reached the daily limit on their bytes.
    #[error(transparent)]
    RecordQuotaExceeded(#[from] RecordQuotaExceeded),
    /// Every attempt failed.
    #[error("every attempt at a provider failed")]
    Attempts(Box<FailedAttempts>),
    /// The usage that the provider reported is too large for a charge.
    #[error("the charge exceeds the range of amounts")]
    ChargeOutOfRange,
    /// An internal error of this service.
    #[error("internal error: {0}")]
    Defect(&'static str),
    /// The usage record could not be stored, so the answer is not returned.
    #[error("the usage record could not be stored")]
    Store(#[from] StoreError),
}

/// Returns the reason why a preset cannot be used.
fn preset_fault(slug: &str, status: Option<&str>) -> String {
    let slug: String = slug.chars().take(MAX_SLUG_CHARS).collect();
    match status {
        Some(status) => format!("The preset {slug:?} is {status}"),
        None => format!("The workspace of this key has no preset {slug:?}"),
    }
}

/// Returns the end of a sentence that names an unknown provider; empty without one.
fn or_unknown(unknown: Option<&UnknownProvider>) -> String {
    unknown.map(|unknown| format!(": {unknown}")).unwrap_or_default()
}

/// The error of a workspace whose records reached the limit on their bytes per UTC day.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "Rate limit exceeded: the usage records of this workspace take {used} of {limit} bytes today (UTC); send less in \
     trace, or wait for the next day"
)]
pub struct RecordQuotaExceeded {
    /// The limit, in bytes.
    pub limit: u64,
    /// The bytes of today's records.
    pub used: u64,
    /// The start of the next day.
    pub resets_at: DateTime<Utc>,
    /// The time until `resets_at`.
    pub resets_in: Duration,
}

/// The reason why the content filters did not finish.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum FilteringError {
    /// The deadline of the request passed.
    #[error("the deadline passed before the content filters finished")]
    TimedOut,
    /// The client disconnected.
    #[error("the client disconnected before the content filters finished")]
    ClientDisconnected,
    /// The task of the filters did not run to its end.
    #[error("the content filters did not finish")]
    TaskFailed(#[source] TaskError),
}

impl FilteringError {
    /// Returns its kind.
    pub fn kind(self) -> ErrorKind {
        match self {
            Self::TimedOut => ErrorKind::TimedOut,
            Self::ClientDisconnected => ErrorKind::ClientDisconnected,
            Self::TaskFailed(error) => error.kind(),
        }
    }
}

impl SubmitDecisionError {
    /// Returns its kind.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::UnknownModel { .. }
            | Self::UnknownPreset { .. }
            | Self::NoEndpoint { .. }
            | Self::ExcludedByPreferences { .. } => ErrorKind::NotFound,
            Self::NotADecisionModel(_) | Self::VariablePrice(_) | Self::Unsupported { .. } => ErrorKind::InvalidRequest,
            Self::Blocked(blocked) if blocked.is_too_large => ErrorKind::PayloadTooLarge,
            Self::Blocked(_) | Self::Forbidden { .. } | Self::Unpriced(_) => ErrorKind::Forbidden,
            Self::LimitExceeded(_) => ErrorKind::InsufficientCredits,
            Self::RecordQuotaExceeded(_) => ErrorKind::RateLimited,
            Self::Throttled { .. } => ErrorKind::Unavailable,
            Self::Attempts(failed) => failed.kind,
            Self::ChargeOutOfRange => ErrorKind::ProviderFailure,
            Self::Defect(_) => ErrorKind::Internal,
            Self::Filtering(why) => why.kind(),
            Self::Store(error) => error.kind(),
        }
    }
}
