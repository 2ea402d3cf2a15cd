//! `GET /health/live` and `GET /health/ready`.

use std::time::Duration;

use actix_web::HttpResponse;
use domain::error::{ErrorKind, StoreError};
use futures_util::future::join_all;
use serde_json::json;

use crate::http::edge::Call;
use crate::http::error::ApiError;

/// A probe promises two seconds; one that breaks its promise is given up then.
const PROBE_TIMEOUT: Duration = Duration::from_secs(3);

/// The process answers.
pub(crate) fn live() -> HttpResponse {
    HttpResponse::Ok().json(json!({"status": "ok"}))
}

/// Everything that operations need answers, and the server is not about to stop.
pub(crate) async fn ready(call: &Call<'_>) -> Result<HttpResponse, ApiError> {
    if call.gateway.connections.is_draining() {
        return Err(ApiError::of(ErrorKind::Unavailable)
            .message("The server is draining: it is about to stop, and another one takes new requests")
            .metadata("unavailable", vec!["draining"]));
    }
    let probes = call.gateway.services.probes.iter().map(|probe| async move {
        let outcome = tokio::time::timeout(PROBE_TIMEOUT, probe.probe())
            .await
            .unwrap_or_else(|_| Err(StoreError::unavailable("the probe did not end")));
        outcome.err().map(|error| (probe.name(), error))
    });
    let away: Vec<(&'static str, StoreError)> = join_all(probes).await.into_iter().flatten().collect();
    if away.is_empty() {
        return Ok(live());
    }
    let names: Vec<&str> = away.iter().map(|(name, _)| *name).collect();
    for (name, error) in &away {
        tracing::warn!(store = name, error = error as &dyn std::error::Error, "a store is away");
    }
    Err(ApiError::of(ErrorKind::Unavailable).metadata("unavailable", names))
}
