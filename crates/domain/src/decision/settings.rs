//! Settings of Decisions requests.

use std::collections::HashMap;
use std::time::Duration;

use crate::model::ModelId;
use crate::money::Price;
use crate::usage::UnknownUsage;

/// Settings of Decisions requests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DecisionSettings {
    /// The deadline of a request with all its attempts.
    pub deadline: Duration,
    /// The charge for a sent attempt without reported usage.
    pub unknown_usage: UnknownUsage,
    /// The most tokens that a provider may count per sent byte.
    pub max_tokens_per_byte: TokenFactor,
    /// The rule for models without a price under a spending limit.
    pub unpriced: UnpricedModels,
    /// The longest wait of a request for other requests' holds to settle.
    pub budget_wait: Duration,
    /// The most sub-requests of one request in flight, at least one.
    pub max_concurrent_subrequests: usize,
    /// The most bytes of a workspace's records per UTC day; `None` means no limit.
    pub max_record_bytes_per_day: Option<u64>,
    /// Options of models, by their ids in the catalogue.
    pub models: HashMap<ModelId, ModelOptions>,
}

impl DecisionSettings {
    /// Creates the defaults: charges the upper bound of unreported usage, counts one token per byte at most, rejects
    /// models without a price under a limit, waits 250 ms for holds, and runs four sub-requests at a time.
    pub fn new(deadline: Duration) -> Self {
        Self {
            deadline,
            unknown_usage: UnknownUsage::Bound,
            max_tokens_per_byte: TokenFactor::ONE,
            unpriced: UnpricedModels::Reject,
            budget_wait: Duration::from_millis(250),
            max_concurrent_subrequests: 4,
            max_record_bytes_per_day: None,
            models: HashMap::new(),
        }
    }

    /// Returns the options of a model.
    pub fn options(&self, model: &ModelId) -> ModelOptions {
        self.models.get(model).copied().unwrap_or_default()
    }
}

/// The most tokens that a provider may count per sent byte: an exact decimal from 1 to 1,000 with at most six decimals.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct TokenFactor {
    millionths: u64,
}

/// The error of a text that is not a token factor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be a decimal number from 1 to 1000 with at most six digits after the point")]
pub struct InvalidTokenFactor;

impl TokenFactor {
    /// One: a token takes at least one byte.
    pub const ONE: Self = Self { millionths: MILLION };

    /// Multiplies a number of tokens, rounded up. Saturates at the largest number.
    pub fn times(self, tokens: u64) -> u64 {
        let exact = u128::from(tokens) * u128::from(self.millionths);
        u64::try_from(exact.div_ceil(u128::from(MILLION))).unwrap_or(u64::MAX)
    }
}

const MILLION: u64 = 1_000_000;

impl std::str::FromStr for TokenFactor {
    type Err = InvalidTokenFactor;

    fn from_str(text: &str) -> Result<Self, InvalidTokenFactor> {
        let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
        let digits = |part: &str, most: usize| {
            (1..=most).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_digit())
        };
        if !digits(whole, 4) || !digits(fraction, 6) {
            return Err(InvalidTokenFactor);
        }
        let number = |part: &str| part.parse::<u64>().map_err(|_| InvalidTokenFactor);
        let millionths = number(whole)? * MILLION + number(&format!("{fraction:0<6}"))?;
        if (MILLION..=1_000 * MILLION).contains(&millionths) {
            Ok(Self { millionths })
        } else {
            Err(InvalidTokenFactor)
        }
    }
}

/// The rule for models without a price under a spending limit. Without a limit, these models are free.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum UnpricedModels {
    /// Requests are rejected.
    #[default]
    Reject,
    /// Requests are free.
    Free,
    /// Input and output tokens are charged at this price.
    DefaultPrice(Price),
}

/// Options of one model.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ModelOptions {
    /// The hedging of slow attempts; `None` means no hedging.
    pub hedging: Option<Hedging>,
    /// The sharing of one call by identical requests in flight.
    pub single_flight: SingleFlightMode,
}

/// Hedging: a second attempt at another endpoint while a slow one is still running.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hedging {
    /// The delay of the second attempt; `None` means the 95th percentile of the latency, once it is known.
    pub after: Option<Duration>,
}

/// The sharing of one provider call by identical requests in flight.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum SingleFlightMode {
    /// Each request makes its own call.
    #[default]
    Off,
    /// The requests share one call and split its cost, exactly to the picodollar.
    SplitCost,
    /// The requests share one call, and each is charged its full cost.
    ChargeEach,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn factor(text: &str) -> TokenFactor {
        text.parse().unwrap()
    }

    #[test]
    fn times_multiplies_exactly_and_rounds_up() {
        assert_eq!(TokenFactor::ONE, factor("1.000000"));
        assert_eq!(TokenFactor::ONE.times(u64::MAX), u64::MAX);
        assert_eq!((factor("1.5").times(3), factor("1.5").times(4)), (5, 6));
        assert_eq!((factor("1.000001").times(1), factor("1.000001").times(0)), (2, 0));
        assert_eq!(factor("1000").times(7), 7_000);
        assert_eq!(factor("2").times(u64::MAX), u64::MAX, "it does not wrap");
    }

    #[test]
    fn from_str_rejects_factor_out_of_range_or_malformed() {
        for bad in ["", "0", "0.999999", "1000.000001", "10000", "-1", "+1", "1e1", "1,5", ".5", "1.", "1.0000001", "x"]
        {
            assert_eq!(bad.parse::<TokenFactor>(), Err(InvalidTokenFactor), "{bad}");
        }
    }
}
