//! How Decisions are routed, as the operator configures it.

use std::collections::HashMap;
use std::time::Duration;

use crate::model::ModelId;
use crate::money::Price;
use crate::usage::UnknownUsage;

/// Settings of the router.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RouterSettings {
    /// How long a request may take with all its attempts.
    pub deadline: Duration,
    /// What is charged for an attempt that was sent and of whose usage nothing is known.
    pub unknown_usage: UnknownUsage,
    /// How many tokens a provider may count where the bytes that it is sent explain one.
    pub max_tokens_per_byte: TokenFactor,
    /// What becomes of a model without a price where money is limited.
    pub unpriced: Unpriced,
    /// How long a request waits for others to settle that keep the money which it needs.
    pub budget_wait: Duration,
    /// Parts of one split request that are asked at a time, at least one.
    pub max_concurrent_subrequests: usize,
    /// Bytes that the records of a workspace may take in a UTC day; `None` is no bound.
    pub max_record_bytes_per_day: Option<u64>,
    /// Options of single models, by their ids in the catalogue.
    pub models: HashMap<ModelId, ModelOptions>,
}

impl RouterSettings {
    /// Shipped values: unknown usage is charged by its bound, a byte is a token at most, what has no price is refused
    /// where money is limited, a quarter of a second of waiting for money, four parts at a time, no bound on records, no options.
    pub fn new(deadline: Duration) -> Self {
        Self {
            deadline,
            unknown_usage: UnknownUsage::Bound,
            max_tokens_per_byte: TokenFactor::ONE,
            unpriced: Unpriced::Refuse,
            budget_wait: Duration::from_millis(250),
            max_concurrent_subrequests: 4,
            max_record_bytes_per_day: None,
            models: HashMap::new(),
        }
    }

    /// The options of a model.
    pub fn options(&self, model: &ModelId) -> ModelOptions {
        self.models.get(model).copied().unwrap_or_default()
    }
}

/// How many tokens a provider may count where the size of what it is sent explains one: an exact decimal from 1 to
/// 1,000 with at most six digits after the point.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct TokenFactor {
    millionths: u64,
}

/// Not a factor of tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be a decimal number from 1 to 1000 with at most six digits after the point")]
pub struct InvalidTokenFactor;

impl TokenFactor {
    /// No token is shorter than a byte.
    pub const ONE: Self = Self { millionths: MILLION };

    /// So many times as many tokens, rounded up; the largest number where that is beyond it.
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

/// What becomes of a model without a price where money is limited. Where it is not, such a model is free.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Unpriced {
    /// It is refused.
    #[default]
    Refuse,
    /// It is free there as well.
    Free,
    /// It is charged this price, for tokens in and out.
    Cap(Price),
}

/// Options of one model.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ModelOptions {
    /// Whether a slow attempt is raced by a second one.
    pub hedging: Option<Hedging>,
    /// Whether identical requests in flight share one call.
    pub coalescing: Coalescing,
}

/// A second endpoint is asked when the first takes longer than usual.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hedging {
    /// How long to wait for the first; `None` is the 95th percentile of its latency, once it is known.
    pub after: Option<Duration>,
}

/// Whether identical requests in flight share one call to a provider.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Coalescing {
    /// Each request makes its own.
    #[default]
    Off,
    /// They share the call and its cost, to the last picodollar.
    Shared,
    /// They share the call, and each is charged as if it had made it.
    Each,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn factor(text: &str) -> TokenFactor {
        text.parse().unwrap()
    }

    #[test]
    fn tokens_are_multiplied_exactly_and_rounded_up() {
        assert_eq!(TokenFactor::ONE, factor("1.000000"));
        assert_eq!(TokenFactor::ONE.times(u64::MAX), u64::MAX);
        assert_eq!((factor("1.5").times(3), factor("1.5").times(4)), (5, 6));
        assert_eq!((factor("1.000001").times(1), factor("1.000001").times(0)), (2, 0));
        assert_eq!(factor("1000").times(7), 7_000);
        assert_eq!(factor("2").times(u64::MAX), u64::MAX, "it does not wrap");
    }

    #[test]
    fn a_factor_is_from_one_to_a_thousand() {
        for bad in ["", "0", "0.999999", "1000.000001", "10000", "-1", "+1", "1e1", "1,5", ".5", "1.", "1.0000001", "x"]
        {
            assert_eq!(bad.parse::<TokenFactor>(), Err(InvalidTokenFactor), "{bad}");
        }
    }
}
