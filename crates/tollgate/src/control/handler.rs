//! The answers of the control socket: the status of the server, and the test of an endpoint.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use async_trait::async_trait;
use chrono::{DateTime, Utc};
use domain::budget::RenewingLedger;
use domain::decision::TestProvider;
use domain::error::StoreError;
use domain::routing::{Endpoint, EndpointDirectory, HealthBoard, ProviderSlug, Wire};
use domain::system::{Clock, HealthProbe};
use futures_util::future::join_all;
use http_server::Connections;

use super::{
    ControlHandler, ControlRequest, EndpointHealth, JournalStatus, LastError, ProviderTestReport, ServerState,
    ServerStatus, StoreStatus,
};
use crate::routing::CurrentRouting;
use crate::view::time;

/// Probes must finish within two seconds; a slower one is abandoned after this time.
const PROBE_TIMEOUT: Duration = Duration::from_secs(3);

/// The parts of a running server that its status shows.
pub struct StatusParts {
    /// The endpoints of the current configuration and their health.
    pub routing: CurrentRouting,
    /// The ledger; `None` on a read-only database.
    pub ledger: Option<Arc<RenewingLedger>>,
    /// The readiness probes.
    pub probes: Vec<Arc<dyn HealthProbe>>,
    /// Time.
    pub clock: Arc<dyn Clock>,
}

/// The properties of a server that never change.
pub struct ServerIdentity {
    /// Its id.
    pub id: String,
    /// The time of the start.
    pub started_at: DateTime<Utc>,
    /// The monotonic time of the start.
    pub began: Duration,
    /// Its address and port.
    pub address: String,
    /// The prefix of all paths.
    pub base_path: String,
    /// The file of its configuration.
    pub config_file: Option<String>,
}

/// Answers requests with the status of this server, and tests its providers.
pub struct StatusHandler {
    identity: ServerIdentity,
    parts: StatusParts,
    connections: Connections,
}

#[async_trait]
impl ControlHandler for StatusHandler {
    async fn answer(&self, request: ControlRequest) -> String {
        let answer = match request {
            ControlRequest::Status => serde_json::to_string(&self.status().await),
            ControlRequest::TestProvider { provider, model } => match self.test(&provider, model.as_deref()).await {
                Ok(report) => serde_json::to_string(&report),
                Err(error) => serde_json::to_string(&serde_json::json!({ "error": format!("{error:#}") })),
            },
        };
        answer.unwrap_or_else(|error| serde_json::json!({ "error": error.to_string() }).to_string())
    }
}

impl StatusHandler {
    /// Creates a handler.
    pub fn new(identity: ServerIdentity, parts: StatusParts, connections: Connections) -> Self {
        Self { identity, parts, connections }
    }

    async fn test(&self, provider: &str, model: Option<&str>) -> anyhow::Result<ProviderTestReport> {
        let slug: ProviderSlug = provider.parse()?;
        let routing = Arc::clone(&self.parts.routing.borrow());
        let endpoint = test_endpoint(&routing.endpoints, &slug, model, routing.source.wires.get(&slug).copied())?;
        let test = TestProvider::new(Arc::clone(&routing.provider), Arc::clone(&self.parts.clock));
        Ok(ProviderTestReport::new(&endpoint, &test.execute(&endpoint).await))
    }

    async fn status(&self) -> ServerStatus {
        let Self { identity, parts, connections } = self;
        let stores = join_all(parts.probes.iter().map(|probe| store_status(&**probe))).await;
        let now = parts.clock.monotonic();
        let routing = Arc::clone(&parts.routing.borrow());
        ServerStatus {
            id: identity.id.clone(),
            pid: std::process::id(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            started_at: time(identity.started_at),
            uptime_seconds: now.saturating_sub(identity.began).as_secs(),
            address: identity.address.clone(),
            base_path: identity.base_path.clone(),
            config_file: identity.config_file.clone(),
            state: state(&stores, connections.is_draining()),
            connections_in_request: connections.counts().in_request,
            stores,
            journal: parts.ledger.as_deref().map(journal_status),
            endpoints: routing.endpoints.all().iter().map(|one| endpoint_health(one, &routing.health, now)).collect(),
            configured_at: Some(time(routing.source.loaded_at)),
            variables: routing.source.variables.clone(),
        }
    }
}

async fn store_status(probe: &dyn HealthProbe) -> StoreStatus {
    let outcome = tokio::time::timeout(PROBE_TIMEOUT, probe.probe())
        .await
        .unwrap_or_else(|_| Err(StoreError::unavailable("the probe did not end")));
    StoreStatus {
        name: probe.name().to_owned(),
        ready: outcome.is_ok(),
        error: outcome.err().map(|error| format!("{:#}", anyhow::Error::from(error))),
        serves_during_outage: probe.serves_during_outage(),
    }
}

fn state(stores: &[StoreStatus], is_draining: bool) -> ServerState {
    if is_draining {
        ServerState::Draining
    } else if stores.iter().all(|store| store.ready) {
        ServerState::Ready
    } else if stores.iter().all(|store| store.ready || store.serves_during_outage) {
        ServerState::Degraded
    } else {
        ServerState::Unavailable
    }
}

fn journal_status(ledger: &RenewingLedger) -> JournalStatus {
    let status = ledger.journal_status();
    JournalStatus {
        unfolded_entries: status.unfolded_entries,
        unfolded_bytes: status.unfolded_bytes,
        max_bytes: status.max_bytes,
        writable: status.is_writable,
        open_requests: ledger.open_calls(),
    }
}

#[expect(clippy::cast_precision_loss, reason = "a ratio needs no more than 53 bits")]
fn endpoint_health(endpoint: &Endpoint, health: &HealthBoard, now: Duration) -> EndpointHealth {
    let (view, throttling) = (health.view(endpoint.index, now), health.throttling(endpoint.index, now));
    EndpointHealth {
        model: endpoint.model.to_string(),
        provider: endpoint.provider.to_string(),
        upstream_model: endpoint.upstream_model.clone(),
        throttled: throttling.throttled,
        throttled_workspaces: throttling.throttled_workspaces,
        accept_rate: throttling.accept_rate,
        latency_ms: view.latency.map(|latency| (latency.as_secs_f64() * 1e6).round() / 1e3),
        retry_in_seconds: throttling.retry_in.map(|wait| wait.as_secs() + u64::from(wait.subsec_nanos() > 0)),
        attempts: view.observations,
        last_error: throttling.last_error.map(|error| LastError {
            outcome: error.kind.as_str().to_owned(),
            upstream_status: error.upstream_status,
            rejected_credential: error.is_rejected_credential(),
            cause: error.cause.map(|cause| cause.as_str().to_owned()),
        }),
        last_attempt_failed: throttling.last_attempt_failed,
        bound_ratio: view.bound_excess.map(|excess| excess.ratio_milli as f64 / 1_000.0),
        bound_extra_tokens: view.bound_excess.map(|excess| excess.tokens),
    }
}

/// Returns the endpoint that a test of a provider calls: the first one of the model, by its name in the catalogue or at
/// the provider. A model without an endpoint is called over `wire`, which is that of a configured provider.
///
/// # Errors
/// The provider has no endpoint and no model is given, or it is not configured.
pub fn test_endpoint(
    endpoints: &EndpointDirectory,
    provider: &ProviderSlug,
    model: Option<&str>,
    wire: Option<Wire>,
) -> anyhow::Result<Arc<Endpoint>> {
    let mut of_provider = endpoints.all().iter().filter(|endpoint| endpoint.provider == *provider);
    let Some(model) = model else {
        let first = of_provider.next().cloned();
        return first.with_context(|| format!("no endpoint uses the provider {provider}; name a model with --model"));
    };
    let is_named = |endpoint: &&Arc<Endpoint>| endpoint.model.as_str() == model || endpoint.upstream_model == model;
    if let Some(found) = of_provider.find(is_named) {
        return Ok(Arc::clone(found));
    }
    let wire = wire.with_context(|| {
        format!("the provider {provider} is not configured and has no endpoint of the model {model:?}")
    })?;
    Ok(Arc::new(Endpoint::new("test/model".parse()?, provider.clone(), wire, model)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn store(ready: bool, serves_during_outage: bool) -> StoreStatus {
        StoreStatus { name: "s".to_owned(), ready, error: None, serves_during_outage }
    }

    #[test]
    fn state_follows_stores_and_drain() {
        for (stores, is_draining, expected) in [
            (vec![], false, ServerState::Ready),
            (vec![store(true, false), store(true, false)], false, ServerState::Ready),
            (vec![store(true, false), store(false, true)], false, ServerState::Degraded),
            (vec![store(false, true), store(false, false)], false, ServerState::Unavailable),
            (vec![store(true, false)], true, ServerState::Draining),
        ] {
            assert_eq!(state(&stores, is_draining), expected, "{stores:?}");
        }
    }

    #[test]
    fn test_endpoint_is_found_by_any_name_of_its_model() {
        let endpoint = |model: &str, provider: &str, upstream: &str| {
            Endpoint::new(model.parse().unwrap(), provider.parse().unwrap(), Wire::SystemOne, upstream)
        };
        let all = [endpoint("a/x", "other", "x"), endpoint("a/b", "p", "one"), endpoint("a/c", "p", "two")];
        let directory = EndpointDirectory::new(all.to_vec());
        let slug: ProviderSlug = "p".parse().unwrap();
        let found = |model: Option<&str>, wire| {
            let found = test_endpoint(&directory, &slug, model, wire).map_err(|error| error.to_string())?;
            Ok::<_, String>(found.upstream_model.clone())
        };
        assert_eq!(found(None, None).unwrap(), "one");
        assert_eq!(found(Some("a/c"), None).unwrap(), "two");
        assert_eq!(found(Some("two"), None).unwrap(), "two");
        assert_eq!(found(Some("new"), Some(Wire::ChatCompletions)).unwrap(), "new");
        assert!(found(Some("x"), None).unwrap_err().contains("not configured and has no endpoint of the model \"x\""));
        let unused = test_endpoint(&directory, &"q".parse().unwrap(), None, Some(Wire::SystemOne));
        assert!(unused.unwrap_err().to_string().contains("--model"));
    }
}
