//! How Decisions are routed, as the operator configures it.

use std::collections::HashMap;
use std::time::Duration;

use crate::model::ModelId;

/// Settings of the router.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RouterSettings {
    /// How long a request may take with all its attempts.
    pub deadline: Duration,
    /// What is charged for an attempt that was sent and of whose usage nothing is known.
    pub unknown_usage: UnknownUsage,
    /// Parts of one split request that are asked at a time, at least one.
    pub max_parts_in_flight: usize,
    /// Options of single models, by their ids in the catalogue.
    pub models: HashMap<ModelId, ModelOptions>,
}

impl RouterSettings {
    /// Shipped values: unknown usage is charged by its bound, four parts at a time, no options.
    pub fn new(deadline: Duration) -> Self {
        Self { deadline, unknown_usage: UnknownUsage::Bound, max_parts_in_flight: 4, models: HashMap::new() }
    }

    /// The options of a model.
    pub fn options(&self, model: &ModelId) -> ModelOptions {
        self.models.get(model).copied().unwrap_or_default()
    }
}

/// What is charged for an attempt that was sent and of whose usage nothing is known: it timed out, its connection
/// broke, its answer was unreadable, or the caller left.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum UnknownUsage {
    /// The bound by the size of what was sent: what the provider can have billed at most.
    #[default]
    Bound,
    /// Nothing; the operator bears it.
    Free,
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
