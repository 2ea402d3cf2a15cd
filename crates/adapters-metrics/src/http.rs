//! HTTP metrics of inbound requests.

use std::time::Duration;

use domain::rate::{RateScope, RateUnit};
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};

use crate::sample;
use crate::sample::Labels;

/// The metrics of inbound requests.
#[derive(Debug)]
pub struct HttpMetrics {
    requests: Family<RequestLabels, Counter>,
    latency: Family<Labels<1>, Histogram, fn() -> Histogram>,
    in_flight: Gauge,
    rate_limited: Family<Labels<2>, Counter>,
    rejected: Family<Labels<1>, Counter>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RequestLabels {
    route: &'static str,
    method: &'static str,
    status: u16,
}

/// The route of unknown paths.
const NO_ROUTE: &str = "none";

impl HttpMetrics {
    pub(crate) fn register(registry: &mut Registry) -> Self {
        let metrics = Self {
            requests: Family::default(),
            latency: Family::new_with_constructor(sample::of_calls),
            in_flight: Gauge::default(),
            rate_limited: Family::default(),
            rejected: Family::default(),
        };
        for scope in [RateScope::Key, RateScope::Workspace] {
            for unit in [RateUnit::Requests, RateUnit::Tokens] {
                drop(metrics.rate_limited.get_or_create(&rate_labels(scope, unit)));
            }
        }
        registry.register(
            "http_requests",
            "HTTP requests by route pattern, method and status; 499 if the client disconnected",
            metrics.requests.clone(),
        );
        registry.register_with_unit(
            "http_request_duration",
            "Time from the request headers to the response",
            Unit::Seconds,
            metrics.latency.clone(),
        );
        registry.register("requests_in_flight", "Requests in flight", metrics.in_flight.clone());
        registry.register("rate_limit_rejections", "Requests rejected by a rate limit", metrics.rate_limited.clone());
        registry.register(
            "admission_rejections",
            "Requests rejected by a limit on requests in flight or on the memory of bodies",
            metrics.rejected.clone(),
        );
        metrics
    }

    /// Initialises the rejection counters of these bounds with zero.
    pub fn init_bounds(&self, bounds: impl IntoIterator<Item = &'static str>) {
        bounds.into_iter().for_each(|bound| drop(self.rejected.get_or_create(&[("limit", bound)])));
    }

    /// Counts a rejection by a bound.
    pub fn record_rejection(&self, bound: &'static str) {
        self.rejected.get_or_create(&[("limit", bound)]).inc();
    }

    /// Counts a response. `route` is a pattern, or `None` for unknown paths.
    pub fn record_response(&self, route: Option<&'static str>, method: &'static str, status: u16, took: Duration) {
        let route = route.unwrap_or(NO_ROUTE);
        self.requests.get_or_create(&RequestLabels { route, method, status }).inc();
        self.latency.get_or_create(&[("route", route)]).observe(took.as_secs_f64());
    }

    /// Counts the start of an operation in flight.
    pub fn begin_operation(&self) {
        self.in_flight.inc();
    }

    /// Counts its end.
    pub fn end_operation(&self) {
        self.in_flight.dec();
    }

    /// Counts a rejection by a rate limit.
    pub fn record_rate_limit(&self, scope: RateScope, unit: RateUnit) {
        self.rate_limited.get_or_create(&rate_labels(scope, unit)).inc();
    }
}

fn rate_labels(scope: RateScope, unit: RateUnit) -> Labels<2> {
    [("scope", scope.as_str()), ("unit", unit.as_str())]
}
