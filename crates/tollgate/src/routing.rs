//! The endpoints in force, which a reload of the configuration replaces.

use std::sync::Arc;

use domain::decision::DecisionProvider;
use domain::routing::{EndpointDirectory, HealthBoard};
use tokio::sync::watch;

use crate::config::ConfigurationSource;

/// The endpoints of a configuration with their health.
pub struct Routing {
    /// The endpoints.
    pub endpoints: Arc<EndpointDirectory>,
    /// Their health.
    pub health: Arc<HealthBoard>,
    /// Calls their providers.
    pub provider: Arc<dyn DecisionProvider>,
    /// The configuration that they come from.
    pub source: ConfigurationSource,
}

/// The endpoints of the current configuration, for background tasks and metrics.
pub type CurrentRouting = watch::Receiver<Arc<Routing>>;
