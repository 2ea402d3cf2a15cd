//! `tollgate usage …`

use std::process::ExitCode;

use anyhow::bail;
use domain::ids::DecisionId;
use domain::usage::UsageFilter;

use super::Context;
use crate::cli::UsageCommand;
use crate::output::table;
use crate::view::{List, UsageView};

/// Runs one of the commands on usage records.
pub async fn run(context: &Context, command: UsageCommand) -> anyhow::Result<ExitCode> {
    match command {
        UsageCommand::List { workspace, limit } => list(context, workspace.as_deref(), limit).await,
        UsageCommand::Show { id } => show(context, &id).await,
    }
}

async fn list(context: &Context, workspace: Option<&str>, limit: u64) -> anyhow::Result<ExitCode> {
    let stores = context.stores().await?;
    let workspace = context.workspace(&stores, workspace).await?;
    let records = stores.usage.list(&UsageFilter::of(workspace), limit).await?;
    let list = List { data: records.iter().map(UsageView::from).collect::<Vec<_>>() };
    context.output.show(&list, || {
        table(
            ["ID", "CREATED", "OUTCOME", "MODEL", "IN", "OUT", "COST USD"],
            &list.data.iter().map(row).collect::<Vec<_>>(),
        )
    })?;
    Ok(ExitCode::SUCCESS)
}

fn row(record: &UsageView) -> [String; 7] {
    [
        record.id.clone(),
        record.created_at.clone(),
        record.outcome.to_owned(),
        record.model.clone(),
        record.input_tokens.to_string(),
        record.output_tokens.to_string(),
        record.cost.0.to_string(),
    ]
}

async fn show(context: &Context, id: &str) -> anyhow::Result<ExitCode> {
    let Ok(id) = id.parse::<DecisionId>() else { bail!("{id:?} is not the id of an answer") };
    let stores = context.stores().await?;
    let Some(record) = stores.usage.find(&id).await? else { bail!("there is no usage record {id}") };
    let view = UsageView::from(&record);
    let pretty = serde_json::to_string_pretty(&view)?;
    context.output.show(&view, || pretty)?;
    Ok(ExitCode::SUCCESS)
}
