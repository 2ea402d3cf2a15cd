//! How often a caller may ask, and for how much.

use std::sync::Arc;

use domain::api_key::Principal;
use domain::decision::{Decision, SubmitDecisionError};
use domain::rate::{RateLimited, RateLimiter, RateSubject};
use domain::usage::AttemptRecord;

use super::error::ApiError;
use crate::gateway::Gateway;

/// A token is about so many bytes of a body: what is taken in advance, until the true number is known.
const BYTES_OF_A_TOKEN: usize = 4;

/// Counts a request of an authenticated caller, or refuses it.
pub(crate) fn count_request(gateway: &Gateway, caller: &Principal) -> Result<(), ApiError> {
    let subject = subject_of(gateway, caller);
    gateway.services.rate_limiter.request(&subject).map_err(|limited| refusal(gateway, limited))
}

/// Takes tokens in advance for a Decisions request with a body of so many bytes, or refuses it; it is no request then.
pub(crate) fn take_tokens(gateway: &Gateway, caller: &Principal, body_bytes: usize) -> Result<TakenTokens, ApiError> {
    let subject = subject_of(gateway, caller);
    let taken = estimated_tokens(body_bytes);
    let limiter = &gateway.services.rate_limiter;
    limiter.tokens(&subject, taken).map_err(|limited| refusal(gateway, limited))?;
    Ok(TakenTokens { limiter: Arc::clone(limiter), subject, taken, used: 0 })
}

/// A request takes one token at least: a smaller body would pass a limit that has nothing left.
fn estimated_tokens(body_bytes: usize) -> u64 {
    u64::try_from(body_bytes / BYTES_OF_A_TOKEN).unwrap_or(u64::MAX).max(1)
}

fn subject_of(gateway: &Gateway, caller: &Principal) -> RateSubject {
    RateSubject::of(caller, gateway.services.key_rates, gateway.services.workspace_rates)
}

fn refusal(gateway: &Gateway, limited: RateLimited) -> ApiError {
    gateway.services.recorder.rate_limited(&limited);
    ApiError::rate_limited(limited, gateway.services.clock.now().timestamp_millis())
}

/// Tokens that were taken in advance. However the request ends, dropping this puts them right: by what was used, or as
/// if there had been no request where nobody was asked.
pub(crate) struct TakenTokens {
    limiter: Arc<dyn RateLimiter>,
    subject: RateSubject,
    taken: u64,
    used: u64,
}

impl TakenTokens {
    /// What the request used in the end.
    pub(crate) fn settle(mut self, end: &Result<Decision, SubmitDecisionError>) {
        self.used = match end {
            Ok(decision) => decision.input_tokens.saturating_add(decision.output_tokens),
            Err(SubmitDecisionError::Attempts(failed)) => tokens_of(&failed.attempts),
            // Nobody can tell whether a provider was asked, and for how much: the estimate stands.
            Err(
                SubmitDecisionError::Store(_) | SubmitDecisionError::ChargeOutOfRange | SubmitDecisionError::Defect(_),
            ) => self.taken,
            Err(_) => 0,
        };
    }
}

fn tokens_of(attempts: &[AttemptRecord]) -> u64 {
    let each = attempts.iter().map(|attempt| attempt.input_tokens.saturating_add(attempt.output_tokens));
    each.fold(0, u64::saturating_add)
}

impl Drop for TakenTokens {
    fn drop(&mut self) {
        self.limiter.correct(&self.subject, self.taken, self.used);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn token_estimate_is_one_when_the_body_is_shorter_than_a_token() {
        let estimates = [(0, 1), (1, 1), (3, 1), (4, 1), (7, 1), (8, 2), (400, 100)];
        for (body_bytes, tokens) in estimates {
            assert_eq!(estimated_tokens(body_bytes), tokens, "{body_bytes} bytes");
        }
    }
}
