//! `tollgate destination …`

use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context as _, anyhow};
use api_actix::{DestinationView, read_destination};
use domain::change::Change;
use domain::ids::DestinationId;
use domain::observability::{Destination, DestinationError, DestinationFields, RetryDeadLetters, find_key_hashes};

use super::Context;
use super::context::{read_input, read_secret};
use crate::cli::{DestinationArgs, DestinationCommand};
use crate::output::{indent, table};
use crate::view::{Deleted, List, RetriedView, TestedDestination};
use crate::wiring::{Stores, broadcast};

/// Runs a command on destinations.
pub async fn run(context: &Context, command: DestinationCommand) -> anyhow::Result<ExitCode> {
    match command {
        DestinationCommand::Create { fields, workspace } => create(context, fields, workspace.as_deref()).await,
        DestinationCommand::Update { id, fields } => update(context, &id, fields).await,
        DestinationCommand::Delete { id } => delete(context, &id).await,
        DestinationCommand::List { workspace } => list(context, workspace.as_deref()).await,
        DestinationCommand::Test { id } => test(context, &id).await,
        DestinationCommand::Retry { id } => retry(context, id.as_deref()).await,
    }
}

async fn create(context: &Context, args: DestinationArgs, workspace: Option<&str>) -> anyhow::Result<ExitCode> {
    let (fields, of_file) = fields(args)?;
    let stores = context.stores().await?;
    let workspace = context.workspace(&stores, workspace.or(of_file.as_deref())).await?;
    let destinations = broadcast::manage_destinations(&context.config, &stores)?;
    let made = destinations.create(&Change::plain(&context.authority()), Some(workspace), &fields).await?;
    show(context, &stores, &made, "Created").await
}

async fn update(context: &Context, id: &str, args: DestinationArgs) -> anyhow::Result<ExitCode> {
    let (fields, _) = fields(args)?;
    let stores = context.stores().await?;
    let destinations = broadcast::manage_destinations(&context.config, &stores)?;
    let changed = destinations
        .update(&Change::plain(&context.authority()), id, &fields)
        .await
        .map_err(|error| name_missing(error, id))?;
    show(context, &stores, &changed, "Updated").await
}

async fn delete(context: &Context, id: &str) -> anyhow::Result<ExitCode> {
    let stores = context.stores().await?;
    let destinations = broadcast::manage_destinations(&context.config, &stores)?;
    destinations.delete(&Change::plain(&context.authority()), id).await.map_err(|error| name_missing(error, id))?;
    let view = Deleted { id, deleted: true };
    context.output.show(&view, || format!("The destination {id} is deleted."))
}

/// Returns the fields of the file with those of the options, and the workspace that the file names.
fn fields(args: DestinationArgs) -> anyhow::Result<(DestinationFields, Option<String>)> {
    let (of_file, workspace) = match &args.from {
        Some(file) => {
            let (text, name) = read_input(file)?;
            read_destination(&text).map_err(|fault| anyhow!("{name} cannot be used: {fault}"))?
        }
        None => (DestinationFields::default(), None),
    };
    let secret = args.secret_file.as_deref().map(|file| read_secret("--secret-file", file)).transpose()?;
    let fields = DestinationFields {
        name: args.name.or(of_file.name),
        kind: args.kind.or(of_file.kind),
        url: args.url.or(of_file.url),
        secret: secret.or(of_file.secret),
        enabled: args.enabled.or(of_file.enabled),
        privacy_mode: args.privacy_mode.or(of_file.privacy_mode),
        headers: of_file.headers,
        sampling_rate: of_file.sampling_rate,
        api_key_hashes: of_file.api_key_hashes,
    };
    Ok((fields, workspace))
}

/// Names the missing destination.
fn name_missing(error: DestinationError, id: &str) -> anyhow::Error {
    match error {
        DestinationError::NotFound => anyhow!("destination {id} not found"),
        other => other.into(),
    }
}

/// Shows a written destination in the JSON of the HTTP API.
async fn show(context: &Context, stores: &Stores, destination: &Destination, done: &str) -> anyhow::Result<ExitCode> {
    // The write has succeeded: keys without a hash are shown by their ids.
    let hashes = find_key_hashes(&*stores.keys, std::slice::from_ref(destination)).await.unwrap_or_default();
    let view = DestinationView::new(destination, &hashes);
    let text = serde_json::to_string(&view)?;
    context.output.show(&view, || format!("{done} the destination {}.\n{}", destination.id, indent(&text)))
}

async fn list(context: &Context, workspace: Option<&str>) -> anyhow::Result<ExitCode> {
    let stores = context.stores().await?;
    let workspace = match workspace {
        Some(named) => Some(context.workspace(&stores, Some(named)).await?),
        None => None,
    };
    let found = broadcast::repository(&stores).list(workspace).await?;
    let hashes = find_key_hashes(&*stores.keys, &found).await?;
    let list = List { data: found.iter().map(|one| DestinationView::new(one, &hashes)).collect::<Vec<_>>() };
    context.output.show(&list, || {
        let row = |one: &DestinationView| {
            let state = if one.enabled { "enabled" } else { "disabled" };
            [one.id.clone(), one.kind().to_owned(), state.to_owned(), one.url().to_owned(), one.name.clone()]
        };
        table(["ID", "TYPE", "STATE", "URL", "NAME"], &list.data.iter().map(row).collect::<Vec<_>>())
    })
}

async fn test(context: &Context, id: &str) -> anyhow::Result<ExitCode> {
    let stores = context.stores().await?;
    let destinations = broadcast::manage_destinations(&context.config, &stores)?;
    let tested = destinations.test(&context.authority(), id).await.map_err(|error| name_missing(error, id))?;
    let view = TestedDestination { id: tested.id.to_string(), reached: true };
    context.output.show(&view, || format!("The destination {id} accepts traces."))
}

async fn retry(context: &Context, id: Option<&str>) -> anyhow::Result<ExitCode> {
    let id: Option<DestinationId> =
        id.map(|id| id.parse().with_context(|| format!("{id:?} cannot be used"))).transpose()?;
    let stores = context.stores().await?;
    let retry =
        RetryDeadLetters::new(broadcast::outbox(&stores), broadcast::repository(&stores), Arc::clone(&stores.clock));
    let retried_count = retry.execute(&context.authority(), id).await?;
    context.output.show(&RetriedView { retried_count }, || {
        format!("{retried_count} dead letters are queued for delivery by a running server.")
    })
}
