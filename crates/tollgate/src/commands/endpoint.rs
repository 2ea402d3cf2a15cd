//! `tollgate endpoint …`, `tollgate provider …` and `tollgate status`

use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context as _, bail};
use domain::model::CatalogueSnapshot;
use domain::pricing::TokenPrices;
use domain::routing::{Endpoint, EndpointDirectory, ProviderSlug};

use super::add_provider::{self, test_here};
use super::{Context, catalogue};
use crate::cli::{EndpointCommand, ProviderCommand};
use crate::config::{nearest, similar};
use crate::control::{ControlRequest, ProviderTestReport, ServerStatus};
use crate::output::{note, table_lines};
use crate::view::{EndpointView, List, ProcessView, ServerEndpointHealth, ServerView, StatusView, provider_test_lines};
use crate::wiring::{directory, forget_processes};

/// Runs a command on endpoints.
pub async fn run(context: &Context, command: EndpointCommand) -> anyhow::Result<ExitCode> {
    match command {
        EndpointCommand::List { model } => list(context, model.as_deref()).await,
    }
}

async fn list(context: &Context, model: Option<&str>) -> anyhow::Result<ExitCode> {
    let stores = context.stores().await?;
    let snapshot = catalogue::snapshot(context, &stores).await?;
    let directory = directory(&context.config);
    let endpoints = match model {
        None => directory.all().to_vec(),
        Some(name) => serving(name, &snapshot, &directory)?,
    };
    let servers = running_servers(context).await;
    let view = |endpoint: &Arc<Endpoint>| {
        let health = (!servers.is_empty()).then(|| health(endpoint, &servers));
        EndpointView::new(endpoint, row_prices(endpoint, &snapshot)).with_health(health)
    };
    let list = List { data: endpoints.iter().map(view).collect() };
    context.output.show_lines(&list, || {
        let rows: Vec<_> = list.data.iter().map(EndpointView::line).collect();
        table_lines(EndpointView::HEAD, &rows, |row| list.data[row].is_failing())
    })
}

/// Returns the status of each running server; notes why the health is unknown otherwise.
async fn running_servers(context: &Context) -> Vec<ServerStatus> {
    let mut found = Vec::new();
    match context.servers().servers().await {
        Ok(servers) if servers.is_empty() => note("No server is running: the health of the endpoints is unknown."),
        Ok(servers) => {
            for server in servers {
                match server.status {
                    Ok(status) => found.push(status),
                    Err(error) => note(&format!("The server {} does not show its status: {error:#}", server.id)),
                }
            }
        }
        Err(error) => note(&format!("The health of the endpoints is unknown: {error:#}")),
    }
    found
}

/// Returns the health of an endpoint in each server that has it.
fn health(endpoint: &Endpoint, servers: &[ServerStatus]) -> Vec<ServerEndpointHealth> {
    let (model, provider) = (endpoint.model.as_str(), endpoint.provider.as_str());
    let of_server = |server: &ServerStatus| {
        let found = server.endpoints.iter().find(|one| one.is_of(model, provider, &endpoint.upstream_model))?;
        Some(ServerEndpointHealth { server: server.id.clone(), health: found.clone() })
    };
    servers.iter().filter_map(of_server).collect()
}

/// Returns the endpoints of a model, by any of its names.
fn serving(
    name: &str,
    snapshot: &CatalogueSnapshot,
    directory: &EndpointDirectory,
) -> anyhow::Result<Vec<Arc<Endpoint>>> {
    match snapshot.resolve(name) {
        Some(resolved) => Ok(directory.for_model(&resolved.model).to_vec()),
        None => match directory.sandbox(name) {
            Some(endpoint) => Ok(vec![Arc::clone(endpoint)]),
            None => match similar(name, directory.all().iter().map(|endpoint| endpoint.model.as_str())) {
                Some(nearest) => bail!("model {name:?} not found; the nearest is {nearest}"),
                None => bail!("model {name:?} not found"),
            },
        },
    }
}

/// Returns the catalogue's prices; `None` without a row or a fixed price.
fn row_prices(endpoint: &Endpoint, snapshot: &CatalogueSnapshot) -> Option<TokenPrices> {
    let pricing = &snapshot.resolve(endpoint.model.as_str())?.model.pricing;
    (!pricing.is_variable()).then_some(TokenPrices { prompt: pricing.prompt, completion: pricing.completion })
}

/// Runs a command on providers.
pub async fn run_provider(context: &Context, command: ProviderCommand) -> anyhow::Result<ExitCode> {
    match command {
        ProviderCommand::Add(args) => add_provider::run(context, args).await,
        ProviderCommand::Test { slug, model } => test(context, &slug, model).await,
    }
}

async fn test(context: &Context, slug: &str, model: Option<String>) -> anyhow::Result<ExitCode> {
    let provider = find(context, slug)?;
    let report = match test_here(&context.config, &provider, model.as_deref()).await {
        Ok(report) => report,
        // The secret may be readable for the server only.
        Err(here) => match test_in_server(context, slug, model).await {
            Ok(Some(report)) => report,
            Ok(None) => return Err(here),
            Err(there) => return Err(here.context(format!("the running server cannot make the call: {there:#}"))),
        },
    };
    context.output.show_lines(&report, || provider_test_lines(&report))?;
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

/// Asks the running servers for their status; fails if there is none, or if one does not accept requests.
pub async fn run_status(context: &Context) -> anyhow::Result<ExitCode> {
    let servers: Vec<ServerView> = context.servers().servers().await?.into_iter().map(ServerView::from).collect();
    let processes = match processes(context).await {
        Ok(processes) => Some(processes),
        Err(error) => {
            note(&format!("error: the live processes are unknown: {error:#}"));
            None
        }
    };
    let ok = !servers.is_empty() && servers.iter().all(ServerView::is_ready);
    let storage = &context.config.storage;
    let database = match std::path::absolute(&storage.file) {
        Ok(file) if storage.is_file() => file.display().to_string(),
        _ => storage.name(),
    };
    let view = StatusView { ok, database, servers, processes };
    context.output.show_lines(&view, || view.lines())?;
    Ok(if ok { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Returns the processes that the database knows as live.
async fn processes(context: &Context) -> anyhow::Result<Vec<ProcessView>> {
    let stores = context.stores().await?;
    let processes = forget_processes(&context.config, &stores).await?.list().await?;
    Ok(processes.iter().map(ProcessView::from).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Environment, load_text};
    use crate::wiring::minimal_rows;

    #[test]
    fn serving_finds_model_by_any_name() {
        let text = "[sandbox]\nenabled = true\n[[providers]]\nslug = \"p\"\nbase_url = \"http://h\"\n[[endpoints]]\nmodel = \"a/b\"\nprovider = \"p\"\n\
                    upstream_model = \"m\"\n";
        let config = load_text(None, text, &Environment::default()).unwrap();
        let snapshot = CatalogueSnapshot::build(minimal_rows(&config.endpoints));
        let directory = directory(&config);
        let found = |name: &str| serving(name, &snapshot, &directory).map(|found| found.len());
        assert_eq!(found("A/b:floor").unwrap(), 1);
        assert_eq!(found("sandbox/decider").unwrap(), 1, "without a row");
        assert_eq!(found("a/c").unwrap_err().to_string(), "model \"a/c\" not found; the nearest is a/b");
        assert_eq!(found("zzzzzzzz").unwrap_err().to_string(), "model \"zzzzzzzz\" not found");
        assert_eq!(row_prices(&directory.all()[0], &snapshot).unwrap().prompt.to_string(), "0");
    }
}
