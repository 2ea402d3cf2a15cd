//! What would become of a request.

use std::sync::Arc;

use crate::budget::{LimitExceeded, LimitStatus};
use crate::guardrail::Forbidden;
use crate::guardrail::filter::Blocked;
use crate::ids::GuardrailId;
use crate::model::ModelId;
use crate::money::Usd;
use crate::question::ProviderInput;
use crate::routing::{Endpoint, UnsupportedQuestions};
use crate::usage::Finding;

/// What would become of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Explanation {
    /// True where it would be tried.
    pub allowed: bool,
    /// What refuses it; the first of several, in the order in which they are looked at.
    pub decided_by: Option<Decider>,
    /// The guardrails that apply, the workspace's first.
    pub guardrails: Vec<GuardrailId>,
    /// What the name of the model means. `None` where a name of a model means none that can be asked, and the request
    /// is refused before anybody looks.
    pub model: Option<ModelId>,
    /// Every endpoint of the models that are asked for, with what becomes of it.
    pub endpoints: Vec<EndpointVerdict>,
    /// What filters would redact or flag; empty where one blocks.
    pub findings: Vec<Finding>,
    /// What would be sent: questions and state after redaction. `None` where a filter blocks.
    pub provider_input: Option<Arc<ProviderInput>>,
    /// The limits of the key as they stand; empty where no key is named.
    pub limits: Vec<LimitStatus>,
    /// What would be reserved for it at first, where it would be tried.
    pub bound: Option<Usd>,
    /// Whether that fits into every limit now; `None` where no key is named or nothing would be reserved.
    pub bound_fits: Option<bool>,
}

/// An endpoint, and what becomes of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndpointVerdict {
    /// The model that it stands for.
    pub model: ModelId,
    /// The endpoint.
    pub endpoint: Arc<Endpoint>,
    /// What becomes of it.
    pub verdict: Verdict,
}

/// What becomes of an endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It may be tried.
    Allowed,
    /// A guardrail forbids it.
    Forbidden(Forbidden),
    /// It has no price, and money is limited.
    Unpriced,
    /// The request's own preferences leave it out.
    Unwanted,
    /// It cannot carry the request.
    Unsupported(UnsupportedQuestions),
}

impl Verdict {
    /// Its name on every surface.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Allowed => "allowed",
            Self::Forbidden(_) => "forbidden",
            Self::Unpriced => "unpriced",
            Self::Unwanted => "unwanted",
            Self::Unsupported(_) => "incapable",
        }
    }
}

/// What refuses a request.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Decider {
    /// The key does not stand.
    #[error("{0}")]
    Key(KeyRejection),
    /// A filter blocks it.
    #[error("{0}")]
    Filter(Blocked),
    /// Guardrails leave no endpoint; the first rule that forbids one.
    #[error("{0}")]
    Rule(Forbidden),
    /// No endpoint of the models has a price, and money is limited.
    #[error("no endpoint has a price, and the key's money is limited")]
    Unpriced,
    /// The request's own preferences leave none.
    #[error("the provider preferences leave no endpoint")]
    Preferences,
    /// No endpoint can carry it.
    #[error("no endpoint takes {0}")]
    Capability(UnsupportedQuestions),
    /// The model has no endpoint.
    #[error("no endpoint is configured for the model")]
    NoEndpoint,
    /// A limit leaves no room.
    #[error("{0}")]
    Budget(LimitExceeded),
}

impl Decider {
    /// The rule's name on every surface: a member of the guardrail's record where it is one.
    pub fn rule(&self) -> &'static str {
        match self {
            Self::Key(refusal) => refusal.as_str(),
            Self::Filter(_) => "content_filter",
            Self::Rule(forbidden) => forbidden.rule,
            Self::Unpriced => "unpriced",
            Self::Preferences => "preferences",
            Self::Capability(_) => "capability",
            Self::NoEndpoint => "no_endpoint",
            Self::Budget(_) => "budget",
        }
    }

    /// The guardrail, where it is one's rule or budget.
    pub fn guardrail_id(&self) -> Option<GuardrailId> {
        match self {
            Self::Filter(blocked) => Some(blocked.guardrail_id),
            Self::Rule(forbidden) => Some(forbidden.guardrail_id),
            Self::Budget(overspent) => overspent.guardrail_id,
            Self::Key(_) | Self::Unpriced | Self::Preferences | Self::Capability(_) | Self::NoEndpoint => None,
        }
    }
}

/// Why a key does not stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum KeyRejection {
    /// It is switched off.
    #[error("the key is disabled")]
    Disabled,
    /// Its time is over.
    #[error("the key has expired")]
    Expired,
    /// Its workspace is suspended.
    #[error("the key's workspace is suspended")]
    WorkspaceSuspended,
}

impl KeyRejection {
    /// Its name on every surface.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Disabled => "key_disabled",
            Self::Expired => "key_expired",
            Self::WorkspaceSuspended => "workspace_suspended",
        }
    }
}
