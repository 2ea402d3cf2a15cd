//! What can go wrong with Decisions.

use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};

use crate::budget::LimitExceeded;
use crate::error::{ErrorKind, StoreError};
use crate::guardrail::Forbidden;
use crate::guardrail::filter::Blocked;
use crate::ids::DecisionId;
use crate::model::ModelId;
use crate::routing::RoutingFunnel;
use crate::routing::{AttemptFailureKind, Incapable, ThrottledEndpoints};
use crate::system::WorkLost;
use crate::usage::AttemptRecord;
use crate::usage::Finding;

/// A Decisions request whose form is at fault.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{path}: {fault}")]
pub struct InvalidDecision {
    /// Where, such as `questions.tone.criteria`.
    pub path: String,
    /// What, as a fragment: `must be a string`. Holds no value of the caller's.
    pub fault: String,
}

impl InvalidDecision {
    /// A fault at a path.
    pub fn new(path: impl Into<String>, fault: impl Into<String>) -> Self {
        Self { path: path.into(), fault: fault.into() }
    }
}

/// Attempts that all failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FailedAttempts {
    /// The id under which the usage record is found.
    pub id: DecisionId,
    /// What it means for the caller.
    pub kind: ErrorKind,
    /// Display name of the provider that was tried last.
    pub provider_name: String,
    /// Every attempt, in order.
    pub attempts: Arc<[AttemptRecord]>,
    /// The shortest wait that an overloaded provider asked for.
    pub retry_after: Option<Duration>,
    /// How the last attempt failed.
    pub last: AttemptFailureKind,
    /// What each step of routing left.
    pub funnel: RoutingFunnel,
    /// What content filters redacted or flagged.
    pub findings: Vec<Finding>,
}

/// Why a Decisions request was not answered.
#[derive(Debug, thiserror::Error)]
pub enum SubmitDecisionError {
    /// A content filter blocks it. Nothing was sent.
    #[error(transparent)]
    Blocked(#[from] Blocked),
    /// The content filters did not get to the end of it. Nothing was sent.
    #[error(transparent)]
    Unfiltered(#[from] Unfiltered),
    /// The key's guardrails let none of the endpoints through.
    #[error("{model} may not be used with this key: {forbidden}")]
    Forbidden {
        /// The model.
        model: ModelId,
        /// The rule that forbids the first of them.
        forbidden: Forbidden,
        /// What each step left.
        funnel: RoutingFunnel,
    },
    /// The key is limited, and nobody has named a price for the model.
    #[error(
        "{0} has no price, so that no limit of this key can hold it: the operator can set prompt_price and \
         completion_price of its endpoint, import a catalogue row with its price, or set money.unpriced_models"
    )]
    Unpriced(ModelId),
    /// A limit leaves no room for what the request may come to.
    #[error(transparent)]
    LimitExceeded(LimitExceeded),
    /// No model of that name.
    #[error("there is no such model")]
    UnknownModel {
        /// Up to three ids of decision models that are spelled alike.
        nearest: Vec<String>,
    },
    /// The model exists and answers no Decisions requests.
    #[error("{0} does not answer Decisions requests: decisions is not among its output modalities")]
    NotADecisionModel(ModelId),
    /// The price depends on what is routed to, so no charge can be computed.
    #[error("{0} has a variable price and cannot be used for Decisions")]
    VariablePrice(ModelId),
    /// No endpoint of the model can carry the request as it is.
    #[error("no endpoint of {model} takes {incapable}")]
    Incapable {
        /// The model.
        model: ModelId,
        /// What is beyond them.
        incapable: Incapable,
        /// What each step left.
        funnel: RoutingFunnel,
    },
    /// The caller's preferences leave no endpoint.
    #[error("no endpoint of {model} is left by the provider preferences")]
    NothingWanted {
        /// The model.
        model: ModelId,
        /// What each step left.
        funnel: RoutingFunnel,
    },
    /// All endpoints of the model are throttled and rejected the request.
    #[error("no endpoint of {model} is available: {endpoints}")]
    Throttled {
        /// The model.
        model: ModelId,
        /// The endpoints, and when to retry.
        endpoints: ThrottledEndpoints,
        /// What each step left.
        funnel: RoutingFunnel,
    },
    /// No endpoint serves the model.
    #[error("no endpoint is configured for {model}")]
    NoEndpoint {
        /// The model.
        model: ModelId,
        /// What each step left.
        funnel: RoutingFunnel,
    },
    /// The records of the workspace take as many bytes today as they may.
    #[error(transparent)]
    RecordsFull(#[from] RecordsFull),
    /// Every attempt failed.
    #[error("every attempt at a provider failed")]
    Attempts(Box<FailedAttempts>),
    /// What the provider says it used is beyond any price.
    #[error("the charge leaves the range of money")]
    ChargeOutOfRange,
    /// A defect of this service.
    #[error("a defect: {0}")]
    Defect(&'static str),
    /// The usage record could not be stored, so no answer may leave.
    #[error("the usage record could not be stored")]
    Store(#[from] StoreError),
}

/// The bound on the bytes that the records of a workspace take in a UTC day.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "Rate limit exceeded: the usage records of this workspace take {used} of {limit} bytes today (UTC); send less in \
     trace, or wait for the next day"
)]
pub struct RecordsFull {
    /// The bound, in bytes.
    pub limit: u64,
    /// The bytes that the records take.
    pub used: u64,
    /// The next day's beginning.
    pub resets_at: DateTime<Utc>,
    /// The time until then.
    pub resets_in: Duration,
}

/// Why content filters did not get to the end of a provider input.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Unfiltered {
    /// The deadline of the request passed first.
    #[error("the deadline passed before the content filters had ended")]
    TimedOut,
    /// The caller left first.
    #[error("the caller left before the content filters had ended")]
    CallerGone,
    /// They were not run, or not to their end.
    #[error("the content filters did not run to their end")]
    Lost(#[source] WorkLost),
}

impl Unfiltered {
    /// Its meaning.
    pub fn kind(self) -> ErrorKind {
        match self {
            Self::TimedOut => ErrorKind::TimedOut,
            Self::CallerGone => ErrorKind::CallerGone,
            Self::Lost(lost) => lost.kind(),
        }
    }
}

impl SubmitDecisionError {
    /// Its meaning.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::UnknownModel { .. } | Self::NoEndpoint { .. } | Self::NothingWanted { .. } => ErrorKind::NotFound,
            Self::NotADecisionModel(_) | Self::VariablePrice(_) | Self::Incapable { .. } => ErrorKind::InvalidRequest,
            Self::Blocked(_) | Self::Forbidden { .. } | Self::Unpriced(_) => ErrorKind::Forbidden,
            Self::LimitExceeded(_) => ErrorKind::InsufficientCredits,
            Self::RecordsFull(_) => ErrorKind::RateLimited,
            Self::Throttled { .. } => ErrorKind::Unavailable,
            Self::Attempts(failed) => failed.kind,
            Self::ChargeOutOfRange => ErrorKind::ProviderFailure,
            Self::Defect(_) => ErrorKind::Internal,
            Self::Unfiltered(why) => why.kind(),
            Self::Store(error) => error.kind(),
        }
    }
}
