//! A request: what the filters leave of it, and from its plan on also its id, its payer and its hold.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use chrono::{DateTime, Utc};

use crate::api_key::InferenceKey;
use crate::budget::{HoldRequest, LimitExceeded, Payer};
use crate::decision::{ClientConnection, DecisionRequest, RequestOrigin};
use crate::guardrail::Policy;
use crate::guardrail::filter::Aliases;
use crate::ids::DecisionId;
use crate::money::Usd;
use crate::question::ProviderInput;
use crate::usage::{AttemptRecord, Finding, RequestLabels};

/// The policy of a request, and what its content filters found and replaced.
pub(super) struct FilteredRequest {
    pub(super) policy: Option<Arc<Policy>>,
    /// The original input.
    pub(super) original: Arc<ProviderInput>,
    /// The names of questions and options that were replaced.
    pub(super) aliases: Aliases,
    /// The redacted and flagged matches.
    pub(super) findings: Vec<Finding>,
    /// The labels for the record.
    pub(super) labels: RequestLabels,
    /// The labels for destinations; `None` if they equal those of the record.
    pub(super) redacted_labels: Option<RequestLabels>,
}

/// A planned request, which has an id. The hold, the call and the settlement borrow it.
pub(super) struct Request {
    pub(super) id: DecisionId,
    pub(super) origin: RequestOrigin,
    pub(super) arrived_at: DateTime<Utc>,
    /// The begin of its deadline, on the monotonic clock.
    pub(super) began: Duration,
    /// The client that waits for the answer.
    pub(super) client: Arc<dyn ClientConnection>,
    pub(super) payer: Payer,
    /// True if a limit applies.
    pub(super) is_limited: bool,
    /// The request with the filtered input, which is sent.
    pub(super) body: DecisionRequest,
    pub(super) filtered: FilteredRequest,
    pub(super) hold: Mutex<RequestHold>,
}

/// The hold of a request, before and after its grant.
#[derive(Debug, Default)]
pub(super) struct RequestHold {
    /// The time of the grant, by the store's clock; `None` before a grant.
    pub(super) at: Option<DateTime<Utc>>,
    pub(super) amount: Usd,
    /// The limit that rejected the last increase, and the latency of the ledger.
    pub(super) rejection: Option<(LimitExceeded, Duration)>,
}

/// The reason why an attempt was not made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HoldRejection {
    /// A limit has no room for it: [`RequestHold::rejection`].
    LimitExceeded,
    /// The ledger failed.
    Store,
}

impl FilteredRequest {
    pub(super) fn policy(&self) -> Option<&Policy> {
        self.policy.as_deref()
    }

    /// Returns the payer of a request of this key, and whether a limit applies.
    pub(super) fn payer(&self, key: &InferenceKey) -> (Payer, bool) {
        let guardrails = self.policy().map(Policy::ids).unwrap_or_default();
        let payer = Payer { workspace_id: key.workspace_id(), api_key: key.id(), guardrails };
        (payer, key.limited() || self.policy().is_some_and(Policy::limits_money))
    }
}

impl Request {
    pub(super) fn lock_hold(&self) -> MutexGuard<'_, RequestHold> {
        self.hold.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the request to the ledger for a hold of `amount` for these attempts, of which the first `begun` begin now.
    pub(super) fn hold_request(&self, amount: Usd, attempts: &[AttemptRecord], begun: usize) -> HoldRequest {
        HoldRequest {
            id: self.id.clone(),
            payer: self.payer.clone(),
            amount,
            is_limited: self.is_limited,
            request_id: self.origin.request_id.clone(),
            requested_model: self.body.model.clone(),
            client_address: self.origin.client_address,
            attempts: attempts.into(),
            begun,
        }
    }
}
