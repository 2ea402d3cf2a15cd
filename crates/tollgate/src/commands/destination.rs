//! `tollgate destination …`

use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context as _, bail};
use api_actix::DestinationView;
use domain::ids::DestinationId;
use domain::observability::{
    DestinationError, FindDestinationKeys, ListDestinations, RetryDeadLetters, TestDestination,
};

use super::Context;
use crate::cli::DestinationCommand;
use crate::output::table;
use crate::view::{List, RetriedView, TestedDestination};
use crate::wiring::broadcast;

/// Runs a command on destinations.
pub async fn run(context: &Context, command: DestinationCommand) -> anyhow::Result<ExitCode> {
    match command {
        DestinationCommand::List { workspace } => list(context, workspace.as_deref()).await,
        DestinationCommand::Test { id } => test(context, &id).await,
        DestinationCommand::Retry { id } => retry(context, id.as_deref()).await,
    }
}

async fn list(context: &Context, workspace: Option<&str>) -> anyhow::Result<ExitCode> {
    let stores = context.stores().await?;
    let workspace = match workspace {
        Some(named) => Some(context.workspace(&stores, Some(named)).await?),
        None => None,
    };
    let found = ListDestinations::new(broadcast::repository(&stores)).execute(workspace).await?;
    let hashes = FindDestinationKeys::new(Arc::clone(&stores.keys)).execute(&found).await?;
    let list = List { data: found.iter().map(|one| DestinationView::new(one, &hashes)).collect::<Vec<_>>() };
    context.output.show(&list, || {
        let row = |one: &DestinationView| {
            let state = if one.enabled { "enabled" } else { "disabled" };
            [one.id.clone(), one.kind.to_owned(), state.to_owned(), one.url().to_owned(), one.name.clone()]
        };
        table(["ID", "TYPE", "STATE", "URL", "NAME"], &list.data.iter().map(row).collect::<Vec<_>>())
    })?;
    Ok(ExitCode::SUCCESS)
}

async fn test(context: &Context, id: &str) -> anyhow::Result<ExitCode> {
    let stores = context.stores().await?;
    let test = TestDestination::new(broadcast::destination_ports(&context.config, &stores)?);
    let tested = match test.execute(id).await {
        Err(DestinationError::NotFound) => bail!("destination {id} not found"),
        other => other?,
    };
    let view = TestedDestination { id: tested.id.to_string(), reached: true };
    context.output.show(&view, || format!("The destination {id} accepts traces."))?;
    Ok(ExitCode::SUCCESS)
}

async fn retry(context: &Context, id: Option<&str>) -> anyhow::Result<ExitCode> {
    let id: Option<DestinationId> =
        id.map(|id| id.parse().with_context(|| format!("{id:?} cannot be used"))).transpose()?;
    let stores = context.stores().await?;
    let retry = RetryDeadLetters::new(broadcast::outbox(&stores), Arc::clone(&stores.clock));
    let retried_count = retry.execute(&context.actor(), id).await?;
    context.output.show(&RetriedView { retried_count }, || {
        format!("{retried_count} dead letters are queued for delivery by a running server.")
    })?;
    Ok(ExitCode::SUCCESS)
}
