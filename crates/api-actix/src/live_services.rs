//! The use cases that a reload of the configuration replaces.

use std::sync::{Arc, Weak};

use arc_swap::ArcSwap;
use domain::decision::{GetGeneration, SubmitDecision};
use domain::model::{FindCallableModel, ListModels};
use domain::routing::{ListModelEndpoints, ListProviders};

use crate::services::GuardrailUseCases;

/// The use cases that depend on the configured providers and endpoints.
pub struct RoutedServices {
    /// Operation 2.
    pub submit_decision: Arc<SubmitDecision>,
    /// Lists the models of the catalogue, in pages.
    pub list_models: Arc<ListModels>,
    /// Finds a model that can be called.
    pub find_callable_model: Arc<FindCallableModel>,
    /// Lists the endpoints of a model.
    pub list_model_endpoints: Arc<ListModelEndpoints>,
    /// Lists the providers.
    pub list_providers: Arc<ListProviders>,
    /// The use cases of guardrails, except operation 3.
    pub guardrails: GuardrailUseCases,
    /// Reads the records of Decisions requests.
    pub get_generation: Arc<GetGeneration>,
}

/// The current [`RoutedServices`], replaced as a whole. A request keeps those that were current when it took them, so
/// running requests end with the providers and settings that they began with. Clones share the current ones.
#[derive(Clone)]
pub struct LiveServices(Arc<ArcSwap<RoutedServices>>);

/// Reads [`LiveServices`] without keeping them.
#[derive(Clone)]
pub struct WeakLiveServices(Weak<ArcSwap<RoutedServices>>);

impl LiveServices {
    /// Creates a holder of services.
    pub fn new(services: RoutedServices) -> Self {
        Self(Arc::new(ArcSwap::from_pointee(services)))
    }

    /// Returns the current services.
    pub fn current(&self) -> Arc<RoutedServices> {
        self.0.load_full()
    }

    /// Replaces the services for later requests.
    pub fn replace(&self, services: RoutedServices) {
        self.0.store(Arc::new(services));
    }

    /// Returns a reader for metrics, which outlive the server.
    pub fn downgrade(&self) -> WeakLiveServices {
        WeakLiveServices(Arc::downgrade(&self.0))
    }
}

impl WeakLiveServices {
    /// Returns the current services; `None` after the server has ended.
    pub fn current(&self) -> Option<Arc<RoutedServices>> {
        self.0.upgrade().map(|services| services.load_full())
    }
}
