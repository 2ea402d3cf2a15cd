//! Tokens per minute: an estimate before a request, the used tokens after it.

use std::sync::Arc;

use super::{Decision, SubmitDecisionError};
use crate::api_key::Principal;
use crate::rate::{DefaultRates, RateLimited, RateLimiter, RateSubject};
use crate::usage::AttemptRecord;

/// The bytes of a body that count as one token until the number of tokens is known.
const BYTES_PER_TOKEN: usize = 4;

/// Counts the tokens of Decisions requests against the rates of their callers.
///
/// How many tokens a request uses is known once it has ended. So an estimate by the size of the body is taken in advance,
/// and corrected by [`TakenTokens`].
pub struct MeterTokens {
    limiter: Arc<dyn RateLimiter>,
    defaults: DefaultRates,
}

impl MeterTokens {
    /// Wires the port. `defaults` holds for callers without rates of their own.
    pub fn new(limiter: Arc<dyn RateLimiter>, defaults: DefaultRates) -> Self {
        Self { limiter, defaults }
    }

    /// Takes the estimated tokens of a counted request with a body of so many bytes.
    ///
    /// # Errors
    /// The limit that leaves too few tokens. The request does not count any more.
    pub fn execute(&self, caller: &Principal, body_bytes: usize) -> Result<TakenTokens, RateLimited> {
        let subject = RateSubject::of(caller, self.defaults);
        let taken = estimate_tokens(body_bytes);
        self.limiter.tokens(&subject, taken)?;
        Ok(TakenTokens { limiter: Arc::clone(&self.limiter), subject, taken, used: 0 })
    }
}

/// Tokens that were taken in advance. However the request ends, dropping this corrects them once: to what was used, or
/// to none where the request was given up before a provider could be called.
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
            // Whether a provider was called, and with how much, is unknown: the estimate stands.
            Err(
                SubmitDecisionError::Store(_) | SubmitDecisionError::ChargeOutOfRange | SubmitDecisionError::Defect(_),
            ) => self.taken,
            Err(_) => 0,
        };
    }
}

impl Drop for TakenTokens {
    fn drop(&mut self) {
        self.limiter.correct(&self.subject, self.taken, self.used);
    }
}

/// One token at least: a smaller body would pass a limit that has nothing left.
fn estimate_tokens(body_bytes: usize) -> u64 {
    u64::try_from(body_bytes / BYTES_PER_TOKEN).unwrap_or(u64::MAX).max(1)
}

fn tokens_of(attempts: &[AttemptRecord]) -> u64 {
    let each = attempts.iter().map(|attempt| attempt.input_tokens.saturating_add(attempt.output_tokens));
    each.fold(0, u64::saturating_add)
}

#[cfg(test)]
mod tests;
