//! How a caller wants a request routed.

use super::Quantization;
use crate::money::Price;

/// Preferences of one request. The default asks for nothing.
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of the caller's")]
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RoutingPreferences {
    /// Providers that are tried first, in this order; it replaces balancing by price.
    pub order: Vec<String>,
    /// The only providers that may be tried; `None` is all of them.
    pub only: Option<Vec<String>>,
    /// Providers that may not be tried.
    pub ignore: Vec<String>,
    /// False: only the first candidate is tried.
    pub allow_fallbacks: bool,
    /// What comes first; it replaces balancing by price.
    pub sort: Option<Sort>,
    /// Dearer endpoints may not be tried.
    pub max_price: MaxPrice,
    /// True: only endpoints that can ask every question as it is, without folding criteria into instructions, without
    /// standing in for missing instructions and without emulation.
    pub require_parameters: bool,
    /// True: no provider that may store what it is sent or train on it.
    pub deny_data_collection: bool,
    /// True: only providers that keep nothing.
    pub zdr: bool,
    /// The only formats of weights; `None` is all of them.
    pub quantizations: Option<Vec<Quantization>>,
    /// Slower endpoints are tried later.
    pub preferred_max_latency: PercentileBounds,
    /// Endpoints of less throughput are tried later.
    pub preferred_min_throughput: PercentileBounds,
}

impl Default for RoutingPreferences {
    fn default() -> Self {
        Self {
            order: Vec::new(),
            only: None,
            ignore: Vec::new(),
            allow_fallbacks: true,
            sort: None,
            max_price: MaxPrice::default(),
            require_parameters: false,
            deny_data_collection: false,
            zdr: false,
            quantizations: None,
            preferred_max_latency: PercentileBounds::default(),
            preferred_min_throughput: PercentileBounds::default(),
        }
    }
}

/// What candidates are sorted by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sort {
    /// The measure.
    pub by: SortBy,
    /// True: candidates of all the request's models are sorted together; false: model by model.
    pub across_models: bool,
}

/// A measure that candidates are sorted by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SortBy {
    /// The cheapest first, by input price, then output price.
    Price,
    /// The quickest first, by decaying average.
    Latency,
    /// The most tokens a second first.
    Throughput,
}

/// Highest prices; `None` is no bound. Requests, images and audio are never charged by themselves here, so every
/// bound on those is kept.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MaxPrice {
    /// USD per million input tokens.
    pub prompt: Option<Price>,
    /// USD per million output tokens.
    pub completion: Option<Price>,
}

/// Bounds on measured percentiles over the last five minutes, in milliseconds of latency or thousandths of tokens a
/// second of throughput; `None` is no bound.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PercentileBounds {
    /// The median.
    pub p50: Option<u64>,
    /// Three quarters.
    pub p75: Option<u64>,
    /// Nine tenths.
    pub p90: Option<u64>,
    /// Ninety-nine hundredths.
    pub p99: Option<u64>,
}

impl PercentileBounds {
    /// True where nothing is bounded.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}
