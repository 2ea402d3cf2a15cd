//! What can go wrong with Decisions.

use std::time::Duration;

use crate::error::{ErrorKind, StoreError};
use crate::ids::DecisionId;
use crate::model::ModelId;
use crate::routing::AttemptFailureKind;
use crate::usage::AttemptRecord;

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

/// How many endpoints each step of routing left.
pub type RoutingFunnel = Vec<(&'static str, usize)>;

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
    pub attempts: Vec<AttemptRecord>,
    /// The shortest wait that an overloaded provider asked for.
    pub retry_after: Option<Duration>,
    /// How the last attempt failed.
    pub last: AttemptFailureKind,
}

/// Why a Decisions request was not answered.
#[derive(Debug, thiserror::Error)]
pub enum SubmitDecisionError {
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
    /// The questions are opaque and no endpoint of the model takes such.
    #[error("no endpoint of {0} takes questions of this form; use typed questions (noul, choice, score)")]
    OpaqueQuestions(ModelId),
    /// No endpoint serves the model.
    #[error("no endpoint is configured for {model}")]
    NoEndpoint {
        /// The model.
        model: ModelId,
        /// What each step left.
        funnel: RoutingFunnel,
    },
    /// Every attempt failed.
    #[error("every attempt at a provider failed")]
    Attempts(FailedAttempts),
    /// What the provider says it used is beyond any price.
    #[error("the charge leaves the range of money")]
    ChargeOutOfRange,
    /// The usage record could not be stored, so no answer may leave.
    #[error("the usage record could not be stored")]
    Store(#[from] StoreError),
}

impl SubmitDecisionError {
    /// Its meaning.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::UnknownModel { .. } | Self::NoEndpoint { .. } => ErrorKind::NotFound,
            Self::NotADecisionModel(_) | Self::VariablePrice(_) | Self::OpaqueQuestions(_) => ErrorKind::InvalidRequest,
            Self::Attempts(failed) => failed.kind,
            Self::ChargeOutOfRange => ErrorKind::ProviderFailure,
            Self::Store(error) => error.kind(),
        }
    }
}
