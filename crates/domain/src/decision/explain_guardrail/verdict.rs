//! The explanation of a request: the result, and the rule that decides.

use std::sync::Arc;

use crate::authority::Restricted;
use crate::budget::{LimitExceeded, LimitStatus};
use crate::decision::{FilteringError, SubmitDecisionError};
use crate::error::{ErrorKind, StoreError};
use crate::guardrail::Forbidden;
use crate::guardrail::filter::{Blocked, InvalidFilters};
use crate::ids::GuardrailId;
use crate::model::{ModelId, or_nearest};
use crate::money::Usd;
use crate::naming::NameError;
use crate::question::ProviderInput;
use crate::routing::{Endpoint, UnsupportedQuestions};
use crate::usage::Finding;

/// The result of a request under a guardrail, without sending it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Explanation {
    /// True if the request would be sent.
    pub allowed: bool,
    /// The rule that rejects it: the first one in the order of the checks.
    pub decided_by: Option<Decider>,
    /// The guardrails that apply, the workspace's first.
    pub guardrails: Vec<GuardrailId>,
    /// The resolved model. `None` if a model name cannot be resolved to a usable model and the request is rejected
    /// before its models are resolved.
    pub model: Option<ModelId>,
    /// The verdict on every endpoint of the requested models.
    pub endpoints: Vec<EndpointVerdict>,
    /// The findings of filters that redact or flag; empty if a filter blocks.
    pub findings: Vec<Finding>,
    /// The provider input after redaction. `None` if a filter blocks.
    pub provider_input: Option<Arc<ProviderInput>>,
    /// The status of the key's limits; empty without a key.
    pub limits: Vec<LimitStatus>,
    /// The first hold of the request, if it would be sent.
    pub bound: Option<Usd>,
    /// True if that hold fits into every limit now; `None` without a key or a hold.
    pub bound_fits: Option<bool>,
}

/// The verdict on an endpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndpointVerdict {
    /// The model that it serves.
    pub model: ModelId,
    /// The endpoint.
    pub endpoint: Arc<Endpoint>,
    /// The verdict.
    pub verdict: Verdict,
}

/// The verdict on an endpoint: usable, or the reason why not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It may be tried.
    Allowed,
    /// A guardrail forbids it.
    Forbidden(Forbidden),
    /// It has no price, and a spending limit applies.
    Unpriced,
    /// The request's preferences exclude it.
    Unwanted,
    /// It does not support the request.
    Unsupported(UnsupportedQuestions),
}

impl Verdict {
    /// Returns its name in the API and the CLI.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Allowed => "allowed",
            Self::Forbidden(_) => "forbidden",
            Self::Unpriced => "unpriced",
            Self::Unwanted => "excluded_by_preferences",
            Self::Unsupported(_) => "unsupported",
        }
    }
}

/// The rule that rejects a request.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Decider {
    /// The key is not usable.
    #[error("{0}")]
    Key(KeyRejection),
    /// A content filter blocks the request.
    #[error("{0}")]
    Filter(Blocked),
    /// Guardrails forbid every endpoint. Contains the rule that forbids the first one.
    #[error("{0}")]
    Rule(Forbidden),
    /// No endpoint of the models has a price, and a spending limit applies.
    #[error("no endpoint has a price, and the key has a limit")]
    Unpriced,
    /// The request's preferences exclude every endpoint.
    #[error("the provider preferences leave no endpoint")]
    Preferences,
    /// No endpoint supports the request.
    #[error("no endpoint takes {0}")]
    Capability(UnsupportedQuestions),
    /// The model has no endpoint.
    #[error("no endpoint is configured for the model")]
    NoEndpoint,
    /// The hold exceeds a limit.
    #[error("{0}")]
    Budget(LimitExceeded),
}

impl Decider {
    /// Returns the name of the rule in the API and the CLI: a member of the guardrail's record, if it is a guardrail
    /// rule.
    pub fn rule(&self) -> &'static str {
        match self {
            Self::Key(rejection) => rejection.as_str(),
            Self::Filter(_) => "content_filter",
            Self::Rule(forbidden) => forbidden.rule,
            Self::Unpriced => "unpriced",
            Self::Preferences => "preferences",
            Self::Capability(_) => "capability",
            Self::NoEndpoint => "no_endpoint",
            Self::Budget(_) => "budget",
        }
    }

    /// Returns the guardrail, if the rule or the limit belongs to one.
    pub fn guardrail_id(&self) -> Option<GuardrailId> {
        match self {
            Self::Filter(blocked) => Some(blocked.guardrail_id),
            Self::Rule(forbidden) => Some(forbidden.guardrail_id),
            Self::Budget(exceeded) => exceeded.guardrail_id,
            Self::Key(_) | Self::Unpriced | Self::Preferences | Self::Capability(_) | Self::NoEndpoint => None,
        }
    }
}

/// The reason why a key is not usable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum KeyRejection {
    /// It is disabled.
    #[error("the key is disabled")]
    Disabled,
    /// It has expired.
    #[error("the key has expired")]
    Expired,
    /// Its workspace is suspended.
    #[error("the key's workspace is suspended")]
    WorkspaceSuspended,
}

impl KeyRejection {
    /// Returns its name in the API and the CLI.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Disabled => "key_disabled",
            Self::Expired => "key_expired",
            Self::WorkspaceSuspended => "workspace_suspended",
        }
    }
}

/// The error of explaining a guardrail.
#[derive(Debug, thiserror::Error)]
pub enum ExplainGuardrailError {
    /// The caller lacks the right.
    #[error(transparent)]
    Restricted(#[from] Restricted),
    /// No guardrail or several ones have the name.
    #[error("guardrail {0}")]
    Name(#[from] NameError),
    /// No active inference key has this hash.
    #[error("key_hash is not an active inference key")]
    UnknownKey,
    /// No model has this name. A Decisions request would fail as well.
    #[error("Model not found{}", or_nearest(.nearest))]
    UnknownModel {
        /// Up to three ids of callable models with a similar spelling.
        nearest: Vec<String>,
    },
    /// The model does not answer Decisions requests, for the reason in the inner error.
    #[error(transparent)]
    UnusableModel(Box<SubmitDecisionError>),
    /// The stored filters of the guardrail no longer compile.
    #[error("the guardrail's filters cannot be used: {0}")]
    Filters(#[from] InvalidFilters),
    /// The filters did not finish.
    #[error(transparent)]
    Filtering(#[from] FilteringError),
    /// The store failed.
    #[error("a store failed")]
    Store(#[from] StoreError),
}

impl From<SubmitDecisionError> for ExplainGuardrailError {
    fn from(error: SubmitDecisionError) -> Self {
        match error {
            SubmitDecisionError::UnknownModel { nearest } => Self::UnknownModel { nearest },
            SubmitDecisionError::Store(error) => Self::Store(error),
            other => Self::UnusableModel(Box::new(other)),
        }
    }
}

impl ExplainGuardrailError {
    /// Returns its kind.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Restricted(error) => error.kind(),
            Self::UnknownKey => ErrorKind::InvalidRequest,
            Self::UnusableModel(error) => error.kind(),
            Self::Filtering(why) => why.kind(),
            Self::Name(error) => error.kind(),
            Self::UnknownModel { .. } => ErrorKind::NotFound,
            Self::Filters(_) => ErrorKind::Internal,
            Self::Store(error) => error.kind(),
        }
    }
}
