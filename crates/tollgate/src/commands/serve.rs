//! `tollgate serve`

use std::process::ExitCode;

use super::{Context, first_start};
use crate::telemetry::LOG;
use crate::wiring::{Instance, Shutdown};

/// Serves until `SIGTERM` or `SIGINT`.
pub async fn run(context: &Context) -> anyhow::Result<ExitCode> {
    let mut shutdown = Shutdown::listen()?;
    let stores = context.stores().await?;
    let instance = Instance::start(&context.config, &context.environment, stores.clone()).await?;
    // Only now: a start that fails hands out no key.
    first_start::run(context, &stores).await?;
    drop(stores);
    let (address, base_path) = (instance.address(), &context.config.server.base_path);
    tracing::info!(
        server.address = %address,
        server.base_url = %format!("http://{address}{base_path}"),
        providers = context.config.providers.len(),
        sandbox.enabled = context.config.sandbox_enabled,
        "serving"
    );
    let serving = instance.serve_until(async || {
        let signal = shutdown.asked().await;
        tracing::info!(signal, "stopping: no new connections are taken, what is in flight is finished");
    });
    // Only now: what a start has to say is written before the first answer.
    tokio::select! {
        served = serving => served?,
        () = LOG.collect() => {}
    }
    tracing::info!("stopped");
    Ok(ExitCode::SUCCESS)
}
