//! `tollgate catalogue …`

use std::io::Read;
use std::process::ExitCode;

use adapters_cache::LiveCatalogue;
use anyhow::{Context as _, bail};
use domain::model::{Catalogue, CatalogueSnapshot, ImportMode, ModalityFilter, Model};
use serde::Serialize;
use serde_json::value::RawValue;

use super::Context;
use crate::cli::CatalogueCommand;
use crate::output::{note, table};
use crate::view::List;
use crate::wiring::{Stores, configured_endpoints, minimal_rows, price_warnings};

/// Runs a command on the catalogue.
pub async fn run(context: &Context, command: CatalogueCommand) -> anyhow::Result<ExitCode> {
    match command {
        CatalogueCommand::Import { file, replace } => import(context, &file, replace).await,
        CatalogueCommand::List { output_modalities } => list(context, &output_modalities).await,
        CatalogueCommand::Show { id } => show(context, &id).await,
    }
}

/// The result of an import, in rows.
#[derive(Serialize)]
struct ImportView {
    imported: usize,
    updated: usize,
    removed: usize,
}

async fn import(context: &Context, file: &str, replace: bool) -> anyhow::Result<ExitCode> {
    let (text, name) = if file == "-" {
        let mut text = String::new();
        std::io::stdin().read_to_string(&mut text).context("cannot read standard input")?;
        (text, "standard input")
    } else {
        (std::fs::read_to_string(file).with_context(|| format!("cannot read {file}"))?, file)
    };
    let nothing = || format!("nothing was imported from {name}");
    let rows = catalogue_json::read_rows(&text).with_context(nothing)?;
    let stores = context.stores().await?;
    let mode = if replace { ImportMode::Replace } else { ImportMode::Merge };
    let served = context.config.endpoints.iter().map(|endpoint| endpoint.model.clone());
    let endpoints = configured_endpoints(&context.config);
    let prices = |endpoint| price_warnings(endpoint, &rows).into_iter().map(move |reason| (endpoint, reason));
    let warnings: Vec<String> = endpoints
        .iter()
        .flat_map(prices)
        .map(|(endpoint, reason)| format!("warning: endpoint {} at {}: {reason}", endpoint.model, endpoint.provider))
        .collect();
    let report =
        stores.import_catalogue().serving(served).execute(&context.actor(), rows, mode).await.with_context(nothing)?;
    let view = ImportView { imported: report.imported, updated: report.updated, removed: report.removed };
    context.output.show(&view, || {
        format!("{} rows imported, {} updated, {} removed.", view.imported, view.updated, view.removed)
    })?;
    for warning in &warnings {
        note(warning);
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns the catalogue as the server shows it, including the rows of configured endpoints.
///
/// # Errors
/// The store failed.
pub async fn snapshot(context: &Context, stores: &Stores) -> anyhow::Result<std::sync::Arc<CatalogueSnapshot>> {
    let overlay = minimal_rows(&context.config.endpoints);
    let hide_sandbox = !context.config.sandbox_enabled;
    let live = LiveCatalogue::load(std::sync::Arc::clone(&stores.models), 0, overlay, hide_sandbox).await?;
    Ok(live.snapshot())
}

async fn list(context: &Context, output_modalities: &str) -> anyhow::Result<ExitCode> {
    let filter: ModalityFilter = output_modalities.parse()?;
    let stores = context.stores().await?;
    let snapshot = snapshot(context, &stores).await?;
    let kept: Vec<&Model> = snapshot.rows().iter().map(AsRef::as_ref).filter(|row| passes(row, filter)).collect();
    let data = kept.iter().map(|row| raw(context, row)).collect::<Result<Vec<_>, _>>()?;
    context.output.show(&List { data }, || {
        let rows: Vec<[String; 4]> = kept.iter().map(|row| line(row)).collect();
        table(["ID", "OUTPUT", "USD/TOKEN IN", "USD/TOKEN OUT"], &rows)
    })?;
    Ok(ExitCode::SUCCESS)
}

fn passes(row: &Model, filter: ModalityFilter) -> bool {
    match filter {
        ModalityFilter::All => true,
        ModalityFilter::AnyOf(wanted) => row.architecture.outputs().intersects(wanted),
    }
}

fn line(row: &Model) -> [String; 4] {
    [
        row.id.to_string(),
        row.architecture.output_modalities.join(","),
        row.pricing.prompt.to_string(),
        row.pricing.completion.to_string(),
    ]
}

async fn show(context: &Context, id: &str) -> anyhow::Result<ExitCode> {
    let stores = context.stores().await?;
    let snapshot = snapshot(context, &stores).await?;
    let Some(found) = snapshot.resolve(id) else {
        let nearest = snapshot.nearest(id, 3, |_| true);
        let hint = if nearest.is_empty() { String::new() } else { format!("; nearest: {}", nearest.join(", ")) };
        bail!("model {id:?} not found{hint}")
    };
    let row = raw(context, &found.model)?;
    context.output.show(&row, || pretty(row.get()))?;
    Ok(ExitCode::SUCCESS)
}

/// Returns a row in the format of the model operation.
fn raw(context: &Context, row: &Model) -> anyhow::Result<Box<RawValue>> {
    let details = format!("{}/models/{}/endpoints", context.config.server.base_path, row.canonical_slug);
    Ok(RawValue::from_string(catalogue_json::write_row(row, &details))?)
}

fn pretty(json: &str) -> String {
    crate::output::indent(json)
}

#[cfg(test)]
mod tests {
    use super::*;
    use domain::model::Modality;

    #[test]
    fn list_contains_rows_that_pass_filter() {
        let rows = crate::wiring::starter_rows().unwrap();
        let snapshot = CatalogueSnapshot::build(rows.clone());
        for text in ["all", "decisions", "text,image"] {
            let filter: ModalityFilter = text.parse().unwrap();
            assert_eq!(rows.iter().filter(|row| passes(row, filter)).count(), snapshot.count(filter), "{text}");
        }
        assert!(rows.iter().any(|row| !row.architecture.outputs().contains(Modality::Text)));
    }
}
