//! The use cases that depend on the configured providers and endpoints.

use std::sync::Arc;

use adapters_system::TokioTimer;
use api_actix::{GuardrailUseCases, RoutedServices};
use domain::budget::LimitStatusReader;
use domain::decision::{
    DecisionProvider, ExplainGuardrail, ExplainGuardrailPorts, FilterPorts, GetGeneration, RoutingPorts,
    SubmitDecision, SubmitDecisionPorts, UsagePorts,
};
use domain::guardrail::KnownNames;
use domain::model::{Catalogue, FindCallableModel, ListModels};
use domain::routing::{ListModelEndpoints, ListProviders};
use domain::system::{Randomness, TimeSource};
use domain::usage::{FindRecord, PendingRecords};

use super::{Stores, router};
use crate::config::Config;
use crate::routing::Routing;

/// The parts of the routed use cases that no reload changes.
pub struct RoutedParts {
    /// The stores.
    pub stores: Stores,
    /// The models.
    pub catalogue: Arc<dyn Catalogue>,
    /// Draws among endpoints.
    pub random: Arc<dyn Randomness>,
    /// Apply guardrails.
    pub guardrails: FilterPorts,
    /// Charge and report usage.
    pub usage: UsagePorts,
    /// Reads the status of limits.
    pub limits: Arc<dyn LimitStatusReader>,
    /// The charges of this process that are not stored yet; `None` if it charges nothing.
    pub pending: Option<Arc<dyn PendingRecords>>,
}

impl RoutedParts {
    /// Builds the use cases for the providers and endpoints of a configuration. `replaced` are the current ones.
    pub fn build(
        &self,
        config: &Config,
        provider: Arc<dyn DecisionProvider>,
        routing: &Routing,
        replaced: Option<&RoutedServices>,
    ) -> RoutedServices {
        let mut submit_decision = self.submit_decision(config, provider, routing);
        if let Some(replaced) = replaced {
            submit_decision = submit_decision.with_record_quota_of(&replaced.submit_decision);
        }
        let (catalogue, directory) = (|| Arc::clone(&self.catalogue), || Arc::clone(&routing.endpoints));
        let (health, clock) = (|| Arc::clone(&routing.health), || Arc::clone(&self.stores.clock));
        let records =
            FindRecord::new(Arc::clone(&self.stores.usage), self.pending.clone(), clock(), Arc::new(TokioTimer));
        RoutedServices {
            guardrails: self.guardrails(KnownNames::new(catalogue(), directory()), &submit_decision),
            submit_decision: Arc::new(submit_decision),
            list_models: Arc::new(ListModels::new(catalogue(), directory())),
            find_callable_model: Arc::new(FindCallableModel::new(catalogue(), directory())),
            list_model_endpoints: Arc::new(ListModelEndpoints::new(catalogue(), directory(), health(), clock())),
            list_providers: Arc::new(ListProviders::new(directory(), health(), clock())),
            get_generation: Arc::new(GetGeneration::new(records, catalogue(), directory())),
        }
    }

    fn submit_decision(
        &self,
        config: &Config,
        provider: Arc<dyn DecisionProvider>,
        routing: &Routing,
    ) -> SubmitDecision {
        let ports = SubmitDecisionPorts {
            provider,
            routing: RoutingPorts {
                catalogue: Arc::clone(&self.catalogue),
                endpoints: Arc::clone(&routing.endpoints),
                health: Arc::clone(&routing.health),
                random: Arc::clone(&self.random),
            },
            guardrails: self.guardrails.clone(),
            usage: self.usage.clone(),
            time: TimeSource { clock: Arc::clone(&self.stores.clock), timer: Arc::new(TokioTimer) },
        };
        SubmitDecision::new(ports, router::settings(config))
    }

    fn guardrails(&self, names: KnownNames, decisions: &SubmitDecision) -> GuardrailUseCases {
        let stores = &self.stores;
        let explain = ExplainGuardrailPorts {
            guardrails: Arc::clone(&stores.guardrails),
            workspaces: Arc::clone(&stores.workspaces),
            api_keys: Arc::clone(&stores.keys),
            limits: Arc::clone(&self.limits),
            clock: Arc::clone(&stores.clock),
        };
        let explain = ExplainGuardrail::new(explain, decisions);
        GuardrailUseCases::new(&stores.guardrail_ports_over(names), &stores.assignments, explain)
    }
}
