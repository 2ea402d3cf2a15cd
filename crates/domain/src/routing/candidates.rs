//! Which endpoints may be tried, and in which order.

use std::sync::Arc;

use super::{Endpoint, TokenPrices};
use crate::model::DynamicVariant;

/// An endpoint that may be tried, and what it charges.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    /// The endpoint.
    pub endpoint: Arc<Endpoint>,
    /// Its prices: its own, else those of the catalogue's row.
    pub prices: TokenPrices,
}

/// The order in which candidates are tried: that of the configuration, or the cheapest first for `:floor`.
pub fn order_candidates(mut candidates: Vec<Candidate>, dynamic: Option<DynamicVariant>) -> Vec<Candidate> {
    if dynamic == Some(DynamicVariant::Floor) {
        candidates.sort_by_key(|candidate| (candidate.prices.prompt, candidate.prices.completion));
    }
    candidates
}
