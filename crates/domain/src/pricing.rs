//! Prices of tokens, and the tokens that are charged by them.

use crate::money::{Charge, Price};

/// Token counts as a provider reports them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReportedUsage {
    /// Tokens in.
    pub input_tokens: u64,
    /// Tokens out.
    pub output_tokens: u64,
}

/// Prices in USD per token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TokenPrices {
    /// Per input token.
    pub prompt: Price,
    /// Per output token.
    pub completion: Price,
}

impl TokenPrices {
    /// Tokens times exact prices, summed and not yet rounded.
    pub fn charge(self, input_tokens: u64, output_tokens: u64) -> Option<Charge> {
        Charge::ZERO.checked_add(self.prompt.times(input_tokens)?)?.checked_add(self.completion.times(output_tokens)?)
    }

    /// So many tokens, in and out, in the direction in which they cost most.
    pub(crate) fn dearest(self, tokens: u64) -> (u64, u64) {
        if self.completion > self.prompt { (0, tokens) } else { (tokens, 0) }
    }

    /// True where a usage costs an amount of money and its tokens can be counted; false where it is beyond any.
    pub(crate) fn can_charge(self, usage: ReportedUsage) -> bool {
        usage.input_tokens.max(usage.output_tokens) <= MOST_TOKENS
            && self.charge(usage.input_tokens, usage.output_tokens).and_then(Charge::round_up).is_some()
    }
}

/// Far more than anything uses, and so few that the sum over all attempts of a request can be stored.
const MOST_TOKENS: u64 = 1 << 48;
