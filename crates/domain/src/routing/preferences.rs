//! Routing preferences of a request, and providers with similar names.

use std::fmt;

use super::Quantization;
use crate::money::Price;
use crate::text::nearest_names;

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

/// A value for each percentile that is measured.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Percentiles<T> {
    /// The median.
    pub p50: T,
    /// The 75th percentile.
    pub p75: T,
    /// The 90th percentile.
    pub p90: T,
    /// The 99th percentile.
    pub p99: T,
}

/// Bounds on percentiles measured over the last five minutes: latency in milliseconds, or throughput in thousandths of
/// a token per second. `None` means no bound.
pub type PercentileBounds = Percentiles<Option<u64>>;

impl PercentileBounds {
    /// Returns true if no percentile has a bound.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// The number of similar slugs that an error suggests.
const NEAREST: usize = 3;
/// The highest number of characters of a name that are compared.
const MAX_COMPARED_CHARS: usize = 64;

/// A provider that a request names and that does not exist.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownProvider {
    /// The name, truncated.
    pub name: String,
    /// Up to three slugs that are spelled like it, the closest first.
    pub nearest: Vec<String>,
}

impl UnknownProvider {
    /// Describes a name by the known slugs.
    pub fn new<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Self {
        Self { name: name.chars().take(MAX_COMPARED_CHARS).collect(), nearest: nearest_providers(known, name) }
    }
}

impl fmt::Display for UnknownProvider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} is not a configured provider{}", self.name, nearest_names(&self.nearest))
    }
}

/// Returns up to three slugs that are spelled like `name`, the closest first.
pub(crate) fn nearest_providers<'a>(known: impl IntoIterator<Item = &'a str>, name: &str) -> Vec<String> {
    let lower: String = name.to_ascii_lowercase().chars().take(MAX_COMPARED_CHARS).collect();
    let distances = known.into_iter().map(|slug| (strsim::levenshtein(&lower, slug), slug));
    let mut close: Vec<(usize, &str)> = distances.filter(|(distance, slug)| *distance <= slug.len() / 2).collect();
    close.sort_unstable();
    close.dedup();
    close.into_iter().take(NEAREST).map(|(_, slug)| slug.to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_provider_names_similar_slugs_once() {
        let known = ["typesafe", "other", "typesafe", "typesave-eu"];
        let unknown = UnknownProvider::new("TypeSave", known);
        assert_eq!(unknown.nearest, ["typesafe", "typesave-eu"]);
        let message = "\"TypeSave\" is not a configured provider; nearest: typesafe, typesave-eu";
        assert_eq!(unknown.to_string(), message);
        let unlike = UnknownProvider::new(&"x".repeat(1_000), known);
        assert!(unlike.nearest.is_empty() && unlike.to_string().len() < 120, "{unlike}");
    }
}
