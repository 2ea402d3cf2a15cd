//! Rate limits over HTTP: 429 and its headers.

use domain::api_key::Principal;
use domain::decision::TakenTokens;
use domain::rate::RateLimitError;
use domain::usage::RejectionReason;

use super::error::ApiError;
use crate::gateway::Gateway;

/// Counts a request of an authenticated caller, or rejects it.
pub(crate) async fn count_request(gateway: &Gateway, caller: &Principal) -> Result<(), ApiError> {
    gateway.services.count_request.execute(caller).await.map_err(|error| rejection(gateway, error))
}

/// Reserves the estimated tokens of a Decisions request with a body of `body_bytes`, or rejects it.
pub(crate) async fn take_tokens(
    gateway: &Gateway,
    caller: &Principal,
    body_bytes: usize,
) -> Result<TakenTokens, ApiError> {
    gateway.services.meter_tokens.execute(caller, body_bytes).await.map_err(|error| rejection(gateway, error))
}

fn rejection(gateway: &Gateway, error: RateLimitError) -> ApiError {
    match error {
        RateLimitError::Exceeded(limited) => {
            gateway.services.recorder.record_rate_limit(&limited);
            ApiError::rate_limited(limited, gateway.services.clock.now().timestamp_millis())
        }
        RateLimitError::Unavailable { retry_after } => ApiError::from_kind(error.kind())
            .reason(RejectionReason::StoreUnavailable)
            .retry_after(retry_after)
            .caused_by(error),
    }
}
