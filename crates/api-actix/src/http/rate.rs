//! Rate limits over HTTP: 429 and its headers.

use domain::api_key::Principal;
use domain::decision::TakenTokens;
use domain::rate::RateLimited;

use super::error::ApiError;
use crate::gateway::Gateway;

/// Counts a request of an authenticated caller, or rejects it.
pub(crate) fn count_request(gateway: &Gateway, caller: &Principal) -> Result<(), ApiError> {
    gateway.services.count_request.execute(caller).map_err(|limited| rejection(gateway, limited))
}

/// Reserves the estimated tokens of a Decisions request with a body of `body_bytes`, or rejects it.
pub(crate) fn take_tokens(gateway: &Gateway, caller: &Principal, body_bytes: usize) -> Result<TakenTokens, ApiError> {
    gateway.services.meter_tokens.execute(caller, body_bytes).map_err(|limited| rejection(gateway, limited))
}

fn rejection(gateway: &Gateway, limited: RateLimited) -> ApiError {
    gateway.services.recorder.record_rate_limit(&limited);
    ApiError::rate_limited(limited, gateway.services.clock.now().timestamp_millis())
}
