//! `tollgate endpoint …`

use std::process::ExitCode;
use std::sync::Arc;

use anyhow::bail;
use domain::model::CatalogueSnapshot;
use domain::routing::{Endpoint, EndpointDirectory, TokenPrices};

use super::{Context, catalogue};
use crate::cli::EndpointCommand;
use crate::output::table;
use crate::view::{EndpointView, List};
use crate::wiring::directory;

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
    let data: Vec<EndpointView> = match model {
        None => directory.all().to_vec(),
        Some(name) => serving(name, &snapshot, &directory)?,
    }
    .iter()
    .map(|endpoint| EndpointView::new(endpoint, row_prices(endpoint, &snapshot)))
    .collect();
    let list = List { data };
    context.output.show(&list, || {
        let lines: Vec<[String; 7]> = list.data.iter().map(EndpointView::line).collect();
        table(EndpointView::HEAD, &lines)
    })?;
    Ok(ExitCode::SUCCESS)
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
            None => bail!("model {name:?} not found"),
        },
    }
}

/// Returns the catalogue's prices; `None` without a row or a fixed price.
fn row_prices(endpoint: &Endpoint, snapshot: &CatalogueSnapshot) -> Option<TokenPrices> {
    let pricing = &snapshot.resolve(endpoint.model.as_str())?.model.pricing;
    (!pricing.is_variable()).then_some(TokenPrices { prompt: pricing.prompt, completion: pricing.completion })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Environment, load_text};
    use crate::wiring::minimal_rows;

    #[test]
    fn serving_finds_model_by_any_name() {
        let text = "[[providers]]\nslug = \"p\"\nbase_url = \"http://h\"\n[[endpoints]]\nmodel = \"a/b\"\nprovider = \"p\"\n\
                    upstream_model = \"m\"\n";
        let config = load_text(None, text, &Environment::default()).unwrap();
        let snapshot = CatalogueSnapshot::build(minimal_rows(&config.endpoints));
        let directory = directory(&config);
        let found = |name: &str| serving(name, &snapshot, &directory).map(|found| found.len());
        assert_eq!(found("A/b:floor").unwrap(), 1);
        assert_eq!(found("sandbox/decider").unwrap(), 1, "without a row");
        assert!(found("a/c").unwrap_err().to_string().contains("a/c"));
        assert_eq!(row_prices(&directory.all()[0], &snapshot).unwrap().prompt.to_string(), "0");
    }
}
