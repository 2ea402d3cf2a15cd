//! `tollgate catalogue …`

use adapters_cache::LiveCatalogue;
use bytes::Bytes;
use domain::model::{Catalogue as _, CatalogueSnapshot};
use domain::money::Price;
use http::header::IF_MATCH;
use http::{HeaderValue, Request};

use super::context::{confirm, read_input};
use super::transfer::upload_json;
use crate::cli::CatalogueCommand;
use crate::commands::prelude::*;
use crate::output::per_million_tokens;
use crate::wiring::{minimal_rows, sandbox_models};

/// The most removed rows that a message names.
const MAX_NAMED_ROWS: usize = 10;

/// Runs a command on the catalogue.
pub async fn run(api: &Api<'_>, command: CatalogueCommand) -> anyhow::Result<ExitCode> {
    match command {
        CatalogueCommand::Import { file, replace, yes, dry_run } => {
            import(api, &file, ImportOptions { replace, confirmed: yes, dry_run }).await
        }
        CatalogueCommand::List { output_modalities } => {
            let models = with_query("/models", &[("output_modalities", Some(&output_modalities))]);
            let models = api.get(&models).await?;
            api.show_text(&models, || {
                let rows: Vec<[String; 4]> = elements(&models).iter().map(line).collect();
                table(["ID", "OUTPUT", "USD/M TOKENS IN", "USD/M TOKENS OUT"], &rows)
            })
        }
        CatalogueCommand::Show { id } => {
            let (author, slug) = id.split_once('/').unwrap_or((&id, ""));
            let model = api.get(&format!("/model/{}/{}", segment(author), segment(slug))).await?;
            api.show_text(&model, || indent(pointer(&model, "/data").as_ref().map_or("", Json::text)))
        }
    }
}

/// The options of an import.
struct ImportOptions {
    replace: bool,
    confirmed: bool,
    dry_run: bool,
}

async fn import(api: &Api<'_>, file: &str, options: ImportOptions) -> anyhow::Result<ExitCode> {
    let (text, name) = read_input(file)?;
    let rows = Bytes::from(text);
    let send = async |dry_run: bool, version: Option<&str>| {
        let mode = if options.replace { "replace" } else { "merge" };
        let query = [("mode", Some(mode)), ("dry_run", dry_run.then_some("true"))];
        let mut request = Request::builder().method(Method::POST);
        if let Some(version) = version {
            request = request.header(IF_MATCH, HeaderValue::try_from(version)?);
        }
        let sent = upload_json(api, &with_query("/catalogue/imports", &query), request, &rows).await;
        sent.with_context(|| format!("nothing was imported from {name}"))
    };
    let done = if options.dry_run || !options.replace {
        send(options.dry_run, None).await?
    } else {
        let preview = send(true, None).await?;
        let removed = removed_models(&preview);
        if !removed.is_empty() && !options.confirmed {
            let removal = format!("--replace removes {} of the stored rows: {}", removed.len(), enumerate(&removed));
            let hint = "--yes confirms, --dry-run shows the result";
            ensure!(confirm(&api.context.output, &removal, "Remove them?", hint)?, "nothing was imported");
        }
        let version = text_at(&preview, "/data/version").context("the dry run has no version")?;
        send(false, Some(&format!("\"{version}\""))).await?
    };
    api.show_text(&done, || describe_import(&done, options.dry_run.then_some((file, options.replace))))?;
    for warning in strings(&done, "/data/warnings") {
        note(&format!("warning: {warning}"));
    }
    Ok(ExitCode::SUCCESS)
}

fn removed_models(done: &Json) -> Vec<String> {
    strings(done, "/data/removed_models")
}

fn strings(json: &Json, at: &str) -> Vec<String> {
    let elements = pointer(json, at).and_then(|list| list.elements()).unwrap_or_default();
    elements.iter().filter_map(Json::as_string).collect()
}

/// Describes an import, or a dry run with its file and `--replace`.
fn describe_import(done: &Json, dry_run: Option<(&str, bool)>) -> String {
    let count = |name: &str| pointer(done, &format!("/data/{name}")).map_or_else(String::new, |n| n.text().to_owned());
    let counts =
        format!("{} rows imported, {} updated, {} removed", count("imported"), count("updated"), count("removed"));
    let counts = if dry_run.is_some() { format!("Dry run, nothing changed: {counts}.") } else { format!("{counts}.") };
    let removed = match removed_models(done).as_slice() {
        [] => String::new(),
        models => format!("\nRemoved: {}.", enumerate(models)),
    };
    let described = format!("{counts}{removed}\nCallable models (with an endpoint): {}", count("callable_models"));
    match dry_run {
        None => described,
        Some((file, replace)) => {
            let option = if replace { " --replace" } else { "" };
            with_next(&described, &format!("tollgate catalogue import {file}{option}"))
        }
    }
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

/// Returns the row of a model: its outputs, and its prices in USD per million tokens.
fn line(model: &Json) -> [String; 4] {
    let price = |at: &str| {
        let price = text_at(model, at).and_then(|price| price.parse::<Price>().ok());
        price.map_or_else(|| "-".to_owned(), per_million_tokens)
    };
    [
        text_at(model, "/id").unwrap_or_default(),
        strings(model, "/architecture/output_modalities").join(","),
        price("/pricing/prompt"),
        price("/pricing/completion"),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn import_names_first_removed_rows() {
        let names: Vec<String> = (0..12).map(|number| format!("a/m{number}")).collect();
        assert!(enumerate(&names).ends_with("a/m9 and 2 more"), "{}", enumerate(&names));
        assert_eq!(enumerate(&names[..2]), "a/m0, a/m1");
    }

    #[test]
    fn line_has_prices_per_million_tokens() {
        let model = r#"{"id":"a/b","architecture":{"output_modalities":["text","image"]},
            "pricing":{"prompt":"0.000000042","completion":"-1"}}"#;
        assert_eq!(line(&Json::parse(model).unwrap()), ["a/b", "text,image", "0.042", "variable"]);
        assert_eq!(line(&Json::parse("{}").unwrap()), ["", "", "-", "-"]);
    }
}
