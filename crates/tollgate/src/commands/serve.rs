//! `tollgate serve`

use std::convert::Infallible;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;

use super::{Context, first_start};
use crate::cli::ServeArgs;
use crate::telemetry::LOG;
use crate::wiring::{
    Hangup, IgnoredSignals, Instance, Reloader, Schema, Shutdown, Stores, configuration_checks, prepare_descriptors,
    require_bucket,
};

/// The maximum time to flush the log before the first response.
const START_FLUSH: Duration = Duration::from_secs(1);

/// Serves until `SIGTERM`, `SIGINT` or `SIGQUIT`. `SIGHUP` reloads the configuration.
pub async fn run(context: &Context, args: ServeArgs) -> anyhow::Result<ExitCode> {
    let hangup = Hangup::listen().context("cannot install the handler of SIGHUP")?;
    let mut ignored = IgnoredSignals::listen().context("cannot install the handlers of unused signals")?;
    tokio::select! {
        ended = serve(context, args, hangup) => ended,
        never = ignored.log_each() => match never {},
    }
}

async fn serve(context: &Context, args: ServeArgs, hangup: Hangup) -> anyhow::Result<ExitCode> {
    let mut shutdown = Shutdown::listen()?;
    prepare_descriptors(&context.config);
    // Commands need the key only for the secrets of destinations; a server would accept traces that it cannot send.
    if let Some(source) = &context.config.storage.encryption_key {
        source.read()?;
    }
    require_bucket(&context.config.blobs).await?;
    let schema = if args.no_migrate {
        context.require_database()?;
        Schema::Required
    } else {
        Schema::UpToDate
    };
    let stores = tokio::select! {
        opened = Stores::open_for_server(&context.config, schema) => opened?,
        signal = shutdown.next_signal() => {
            tracing::info!(signal, "stopped");
            return Ok(ExitCode::SUCCESS);
        }
    };
    if !args.allow_no_endpoints {
        configuration_checks::require_endpoints_at_start(&context.config, &stores).await?;
    }
    let (instance, reloader) = Instance::start(&context.config, &context.environment, stores.clone()).await?;
    // Later would lose the key, earlier would create one for a failed start.
    first_start::run(context, &stores).await?;
    configuration_checks::record_endpoints(&context.config, &stores).await;
    drop(stores);
    let (address, base_path) = (instance.address(), &context.config.server.base_path);
    tracing::info!(
        server.address = %address,
        server.base_url = %format!("http://{address}{base_path}"),
        server.docs = %format!("http://{address}/docs"),
        providers = context.config.providers.len(),
        sandbox.enabled = context.config.sandbox.enabled,
        sandbox.errors = context.config.sandbox.errors,
        "serving"
    );
    // The log lines of the start appear before the first response.
    LOG.flush(START_FLUSH);
    LOG.start_batching();
    let serving = instance.serve_until(async || {
        let signal = shutdown.next_signal().await;
        tracing::info!(signal, "stopping");
    });
    tokio::select! {
        served = serving => served?,
        never = reload_on(hangup, reloader, args.allow_no_endpoints) => match never {},
    }
    tracing::info!("stopped");
    Ok(ExitCode::SUCCESS)
}

/// Reloads the configuration at each `SIGHUP`.
async fn reload_on(mut hangup: Hangup, mut reloader: Reloader, allow_no_endpoints: bool) -> Infallible {
    loop {
        hangup.next().await;
        let signal = "SIGHUP";
        match reloader.reload(allow_no_endpoints).await {
            Ok(()) => {
                let config = reloader.config();
                let (providers, endpoints) = (config.providers.len(), config.endpoints.len());
                tracing::info!(signal, providers, endpoints, "configuration reloaded");
            }
            Err(error) => tracing::error!(
                signal,
                error = format!("{error:#}"),
                "configuration not reloaded; the previous one stays in force"
            ),
        }
    }
}
