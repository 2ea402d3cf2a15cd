//! `tollgate workspace …`

use std::process::ExitCode;

use anyhow::{Context as _, bail};
use domain::audit::AuditDraft;
use domain::ids::WorkspaceId;
use domain::json::Json;
use domain::money::Usd;

use super::Context;
use crate::cli::WorkspaceCommand;
use crate::output::{note, table};
use crate::view::{CreatedWorkspace, Credited, List, Suspended, UsdNumber, WorkspaceView};

/// Runs one of the commands on workspaces.
pub async fn run(context: &Context, command: WorkspaceCommand) -> anyhow::Result<ExitCode> {
    match command {
        WorkspaceCommand::Create { name, owner_id } => create(context, &name, owner_id).await,
        WorkspaceCommand::List => list(context).await,
        WorkspaceCommand::Credit { id, add_usd } => credit(context, id.as_deref(), &add_usd).await,
        WorkspaceCommand::Suspend { id } => set_suspended(context, &id, true).await,
        WorkspaceCommand::Resume { id } => set_suspended(context, &id, false).await,
    }
}

async fn create(context: &Context, name: &str, owner_id: Option<String>) -> anyhow::Result<ExitCode> {
    let stores = context.stores().await?;
    let workspace = stores.create_workspace().execute(&context.actor(), name, owner_id).await?;
    let view = CreatedWorkspace { id: workspace.id.to_string(), name: workspace.name.as_str().to_owned() };
    context.output.show(&view, || format!("Made the workspace {} ({}).", view.id, view.name))?;
    Ok(ExitCode::SUCCESS)
}

async fn list(context: &Context) -> anyhow::Result<ExitCode> {
    let stores = context.stores().await?;
    let workspaces = stores.workspaces.list().await?;
    let list = List { data: workspaces.iter().map(WorkspaceView::from).collect::<Vec<_>>() };
    context.output.show(&list, || {
        table(["ID", "STATE", "CREDIT USD", "STORED BYTES", "NAME"], &list.data.iter().map(row).collect::<Vec<_>>())
    })?;
    Ok(ExitCode::SUCCESS)
}

fn row(workspace: &WorkspaceView) -> [String; 5] {
    let state = match (workspace.suspended, workspace.is_default) {
        (true, _) => "suspended",
        (false, true) => "default",
        (false, false) => "",
    };
    [
        workspace.id.clone(),
        state.to_owned(),
        workspace.credit_usd.map_or("unlimited".to_owned(), |credit| credit.0.to_string()),
        workspace.storage_used_bytes.to_string(),
        workspace.name.clone(),
    ]
}

async fn credit(context: &Context, id: Option<&str>, amount: &str) -> anyhow::Result<ExitCode> {
    let amount: Usd = amount.parse().with_context(|| format!("--add-usd {amount} is not an amount of USD"))?;
    let stores = context.stores().await?;
    let id = context.workspace(&stores, id).await?;
    let text = Json::string(&amount.to_string());
    let details = Json::object([("add_usd", text.text())]);
    let audit = AuditDraft::done(&context.actor(), "workspace.credit", format!("workspace {id}"), details);
    let Some(balance) = stores.workspaces.add_credit(id, amount, &audit).await? else {
        bail!("there is no workspace {id}")
    };
    note("note: the credit is recorded; this version does not enforce it yet");
    let view = Credited { id: id.to_string(), credit_usd: UsdNumber(balance) };
    context.output.show(&view, || format!("The workspace {id} has {balance} USD."))?;
    Ok(ExitCode::SUCCESS)
}

async fn set_suspended(context: &Context, id: &str, suspended: bool) -> anyhow::Result<ExitCode> {
    let id: WorkspaceId = id.parse().with_context(|| format!("{id:?} cannot be used"))?;
    let stores = context.stores().await?;
    let details = Json::object([("suspended", if suspended { "true" } else { "false" })]);
    let audit = AuditDraft::done(&context.actor(), "workspace.set_suspended", format!("workspace {id}"), details);
    if !stores.workspaces.set_suspended(id, suspended, &audit).await? {
        bail!("there is no workspace {id}");
    }
    let view = Suspended { id: id.to_string(), suspended };
    let word = if suspended { "suspended" } else { "at work again" };
    context.output.show(&view, || format!("The workspace {id} is {word}."))?;
    Ok(ExitCode::SUCCESS)
}
