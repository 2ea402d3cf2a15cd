//! Token rates: takes an estimate before a request and corrects it afterwards.

use std::sync::Arc;

use super::{Decision, SubmitDecisionError};
use crate::api_key::Principal;
use crate::rate::{DefaultRates, RateLimitError, RateLimiter, RateSubject};
use crate::usage::AttemptRecord;

/// The estimated bytes of a body per token.
const BYTES_PER_TOKEN: usize = 4;

/// Counts the tokens of Decisions requests against the rates of their callers.
///
/// The used tokens are known only after the request. So it takes an estimate by the size of the body in advance, which
/// [`TakenTokens`] corrects.
pub struct MeterTokens {
    limiter: Arc<dyn RateLimiter>,
    defaults: DefaultRates,
}

impl MeterTokens {
    /// Creates the use case. `defaults` applies to callers without configured rates.
    pub fn new(limiter: Arc<dyn RateLimiter>, defaults: DefaultRates) -> Self {
        Self { limiter, defaults }
    }

    /// Takes the estimated tokens of a request that was counted.
    ///
    /// # Errors
    /// The exceeded limit, or shared counts that are unavailable. The request no longer counts.
    pub async fn execute(&self, caller: &Principal, body_bytes: usize) -> Result<TakenTokens, RateLimitError> {
        let subject = RateSubject::of(caller, self.defaults);
        let taken = estimate_tokens(body_bytes);
        self.limiter.take_tokens(&subject, taken).await?;
        Ok(TakenTokens { limiter: Arc::clone(&self.limiter), subject, taken, used: 0 })
    }
}

/// Tokens taken in advance. Dropping it corrects them once: to the used tokens, or to zero if the request was cancelled
/// before a provider was called.
#[must_use = "dropping it returns the tokens"]
pub struct TakenTokens {
    limiter: Arc<dyn RateLimiter>,
    subject: RateSubject,
    taken: u64,
    used: u64,
}

impl TakenTokens {
    /// Corrects the taken tokens to those that the request used.
    pub fn settle(mut self, end: &Result<Decision, SubmitDecisionError>) {
        self.used = match end {
            Ok(decision) => decision.input_tokens.saturating_add(decision.output_tokens),
            Err(SubmitDecisionError::Attempts(failed)) => tokens_of(&failed.attempts),
            // The usage is unknown, so the estimate is kept.
            Err(
                SubmitDecisionError::Store(_) | SubmitDecisionError::ChargeOutOfRange | SubmitDecisionError::Defect(_),
            ) => self.taken,
            Err(_) => 0,
        };
    }
}

impl Drop for TakenTokens {
    fn drop(&mut self) {
        self.limiter.correct_tokens(&self.subject, self.taken, self.used);
    }
}

/// Estimates the tokens of a body: at least one, because zero tokens would pass an exhausted limit.
fn estimate_tokens(body_bytes: usize) -> u64 {
    u64::try_from(body_bytes / BYTES_PER_TOKEN).unwrap_or(u64::MAX).max(1)
}

fn tokens_of(attempts: &[AttemptRecord]) -> u64 {
    let each = attempts.iter().map(|attempt| attempt.input_tokens.saturating_add(attempt.output_tokens));
    each.fold(0, u64::saturating_add)
}

#[cfg(test)]
mod tests;
