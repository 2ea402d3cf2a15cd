//! `tollgate provider …`

use std::process::ExitCode;
use std::sync::Arc;

use adapters_system::SystemClock;
use anyhow::{Context as _, bail};
use domain::decision::TestProvider;
use domain::routing::ProviderSlug;

use super::Context;
use crate::cli::ProviderCommand;
use crate::config::nearest;
use crate::control::{ControlRequest, ProviderTestReport, test_endpoint};
use crate::output::note;
use crate::wiring::{directory, single_provider};

/// Runs a command on providers.
pub async fn run(context: &Context, command: ProviderCommand) -> anyhow::Result<ExitCode> {
    match command {
        ProviderCommand::Test { slug, model } => test(context, &slug, model).await,
    }
}

async fn test(context: &Context, slug: &str, model: Option<String>) -> anyhow::Result<ExitCode> {
    let provider = find(context, slug)?;
    let report = match test_here(context, &provider, model.as_deref()).await {
        Ok(report) => report,
        // The secret may be readable for the server only.
        Err(here) => match test_in_server(context, slug, model).await {
            Ok(Some(report)) => report,
            Ok(None) => return Err(here),
            Err(there) => return Err(here.context(format!("the running server cannot make the call: {there:#}"))),
        },
    };
    context.output.show_lines(&report, || report.lines())?;
    Ok(if report.ok { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Finds a configured provider.
fn find(context: &Context, slug: &str) -> anyhow::Result<ProviderSlug> {
    let directory = directory(&context.config);
    let mut known: Vec<&str> = context.config.providers.iter().map(|provider| provider.slug.as_str()).collect();
    known.extend(directory.all().iter().map(|endpoint| endpoint.provider.as_str()));
    if known.contains(&slug) {
        return slug.parse().with_context(|| format!("{slug:?} cannot be used"));
    }
    match nearest(slug, known.iter().copied()) {
        Some(nearest) => bail!("provider {slug:?} not found; the nearest slug is {nearest:?}"),
        None => bail!("provider {slug:?} not found"),
    }
}

/// Makes the call in this process.
async fn test_here(context: &Context, slug: &ProviderSlug, model: Option<&str>) -> anyhow::Result<ProviderTestReport> {
    let config = &context.config;
    let wire = config.providers.iter().find(|provider| provider.slug == *slug).map(|provider| provider.wire);
    let endpoint = test_endpoint(&directory(config), slug, model, wire)?;
    let provider = single_provider(config, &context.environment, slug)?;
    let provider = provider.with_context(|| format!("provider {slug} not found"))?;
    let test = TestProvider::new(provider, Arc::new(SystemClock::new()));
    Ok(ProviderTestReport::new(&endpoint, &test.execute(&endpoint).await))
}

/// Asks the first running server to make the call; `None` if no server runs.
async fn test_in_server(
    context: &Context,
    slug: &str,
    model: Option<String>,
) -> anyhow::Result<Option<ProviderTestReport>> {
    let client = context.servers();
    let request = ControlRequest::TestProvider { provider: slug.to_owned(), model };
    for server in client.servers().await.unwrap_or_default() {
        if let Some(report) = client.ask(&server.id, &request).await? {
            note(&format!("It cannot be tested here: the running server {} made the call.", server.id));
            return Ok(Some(report));
        }
    }
    Ok(None)
}
