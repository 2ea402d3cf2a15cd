//! The use cases that depend on the configured providers and endpoints, their settings, and their replacement by a reload.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use adapters_cache::LiveCatalogue;
use adapters_system::{OsRandomness, SeededRandomness, TokioTimer};
use anyhow::Context;
use api_actix::{LiveServices, RoutedServices};
use domain::budget::LedgerReader;
use domain::decision::{
    DecisionSettings, ExplainGuardrail, ExplainGuardrailPorts, FilterPorts, FindRecord, GenerationNames, GetGeneration,
    ListGenerations, RoutingPorts, SubmitDecision, SubmitDecisionPorts, TestProvider, TestProviders, UsagePorts,
};
use domain::guardrail::{KnownNames, ListPermittedModels};
use domain::model::{Catalogue, CountModels, FindCallableModel, ListModels};
use domain::observability::ManageDestinations;
use domain::operation::{LoadedConfiguration, PauseProvider};
use domain::routing::{
    EndpointDirectory, HealthBoard, HealthPolicy, ListEndpoints, ListProviders, PauseDetector, PausedProviders,
};
use domain::system::{Randomness, TimeSource};
use tokio::sync::watch;

use super::configuration_checks::warn_about;
use super::{ProcessMetrics, Stores, Upstreams, configuration_checks, minimal_rows, sandbox_models};
use crate::config::{Config, ConfigurationSource, Environment};
use crate::routing::{CurrentRouting, Routing};
use crate::telemetry::{HEARTBEAT, LevelFilter};
use crate::{config, telemetry};

/// The parts of the routed use cases that no reload changes.
pub struct RoutedParts {
    /// The stores.
    pub stores: Stores,
    /// The models.
    pub catalogue: Arc<dyn Catalogue>,
    /// The providers that the operator paused.
    pub paused: PausedProviders,
    /// Draws among endpoints.
    pub random: Arc<dyn Randomness>,
    /// Apply guardrails.
    pub guardrails: FilterPorts,
    /// Charge and report usage.
    pub usage: UsagePorts,
    /// Reads the status of limits, and stores pending charges of this process.
    pub limits: Arc<dyn LedgerReader>,
    /// Manage destinations.
    pub destinations: ManageDestinations,
}

impl RoutedParts {
    /// Builds the use cases for the providers and endpoints of a configuration. `replaced` are the current ones.
    pub fn build(&self, config: &Config, routing: &Routing, replaced: Option<&RoutedServices>) -> RoutedServices {
        let mut submit_decision = self.submit_decision(config, routing);
        if let Some(replaced) = replaced {
            submit_decision = submit_decision.with_record_quota_of(&replaced.submit_decision);
        }
        let (catalogue, directory) = (|| Arc::clone(&self.catalogue), || Arc::clone(&routing.endpoints));
        let (health, clock) = (|| Arc::clone(&routing.health), || Arc::clone(&self.stores.clock));
        let records =
            FindRecord::new(Arc::clone(&self.stores.usage), Arc::clone(&self.limits), clock(), Arc::new(TokioTimer));
        let names = GenerationNames::new(catalogue(), directory());
        let list_models = Arc::new(ListModels::new(catalogue(), directory()));
        let policies = Arc::clone(&self.guardrails.policies);
        let list_providers = Arc::new(ListProviders::new(directory(), health(), clock()));
        let guardrails = self.stores.manage_guardrails_over(KnownNames::new(catalogue(), directory()));
        RoutedServices {
            configuration: LoadedConfiguration {
                loaded_at: routing.source.loaded_at,
                variables: routing.source.variables.clone(),
            },
            import_catalogue: self.stores.import_catalogue(config),
            list_permitted_models: Arc::new(ListPermittedModels::new(Arc::clone(&list_models), directory(), policies)),
            delete_workspace: self.stores.delete_workspace(self.destinations.clone(), guardrails.clone()),
            guardrails,
            explain_guardrail: self.explain(&submit_decision),
            submit_decision: Arc::new(submit_decision),
            count_models: Arc::new(CountModels::new(catalogue(), directory())),
            list_models,
            find_callable_model: Arc::new(FindCallableModel::new(catalogue(), directory())),
            list_endpoints: Arc::new(ListEndpoints::new(catalogue(), directory(), health(), clock())),
            pause_provider: PauseProvider::new(
                Arc::clone(&list_providers),
                Arc::clone(&self.stores.pauses),
                self.paused.clone(),
            ),
            test_providers: TestProviders::new(
                directory(),
                routing.source.wires.clone(),
                TestProvider::new(Arc::clone(&routing.provider), clock()),
            ),
            list_providers,
            get_generation: Arc::new(GetGeneration::new(records, names.clone())),
            list_generations: Arc::new(ListGenerations::new(
                Arc::clone(&self.stores.usage),
                Arc::clone(&self.limits),
                self.stores.usage_names(),
                names,
            )),
        }
    }

    fn submit_decision(&self, config: &Config, routing: &Routing) -> SubmitDecision {
        let ports = SubmitDecisionPorts {
            provider: Arc::clone(&routing.provider),
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
        SubmitDecision::new(ports, settings(config))
    }

    fn explain(&self, decisions: &SubmitDecision) -> ExplainGuardrail {
        let stores = &self.stores;
        let ports = ExplainGuardrailPorts {
            guardrails: Arc::clone(&stores.guardrails),
            workspaces: Arc::clone(&stores.workspaces),
            api_keys: Arc::clone(&stores.keys),
            presets: Arc::clone(&stores.presets),
            limits: Arc::clone(&self.limits),
            clock: Arc::clone(&stores.clock),
        };
        ExplainGuardrail::new(ports, decisions)
    }
}

/// The end of `limits.request_timeout_ms` that is reserved for recording a request; no attempt runs in it.
const RECORD_TIME: Duration = Duration::from_millis(250);
/// The maximum of that time, as a fraction of the whole: one in this many.
const RECORD_SHARE: u32 = 20;

/// Returns the settings of routing.
fn settings(config: &Config) -> DecisionSettings {
    let models = config.models.iter().map(|model| (model.model.clone(), model.options));
    let record_time = (config.limits.request_timeout / RECORD_SHARE).min(RECORD_TIME);
    let deadline = config.limits.request_timeout.saturating_sub(record_time);
    DecisionSettings {
        unknown_usage: config.unknown_usage,
        max_tokens_per_byte: config.money.max_tokens_per_byte,
        unpriced: config.money.unpriced_models,
        max_record_bytes_per_day: config.limits.workspace_record_bytes_per_day,
        models: models.collect::<HashMap<_, _>>(),
        ..DecisionSettings::new(deadline)
    }
}

/// Returns a random source with the configured seed, or with a random one.
///
/// # Errors
/// The machine's random source failed.
pub fn randomness(config: &Config) -> anyhow::Result<Arc<dyn Randomness>> {
    Ok(match config.seed {
        Some(seed) => Arc::new(SeededRandomness::new(seed)),
        None => Arc::new(OsRandomness::new().context("random numbers cannot be drawn")?),
    })
}

/// The heartbeat delay from which the process counts as paused.
const PAUSE_TOLERANCE: Duration = Duration::from_millis(500);

/// Returns a health board of every endpoint, without observations.
pub fn health(endpoints: &EndpointDirectory, paused: PausedProviders) -> Arc<HealthBoard> {
    let detector = PauseDetector::new(HEARTBEAT, PAUSE_TOLERANCE);
    Arc::new(HealthBoard::with_pauses(endpoints.all().len(), HealthPolicy::default(), detector).with_paused(paused))
}

/// Replaces the providers, the endpoints and the rules of routing of a running server.
pub struct Reloader {
    config: Config,
    environment: Environment,
    upstreams: Upstreams,
    catalogue: Arc<LiveCatalogue>,
    parts: RoutedParts,
    services: LiveServices,
    routing: watch::Sender<Arc<Routing>>,
    measures: ProcessMetrics,
}

/// A valid configuration that is not in force yet.
struct Loaded {
    config: Config,
    upstreams: Upstreams,
    filter: Option<LevelFilter>,
    restart_keys: Vec<String>,
}

impl Reloader {
    /// Builds the use cases of the first configuration.
    pub fn new(
        (config, environment): (&Config, &Environment),
        upstreams: Upstreams,
        catalogue: Arc<LiveCatalogue>,
        parts: RoutedParts,
        measures: ProcessMetrics,
    ) -> Self {
        let endpoints = Arc::clone(&upstreams.endpoints);
        let routing = Routing {
            health: health(&endpoints, parts.paused.clone()),
            endpoints,
            provider: Arc::clone(&upstreams.provider),
            source: ConfigurationSource::new(config, environment, parts.stores.clock.now()),
        };
        let services = LiveServices::new(parts.build(config, &routing, None));
        let routing = watch::Sender::new(Arc::new(routing));
        let (config, environment) = (config.clone(), environment.clone());
        Self { config, environment, upstreams, catalogue, parts, services, routing, measures }
    }

    /// Returns the use cases, which a reload replaces.
    pub fn services(&self) -> LiveServices {
        self.services.clone()
    }

    /// Returns the endpoints, which a reload replaces.
    pub fn routing(&self) -> CurrentRouting {
        self.routing.subscribe()
    }

    /// Reads the configuration file again, with the environment of the start, and puts it in force. Requests in flight
    /// end with the previous configuration. A configuration that lost all endpoints is accepted only with
    /// `allow_no_endpoints`.
    ///
    /// Logs the settings that need a restart and did change.
    ///
    /// # Errors
    /// The configuration, a secret or a certificate is invalid, or the catalogue cannot be read. The previous
    /// configuration stays in force as a whole.
    pub async fn reload(&mut self, allow_no_endpoints: bool) -> anyhow::Result<()> {
        let (config, environment) = (self.config.clone(), self.environment.clone());
        // Certificates and secrets are read from files.
        let loaded = tokio::task::spawn_blocking(move || load(&config, &environment)).await??;
        let Loaded { config, upstreams, filter, restart_keys } = loaded;
        if !allow_no_endpoints {
            configuration_checks::require_endpoints_at_reload(&self.config, &config)?;
        }
        let rows = minimal_rows(&config.endpoints);
        let replaced = self.catalogue.reconfigure(rows, sandbox_models(&config)).await;
        replaced.context("the catalogue cannot be read")?;
        // No later step fails.
        self.put_in_force(config, upstreams);
        if let Some(Err(error)) = filter.map(LevelFilter::apply) {
            tracing::warn!(error = format!("{error:#}"), "log filter not replaced");
        }
        if !restart_keys.is_empty() {
            tracing::warn!(settings = restart_keys.join(", "), "changed settings need a restart");
        }
        warn_about(&self.config, &self.catalogue, &self.upstreams.endpoints);
        configuration_checks::record_endpoints(&self.config, &self.parts.stores).await;
        Ok(())
    }

    /// Returns the configuration in force.
    pub fn config(&self) -> &Config {
        &self.config
    }

    fn put_in_force(&mut self, config: Config, upstreams: Upstreams) {
        let routing = Routing {
            health: Arc::new(self.health(&upstreams)),
            endpoints: Arc::clone(&upstreams.endpoints),
            provider: Arc::clone(&upstreams.provider),
            source: ConfigurationSource::new(&config, &self.environment, self.parts.stores.clock.now()),
        };
        self.measures.add_providers(&upstreams.endpoints);
        let replaced = self.services.current();
        let services = self.parts.build(&config, &routing, Some(&replaced));
        self.services.replace(services);
        self.routing.send_replace(Arc::new(routing));
        self.config = config;
        self.upstreams = upstreams;
    }

    fn health(&self, upstreams: &Upstreams) -> HealthBoard {
        let previous = self.upstreams.indices_in(upstreams);
        self.routing.borrow().health.succeeded_by(&previous)
    }
}

fn load(running: &Config, environment: &Environment) -> anyhow::Result<Loaded> {
    // A file that was removed, or is just being replaced, must not count as an empty configuration.
    let loaded = config::load(running.file.as_deref(), environment)?;
    let restart_keys = running.restart_keys(&loaded);
    let config = running.reloaded(loaded);
    let filter = match config.log.filter {
        None => Some(LevelFilter::parse(telemetry::server_level(&config.log))?),
        Some(_) => None,
    };
    Ok(Loaded { upstreams: Upstreams::build(&config)?, filter, restart_keys, config })
}

#[cfg(test)]
mod tests {
    use domain::decision::{SingleFlightMode, UnpricedModels};
    use domain::routing::{Endpoint, Wire};
    use domain::usage::UnknownUsage;

    use super::*;
    use crate::config::{Environment, load_text};

    fn read(text: &str) -> Config {
        load_text(None, text, &Environment::default()).unwrap()
    }

    #[test]
    fn settings_follow_configuration() {
        let shipped = settings(&read(""));
        let deadline = Duration::from_millis(59_750);
        let max_record_bytes_per_day = Some(1 << 30);
        let expected =
            DecisionSettings { deadline, max_record_bytes_per_day, ..DecisionSettings::new(Duration::from_mins(1)) };
        assert_eq!(shipped, expected);
        let config = read(
            "[limits]\nrequest_timeout_ms = 20\nworkspace_record_bytes_per_day = 0\n\
             [money]\nunreported_usage = \"free\"\nmax_tokens_per_byte = \"2\"\nunpriced_models = \"free\"\n\
             [[models]]\nmodel = \"a/b\"\nsingle_flight = \"split_cost\"\n",
        );
        let set = settings(&config);
        assert_eq!((set.deadline, set.unknown_usage), (Duration::from_millis(19), UnknownUsage::Free));
        assert_eq!(set.max_record_bytes_per_day, None, "0 is no bound");
        assert_eq!((set.max_concurrent_subrequests, set.budget_wait), (4, Duration::from_millis(250)));
        assert_eq!((set.max_tokens_per_byte.times(3), set.unpriced), (6, UnpricedModels::Free));
        assert_eq!(set.options(&"a/b".parse().unwrap()).single_flight, SingleFlightMode::SplitCost);
        assert_eq!(set.options(&"a/c".parse().unwrap()).single_flight, SingleFlightMode::Off);
    }

    #[test]
    fn randomness_repeats_only_with_seed() {
        let draw = |config: &Config| randomness(config).unwrap().next_u64();
        let seeded = read("[routing]\nseed = 7\n");
        assert_eq!(draw(&seeded), draw(&seeded));
        assert_ne!(draw(&read("")), draw(&read("")));
    }

    #[test]
    fn board_has_every_endpoint_and_a_back_off_of_5_seconds() {
        let endpoint = || Endpoint::new("a/b".parse().unwrap(), "p".parse().unwrap(), Wire::SystemOne, "m");
        let endpoints = EndpointDirectory::new(vec![endpoint(), endpoint()]);
        let board = health(&endpoints, PausedProviders::default());
        assert_eq!((board.len(), board.policy().auth_backoff), (2, Duration::from_secs(5)));
        let wall = chrono::DateTime::UNIX_EPOCH;
        let beat = |millis| board.pauses().beat(Duration::from_millis(millis), wall);
        assert_eq!((beat(0), beat(600), beat(1_000)), (None, None, None));
        assert_eq!(beat(2_001), Some(Duration::from_millis(1_001)), "100 ms and 500 ms more");
        let none = EndpointDirectory::new(Vec::new());
        assert!(health(&none, PausedProviders::default()).is_empty());
    }
}
