//! `tollgate serve`

use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;

use super::{Context, first_start};
use crate::telemetry::LOG;
use crate::wiring::{IgnoredSignals, Instance, Schema, Shutdown, Stores, prepare_descriptors};

/// The maximum time to flush the log before the first response.
const START_FLUSH: Duration = Duration::from_secs(1);

/// Serves until `SIGTERM` or `SIGINT`.
pub async fn run(context: &Context) -> anyhow::Result<ExitCode> {
    let mut ignored = IgnoredSignals::listen().context("cannot install the handlers of SIGHUP, SIGUSR1 and SIGUSR2")?;
    tokio::select! {
        ended = serve(context) => ended,
        never = ignored.log_each() => match never {},
    }
}

async fn serve(context: &Context) -> anyhow::Result<ExitCode> {
    let mut shutdown = Shutdown::listen()?;
    prepare_descriptors(&context.config);
    let stores = Stores::open(&context.config, Schema::UpToDate).await?;
    let instance = Instance::start(&context.config, &context.environment, stores.clone()).await?;
    // Later would lose the key, earlier would create one for a failed start.
    first_start::run(context, &stores).await?;
    drop(stores);
    let (address, base_path) = (instance.address(), &context.config.server.base_path);
    tracing::info!(
        server.address = %address,
        server.base_url = %format!("http://{address}{base_path}"),
        server.docs = %format!("http://{address}/docs"),
        providers = context.config.providers.len(),
        sandbox.enabled = context.config.sandbox_enabled,
        "serving"
    );
    // The log lines of the start appear before the first response.
    LOG.flush(START_FLUSH);
    LOG.start_batching();
    let serving = instance.serve_until(async || {
        let signal = shutdown.next_signal().await;
        tracing::info!(signal, "stopping");
    });
    serving.await?;
    tracing::info!("stopped");
    Ok(ExitCode::SUCCESS)
}
