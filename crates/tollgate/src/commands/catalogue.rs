//! `tollgate catalogue …`

use std::io::{BufRead, IsTerminal as _};
use std::process::ExitCode;

use adapters_cache::LiveCatalogue;
use anyhow::{Context as _, bail};
use domain::change::Change;
use domain::model::{Catalogue, CatalogueSnapshot, ImportMode, ModalityFilter, Model};
use domain::version::IfMatch;
use serde::Serialize;
use serde_json::value::RawValue;

use super::Context;
use super::context::read_input;
use crate::cli::CatalogueCommand;
use crate::config::price_warnings;
use crate::output::{note, table};
use crate::view::{List, per_million_tokens};
use crate::wiring::{Stores, configured_endpoints, minimal_rows, sandbox_models};

/// The most removed rows that a message names.
const MAX_NAMED_ROWS: usize = 10;

/// Runs a command on the catalogue.
pub async fn run(context: &Context, command: CatalogueCommand) -> anyhow::Result<ExitCode> {
    match command {
        CatalogueCommand::Import { file, replace, yes, dry_run } => {
            let mode = if replace { ImportMode::Replace } else { ImportMode::Merge };
            import(context, &file, ImportOptions { mode, confirmed: yes, dry_run }).await
        }
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
    /// The models after the import that a configured endpoint serves.
    callable_models: usize,
    dry_run: bool,
    removed_models: Vec<String>,
}

/// The options of an import.
struct ImportOptions {
    mode: ImportMode,
    confirmed: bool,
    dry_run: bool,
}

async fn import(context: &Context, file: &str, options: ImportOptions) -> anyhow::Result<ExitCode> {
    let (text, name) = read_input(file)?;
    let nothing = || format!("nothing was imported from {name}");
    let rows = wires::catalogue::read_rows(&text).with_context(nothing)?;
    let stores = context.stores().await?;
    let endpoints = configured_endpoints(&context.config);
    let prices = |endpoint| price_warnings(endpoint, &rows).into_iter().map(move |reason| (endpoint, reason));
    let warnings: Vec<String> = endpoints
        .iter()
        .flat_map(prices)
        .map(|(endpoint, reason)| format!("warning: endpoint {} at {}: {reason}", endpoint.model, endpoint.provider))
        .collect();
    let use_case = stores.import_catalogue(&context.config);
    let by = context.authority();
    let preview = use_case.preview(&Change::plain(&by), rows.clone(), options.mode).await.with_context(nothing)?;
    let done = if options.dry_run {
        preview
    } else {
        let removed: Vec<String> = preview.removed.iter().map(ToString::to_string).collect();
        if !options.confirmed && !removed.is_empty() {
            confirm_removal(context, &removed)?;
        }
        let accepted = if options.confirmed { IfMatch::Any } else { IfMatch::Versions(vec![preview.version]) };
        let accepted = (options.mode == ImportMode::Replace).then_some(accepted);
        use_case.execute(&Change::conditional(&by, accepted), rows, options.mode).await.with_context(nothing)?
    };
    let view = ImportView {
        imported: done.report.imported,
        updated: done.report.updated,
        removed: done.report.removed,
        callable_models: done.callable_models,
        dry_run: options.dry_run,
        removed_models: done.removed.iter().map(ToString::to_string).collect(),
    };
    context.output.show(&view, || describe_import(&view))?;
    for warning in &warnings {
        note(warning);
    }
    Ok(ExitCode::SUCCESS)
}

fn describe_import(view: &ImportView) -> String {
    let counts = format!("{} rows imported, {} updated, {} removed", view.imported, view.updated, view.removed);
    let counts = if view.dry_run { format!("Dry run, nothing changed: {counts}.") } else { format!("{counts}.") };
    let removed = match view.removed_models.as_slice() {
        [] => String::new(),
        models => format!("\nRemoved: {}.", enumerate(models)),
    };
    format!("{counts}{removed}\nCallable models (with an endpoint): {}", view.callable_models)
}

/// Asks on a terminal whether rows may be removed.
///
/// # Errors
/// The answer is no, or there is no terminal to ask on.
fn confirm_removal(context: &Context, models: &[String]) -> anyhow::Result<()> {
    let removal = format!("--replace removes {} of the stored rows: {}", models.len(), enumerate(models));
    let stdin = std::io::stdin();
    if context.output.is_json() || !stdin.is_terminal() {
        bail!("{removal}; --yes confirms, --dry-run shows the result");
    }
    note(&removal);
    note("Remove them? [y/N]");
    if !is_confirmation(stdin.lock()).context("cannot read the answer")? {
        bail!("nothing was imported");
    }
    Ok(())
}

fn is_confirmation(mut input: impl BufRead) -> std::io::Result<bool> {
    let mut answer = String::new();
    input.read_line(&mut answer)?;
    Ok(["y", "yes"].contains(&answer.trim().to_ascii_lowercase().as_str()))
}

/// Joins the first names, and counts the others.
fn enumerate(names: &[String]) -> String {
    let listed = names.iter().take(MAX_NAMED_ROWS).map(String::as_str).collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(MAX_NAMED_ROWS) {
        0 => listed,
        others => format!("{listed} and {others} more"),
    }
}

/// Returns the catalogue as the server shows it, including the rows of configured endpoints.
///
/// # Errors
/// The store failed.
pub async fn snapshot(context: &Context, stores: &Stores) -> anyhow::Result<std::sync::Arc<CatalogueSnapshot>> {
    let overlay = minimal_rows(&context.config.endpoints);
    let sandbox = sandbox_models(&context.config);
    let live = LiveCatalogue::load(std::sync::Arc::clone(&stores.models), 0, overlay, sandbox).await?;
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
        table(["ID", "OUTPUT", "USD/M TOKENS IN", "USD/M TOKENS OUT"], &rows)
    })
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
        per_million_tokens(row.pricing.prompt),
        per_million_tokens(row.pricing.completion),
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
    context.output.show(&row, || pretty(row.get()))
}

/// Returns a row in the format of the model operation.
fn raw(context: &Context, row: &Model) -> anyhow::Result<Box<RawValue>> {
    let details = format!("{}/models/{}/endpoints", context.config.server.base_path, row.canonical_slug);
    Ok(RawValue::from_string(wires::catalogue::write_row(row, &details))?)
}

fn pretty(json: &str) -> String {
    crate::output::indent(json)
}

#[cfg(test)]
mod tests {
    use super::*;
    use domain::model::Modality;

    #[test]
    fn confirmation_requires_explicit_yes() {
        for (input, expected) in [("y\n", true), ("YES\n", true), ("\n", false), ("", false), ("no\n", false)] {
            assert_eq!(is_confirmation(input.as_bytes()).unwrap(), expected, "{input:?}");
        }
    }

    #[test]
    fn import_names_first_removed_rows() {
        let names: Vec<String> = (0..12).map(|number| format!("a/m{number}")).collect();
        assert!(enumerate(&names).ends_with("a/m9 and 2 more"), "{}", enumerate(&names));
        assert_eq!(enumerate(&names[..2]), "a/m0, a/m1");
    }

    #[test]
    fn list_contains_rows_that_pass_filter() {
        let rows = crate::wiring::starter_rows().unwrap();
        let snapshot = CatalogueSnapshot::build(rows.clone());
        for text in ["all", "decisions", "text,image"] {
            let filter: ModalityFilter = text.parse().unwrap();
            assert_eq!(
                rows.iter().filter(|row| passes(row, filter)).count(),
                snapshot.select(filter).count(),
                "{text}"
            );
        }
        assert!(rows.iter().any(|row| !row.architecture.outputs().contains(Modality::Text)));
    }
}
