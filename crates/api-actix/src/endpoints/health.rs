//! Liveness and readiness.

use domain::error::{ErrorKind, StoreError};
use futures_util::future::join_all;

use crate::endpoints::prelude::*;

/// `GET /health/live`: liveness.
pub(crate) const LIVE: Route = Route::open("/health/live", tags::SERVICE, OpenHandler::Memory(|_| Ok(alive())))
    .operation("live", "Liveness: the process responds")
    .answer(BodySchema::of::<LiveView>, "The process is alive");

/// The process is alive.
#[derive(Serialize, ToSchema)]
#[schema(as = LiveResponse)]
struct LiveView {
    #[schema(pattern = "^ok$")]
    status: &'static str,
}

/// Reports that the process is alive.
pub(crate) fn alive() -> HttpResponse {
    HttpResponse::Ok().json(LiveView { status: "ok" })
}

/// `GET /health/ready`: readiness.
pub(crate) const READY: Route =
    Route::open("/health/ready", tags::SERVICE, OpenHandler::Async(|call| Box::pin(handle_ready(call))))
        .operation("ready", "Readiness: all required stores respond")
        .answer(BodySchema::of::<ReadyView<'_>>, "The process is ready")
        .also(&[503]);

/// The process serves requests.
#[derive(Serialize, ToSchema)]
#[schema(as = ReadyResponse)]
struct ReadyView<'a> {
    status: ReadyStatus,
    /// The stores that do not respond; only with the status `degraded`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, min_items = 1)]
    unavailable: Option<Vec<&'a str>>,
}

/// `degraded` if known keys are served without a store.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
enum ReadyStatus {
    Ok,
    Degraded,
}

/// Probes must finish within two seconds; a slower one is abandoned after this time.
const PROBE_TIMEOUT: Duration = Duration::from_secs(3);

/// Reports whether all required stores respond and the server is not stopping. A server that can serve requests during
/// a store outage is degraded but ready: removing all such servers would turn a partial outage into a full one.
async fn handle_ready(call: &Call<'_>) -> Outcome {
    if call.gateway.connections.is_draining() {
        return Err(ApiError::from_kind(ErrorKind::Unavailable)
            .message("The server is draining and will stop; send new requests to another server")
            .metadata("unavailable", vec!["draining"]));
    }
    let probes = call.gateway.services.probes.iter().map(|probe| async move {
        let outcome = tokio::time::timeout(PROBE_TIMEOUT, probe.probe())
            .await
            .unwrap_or_else(|_| Err(StoreError::unavailable("the probe did not end")));
        outcome.err().map(|error| (probe, error))
    });
    let away: Vec<_> = join_all(probes).await.into_iter().flatten().collect();
    if away.is_empty() {
        return Ok(HttpResponse::Ok().json(ReadyView { status: ReadyStatus::Ok, unavailable: None }));
    }
    let names: Vec<&str> = away.iter().map(|(probe, _)| probe.name()).collect();
    let now = call.gateway.services.clock.monotonic();
    for (probe, error) in &away {
        // Load balancers check every few seconds.
        if call.gateway.store_failures.admits(probe.name(), now) {
            tracing::warn!(store = probe.name(), error = error as &dyn std::error::Error, "store unavailable");
        }
    }
    if away.iter().all(|(probe, _)| probe.serves_during_outage()) {
        return Ok(HttpResponse::Ok().json(ReadyView { status: ReadyStatus::Degraded, unavailable: Some(names) }));
    }
    let cause = format!("unavailable: {}", names.join(", "));
    Err(ApiError::from_kind(ErrorKind::Unavailable).metadata("unavailable", names).caused_by(cause))
}
