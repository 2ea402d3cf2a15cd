//! `GET /status`: this server, its endpoints, and the processes of its database.

mod endpoints;
mod members;

use domain::error::StoreError;
use domain::operation::StoreReading;
use domain::routing::EndpointStatus;

pub use self::endpoints::{ConfiguredEndpoint, EndpointLimits, EndpointPrices};
pub use self::members::{
    EndpointHealth, JournalStatus, LastError, ProcessStatus, ProviderHealth, ProviderState, ServerState, ServerStatus,
    Status, StoreStatus,
};
use crate::endpoints::prelude::*;

pub(crate) const ROUTE: Route = Route::management(Get, "/status", tags::OPERATION, handler!(handle))
    .operation("getStatus", "Get the status")
    .description(
        "This server with its stores, journal and the health of its endpoints, the configured endpoints, and the \
         live processes of the database. Needs read access to all workspaces.",
    )
    .query(&[Query::text("model", "Only the configured endpoints of this model, by any of its names.")])
    .answer(|| BodySchema::data::<Status>("StatusResponse", "The status of this server."), "The status")
    .also(&[404]);

async fn handle(call: &Call<'_>, by: &Authority) -> Outcome {
    let (gateway, query) = (call.gateway, call.request.query_string());
    let services = &gateway.services;
    let reading = services.read_status.execute(by).await?;
    let (server, routed, now) = (&services.server, services.routed.current(), services.clock.monotonic());
    let configured = match parameters::value(query, "model")? {
        Some(model) => endpoints::of_model(&routed, &model)?,
        None => endpoints::all(&routed),
    };
    let stores: Vec<StoreStatus> = reading.stores.iter().map(store_status).collect();
    let list = &routed.list_endpoints;
    let health = |status: &EndpointStatus| endpoint_health(status, list.is_paused(&status.endpoint.provider));
    let endpoints: Vec<EndpointHealth> = list.all().iter().map(health).collect();
    let status = ServerStatus {
        id: reading.process.map_or_else(|| server.id.clone(), |process| process.to_string()),
        pid: std::process::id(),
        version: server.version.to_owned(),
        started_at: time(server.started_at),
        uptime_seconds: now.saturating_sub(server.began).as_secs(),
        address: gateway.address.map(|address| address.to_string()),
        base_path: gateway.settings.base_path.clone(),
        config_file: server.config_file.clone(),
        state: state(&stores, gateway.connections.is_draining()),
        connections_in_request: gateway.connections.counts().in_request,
        stores,
        journal: reading.journal.as_ref().map(|(journal, open_requests)| JournalStatus {
            unfolded_entries: journal.unfolded_entries,
            unfolded_bytes: journal.unfolded_bytes,
            max_bytes: journal.max_bytes,
            writable: journal.is_writable,
            open_requests: *open_requests,
        }),
        providers: ProviderHealth::list(&endpoints),
        endpoints,
        configured_at: Some(time(routed.configuration.loaded_at)),
        variables: routed.configuration.variables.clone(),
    };
    let processes = reading.processes.map(|processes| processes.iter().map(ProcessStatus::from).collect());
    let has_port = gateway.address.is_some();
    let data = Status {
        ok: has_port && status.state.is_ready(),
        database: server.database.clone(),
        servers: if has_port { vec![status] } else { Vec::new() },
        processes: processes
            .inspect_err(|error| tracing::warn!(error = error as &dyn std::error::Error, "live processes not readable"))
            .ok(),
        endpoints: configured,
    };
    Ok(HttpResponse::Ok().json(Data { data }))
}

fn store_status(store: &StoreReading) -> StoreStatus {
    let sentence = |error: &StoreError| {
        let causes = std::iter::successors(Some(error as &dyn std::error::Error), |error| error.source());
        causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
    };
    StoreStatus {
        name: store.name.to_owned(),
        ready: store.error.is_none(),
        error: store.error.as_ref().map(sentence),
        serves_during_outage: store.serves_during_outage,
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

#[expect(clippy::cast_precision_loss, reason = "a ratio needs no more than 53 bits")]
fn endpoint_health(EndpointStatus { endpoint, health, throttling }: &EndpointStatus, paused: bool) -> EndpointHealth {
    let seconds = |wait: Duration| wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
    EndpointHealth {
        model: endpoint.model.to_string(),
        provider: endpoint.provider.to_string(),
        upstream_model: endpoint.upstream_model.to_string(),
        paused,
        throttled: throttling.throttled,
        throttled_workspaces: throttling.throttled_workspaces,
        accept_rate: throttling.accept_rate,
        latency_ms: health.latency.map(|latency| (latency.as_secs_f64() * 1e6).round() / 1e3),
        retry_in_seconds: throttling.retry_in.map(seconds),
        attempts: health.observations,
        last_error: throttling.last_error.map(|error| LastError {
            outcome: error.kind.as_str().to_owned(),
            upstream_status: error.upstream_status,
            rejected_credential: error.is_rejected_credential(),
            cause: error.cause.map(|cause| cause.as_str().to_owned()),
        }),
        last_attempt_failed: throttling.last_attempt_failed,
        bound_ratio: health.bound_excess.map(|excess| excess.ratio_milli as f64 / 1_000.0),
        bound_extra_tokens: health.bound_excess.map(|excess| excess.tokens),
    }
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
}
