//! The use case that explains guardrails, for commands: it needs no server and no secret.

use std::sync::Arc;

use adapters_cache::LiveCatalogue;
use adapters_system::TokioTimer;
use anyhow::Context;
use domain::budget::ReadOnlyLedger;
use domain::decision::{
    ExplainGuardrail, ExplainGuardrailPorts, FilterPorts, NoBroadcast, NoMetrics, RoutingPorts, SubmitDecision,
    SubmitDecisionPorts, UsagePorts,
};
use domain::guardrail::NoGuardrails;
use domain::system::{InlineExecutor, TimeSource};

use super::{Stores, Upstreams, minimal_rows, router, sandbox_models};
use crate::config::{Config, Environment};

/// Returns the use case over the stores.
///
/// # Errors
/// The catalogue cannot be read, or a provider's settings are invalid.
pub async fn explain_guardrail(config: &Config, stores: &Stores) -> anyhow::Result<ExplainGuardrail> {
    // No request is sent, so secrets are not needed.
    let mut without_secrets = config.clone();
    without_secrets.providers.iter_mut().for_each(|provider| provider.api_key = None);
    let Upstreams { provider, endpoints, .. } = Upstreams::build(&without_secrets, &Environment::default())?;
    let overlay = minimal_rows(&config.endpoints);
    let catalogue = LiveCatalogue::load(Arc::clone(&stores.models), 0, overlay, sandbox_models(config));
    let catalogue = Arc::new(catalogue.await.context("the catalogue cannot be read")?);
    let health = router::health(config, &endpoints);
    let reports = Arc::new(stores.reports());
    let clock = || Arc::clone(&stores.clock);
    let ports = SubmitDecisionPorts {
        provider,
        routing: RoutingPorts { catalogue, endpoints, health, random: router::randomness(config)? },
        guardrails: FilterPorts { policies: Arc::new(NoGuardrails), workers: Arc::new(InlineExecutor) },
        usage: UsagePorts {
            ledger: Arc::new(ReadOnlyLedger),
            volumes: reports.clone(),
            ids: Arc::clone(&stores.ids),
            metrics: Arc::new(NoMetrics),
            broadcaster: Arc::new(NoBroadcast),
        },
        time: TimeSource { clock: clock(), timer: Arc::new(TokioTimer) },
    };
    let explain = ExplainGuardrailPorts {
        guardrails: Arc::clone(&stores.guardrails),
        workspaces: Arc::clone(&stores.workspaces),
        api_keys: Arc::clone(&stores.keys),
        limits: reports,
        clock: clock(),
    };
    Ok(ExplainGuardrail::new(explain, &SubmitDecision::new(ports, router::settings(config))))
}
