//! Rate limits of requests.

use std::sync::Arc;

use super::Principal;
use crate::ids::ApiKeyId;
use crate::rate::{DefaultRates, RateLimitError, RateLimiter, RateLimits, RateSubject};

/// Counts requests against the rate limits of their callers.
pub struct CountRequest {
    limiter: Arc<dyn RateLimiter>,
    defaults: DefaultRates,
}

impl CountRequest {
    /// Wires the port. `defaults` apply to callers without own rates.
    pub fn new(limiter: Arc<dyn RateLimiter>, defaults: DefaultRates) -> Self {
        Self { limiter, defaults }
    }

    /// Counts a request of an authenticated caller.
    ///
    /// # Errors
    /// The exceeded rate limit, or shared counts that are unavailable.
    pub async fn execute(&self, caller: &Principal) -> Result<(), RateLimitError> {
        self.limiter.count_request(&RateSubject::of(caller, self.defaults)).await
    }
}

impl RateSubject {
    /// Returns the rate limits of a caller, with the operator's defaults for keys and workspaces.
    pub fn of(caller: &Principal, defaults: DefaultRates) -> Self {
        match caller {
            Principal::Inference(key) => Self {
                api_key: key.id(),
                key: key.rates().or(defaults.key),
                workspace: Some((key.workspace_id(), key.workspace_rates().or(defaults.workspace))),
            },
            Principal::Management(key) => Self { api_key: key.id(), key: defaults.key, workspace: None },
            // The nil id is that of no key.
            Principal::Operator(_) => {
                let nil = ApiKeyId::from_uuid(uuid::Uuid::nil());
                Self { api_key: nil, key: RateLimits::default(), workspace: None }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{InferenceKey, ManagementKey};
    use super::*;
    use crate::ids::WorkspaceId;
    use crate::rate::MockRateLimiter;
    use crate::testing::{FixedRateLimiter, SequentialIds};

    #[tokio::test]
    async fn execute_rejects_requests_above_the_limit_of_each_caller() {
        let counts = CountRequest::new(Arc::new(FixedRateLimiter::new(2)), DefaultRates::default());
        let caller = |number| Principal::Management(ManagementKey::for_tests(SequentialIds::key(number)));
        for number in [1, 2] {
            assert!(counts.execute(&caller(number)).await.is_ok() && counts.execute(&caller(number)).await.is_ok());
            let rejected = counts.execute(&caller(number)).await.unwrap_err();
            assert_eq!(rejected.exceeded().map(|limited| limited.limit), Some(2));
        }
    }

    #[tokio::test]
    async fn execute_limits_workspaces_of_inference_keys_alone() {
        let per_minute = |requests| RateLimits { requests_per_minute: Some(requests), tokens_per_minute: None };
        let (id, workspace_id) = (SequentialIds::key(1), WorkspaceId::from_uuid(SequentialIds::uuid(1)));
        let callers = [
            (Principal::Inference(InferenceKey::for_tests(id, workspace_id)), Some((workspace_id, per_minute(9)))),
            (Principal::Management(ManagementKey::for_tests(id)), None),
        ];
        for (caller, workspace) in callers {
            let mut limiter = MockRateLimiter::new();
            let expected = RateSubject { api_key: id, key: per_minute(7), workspace };
            limiter.expect_count_request().withf(move |subject| *subject == expected).once().returning(|_| Ok(()));
            let defaults = DefaultRates { key: per_minute(7), workspace: per_minute(9) };
            CountRequest::new(Arc::new(limiter), defaults).execute(&caller).await.unwrap();
        }
    }
}
