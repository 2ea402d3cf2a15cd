//! Routing preferences of a request.

use super::Quantization;
use crate::money::Price;

/// The routing preferences of one request. The default sets no preference.
#[expect(clippy::struct_excessive_bools, reason = "each is an independent option of the API")]
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
    /// The sort order; it replaces balancing by price.
    pub sort: Option<Sort>,
    /// The highest prices of endpoints that may be tried.
    pub max_price: MaxPrice,
    /// True: only endpoints whose wire supports every question natively: no criteria moved into the instructions, no
    /// generated instructions, no emulation.
    pub require_parameters: bool,
    /// True: only providers that do not store prompts and do not train on them.
    pub deny_data_collection: bool,
    /// True: only providers with zero data retention.
    pub zdr: bool,
    /// The only formats of weights; `None` is all of them.
    pub quantizations: Option<Vec<Quantization>>,
    /// Endpoints with a higher latency are tried last.
    pub preferred_max_latency: PercentileBounds,
    /// Endpoints with a lower throughput are tried last.
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

/// The sort order of candidates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sort {
    /// The metric.
    pub by: SortBy,
    /// True: candidates of all the request's models are sorted together; false: model by model.
    pub across_models: bool,
}

/// A metric to sort candidates by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SortBy {
    /// The cheapest first, by input price, then output price.
    Price,
    /// The quickest first, by decaying average.
    Latency,
    /// The most tokens a second first.
    Throughput,
}

/// Maximum prices; `None` means no bound. Requests, images and audio are not charged separately, so bounds on them
/// always hold.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MaxPrice {
    /// USD per million input tokens.
    pub prompt: Option<Price>,
    /// USD per million output tokens.
    pub completion: Option<Price>,
}

/// Bounds on percentiles measured over the last five minutes: latency in milliseconds, or throughput in thousandths of
/// a token per second. `None` means no bound.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PercentileBounds {
    /// The median.
    pub p50: Option<u64>,
    /// The 75th percentile.
    pub p75: Option<u64>,
    /// The 90th percentile.
    pub p90: Option<u64>,
    /// The 99th percentile.
    pub p99: Option<u64>,
}

impl PercentileBounds {
    /// Returns true if no percentile has a bound.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}
