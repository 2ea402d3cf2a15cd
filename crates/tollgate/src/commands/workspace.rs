//! `tollgate workspace …`

use std::fmt::Display;
use std::process::ExitCode;
use std::str::FromStr;
use std::sync::Arc;

use anyhow::{Context as _, bail};
use domain::edit::Edit;
use domain::money::Usd;
use domain::workspace::{
    AddCredit, BudgetsChange, ClearCredit, RatesChange, RenameWorkspace, SetWorkspaceBudgets, SetWorkspaceRates,
    SuspendWorkspace, WorkspaceError,
};

use super::{Context, workspace_deletion};
use crate::cli::{BudgetArgs, NamedWorkspace, WorkspaceCommand, WorkspaceRatesArgs};
use crate::output::{escape, table};
use crate::view::{
    BudgetsView, CreatedWorkspace, LimitView, List, UsdNumber, WorkspaceBudgetsView, WorkspaceCreditView,
    WorkspaceRatesView, WorkspaceSuspensionView, WorkspaceView,
};

/// The name of a workspace without one.
const UNNAMED: &str = "unnamed workspace";

/// Runs a command on workspaces.
pub async fn run(context: &Context, command: WorkspaceCommand) -> anyhow::Result<ExitCode> {
    match command {
        WorkspaceCommand::Create { name, allow_duplicate, owner_id } => {
            create(context, name.as_deref(), allow_duplicate, owner_id).await
        }
        WorkspaceCommand::List => list(context).await,
        WorkspaceCommand::Show { workspace } => show(context, &workspace).await,
        WorkspaceCommand::Rename { id, name, allow_duplicate } => rename(context, &id, &name, allow_duplicate).await,
        WorkspaceCommand::Delete { id, with } => workspace_deletion::run(context, &id, &with).await,
        WorkspaceCommand::Credit { workspace, add_usd } => credit(context, &workspace, &add_usd).await,
        WorkspaceCommand::Unlimited { workspace } => unlimited(context, &workspace).await,
        WorkspaceCommand::Budget(args) => budget(context, &args).await,
        WorkspaceCommand::Rates(args) => rates(context, &args).await,
        WorkspaceCommand::Suspend { id } => set_suspended(context, &id, true).await,
        WorkspaceCommand::Resume { id } => set_suspended(context, &id, false).await,
    }
}

async fn create(
    context: &Context,
    name: Option<&str>,
    allow_duplicate: bool,
    owner_id: Option<String>,
) -> anyhow::Result<ExitCode> {
    let stores = context.stores_with_folded_journals().await?;
    let (create, actor) = (stores.create_workspace(), context.actor());
    let created = match name {
        // Only chosen names are unique.
        None => create.execute(&actor, UNNAMED, owner_id).await,
        Some(name) if allow_duplicate => create.execute(&actor, name, owner_id).await,
        Some(name) => create.execute_unique(&actor, name, owner_id).await,
    };
    let workspace = created?;
    let view = CreatedWorkspace { id: workspace.id.to_string(), name: workspace.name.as_str().to_owned() };
    context.output.show(&view, || format!("Created the workspace {} ({}).", view.id, view.name))?;
    Ok(ExitCode::SUCCESS)
}

async fn list(context: &Context) -> anyhow::Result<ExitCode> {
    let stores = context.stores_with_folded_journals().await?;
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

async fn show(context: &Context, named: &NamedWorkspace) -> anyhow::Result<ExitCode> {
    let stores = context.stores_with_folded_journals().await?;
    let id = context.workspace(&stores, named.id()).await?;
    let workspace = stores.workspaces.find(id).await?;
    let limits = stores.workspaces.workspace_limit_statuses(id).await?;
    let (Some(workspace), Some(limits)) = (workspace, limits) else { bail!("workspace {id} not found") };
    let limits: Vec<LimitView> = limits.iter().map(LimitView::from).collect();
    let view = WorkspaceView { limits: Some(limits), ..WorkspaceView::from(&workspace) };
    context.output.show(&view, || describe(&view))?;
    Ok(ExitCode::SUCCESS)
}

fn describe(workspace: &WorkspaceView) -> String {
    let rate = |rate: Option<u32>| rate.map_or("as configured".to_owned(), |rate| rate.to_string());
    let mut text = format!(
        "{}: {}\nState: {}\nOwner: {}\nRequests per minute: {}, tokens per minute: {}\nGuardrail: {}\nStored bytes: {}\n",
        workspace.id,
        workspace.name,
        if workspace.suspended { "suspended" } else { "active" },
        escape(workspace.owner_id.as_deref().unwrap_or("none")),
        rate(workspace.requests_per_minute),
        rate(workspace.tokens_per_minute),
        workspace.default_guardrail_id.as_deref().unwrap_or("none"),
        workspace.storage_used_bytes,
    );
    if workspace.credit_usd.is_none() {
        text.push_str("Credit: unlimited\n");
    }
    if let Some(limits) = workspace.limits.as_ref().filter(|limits| !limits.is_empty()) {
        text.push('\n');
        text.push_str(&table(LimitView::HEAD, &limits.iter().map(LimitView::line).collect::<Vec<_>>()));
    }
    text
}

async fn rename(context: &Context, id: &str, name: &str, allow_duplicate: bool) -> anyhow::Result<ExitCode> {
    let stores = context.stores().await?;
    let id = context.workspace(&stores, Some(id)).await?;
    let others = stores.workspaces.list().await?;
    if !allow_duplicate && others.iter().any(|other| other.id != id && other.name.as_str() == name) {
        return Err(WorkspaceError::NameTaken(name.to_owned()).into());
    }
    RenameWorkspace::new(Arc::clone(&stores.workspaces)).execute(&context.actor(), id, name).await?;
    let view = CreatedWorkspace { id: id.to_string(), name: name.to_owned() };
    context.output.show(&view, || format!("The workspace {id} is named {}.", escape(name)))?;
    Ok(ExitCode::SUCCESS)
}

async fn credit(context: &Context, named: &NamedWorkspace, amount: &str) -> anyhow::Result<ExitCode> {
    let amount: Usd = amount.parse().with_context(|| format!("--add-usd {amount} is not an amount of USD"))?;
    let stores = context.stores_with_folded_journals().await?;
    let id = context.workspace(&stores, named.id()).await?;
    let balance = AddCredit::new(Arc::clone(&stores.workspaces)).execute(&context.actor(), id, amount).await?;
    let view = WorkspaceCreditView { id: id.to_string(), credit_usd: Some(UsdNumber(balance)) };
    context.output.show(&view, || format!("The workspace {id} has {balance} USD."))?;
    Ok(ExitCode::SUCCESS)
}

async fn unlimited(context: &Context, named: &NamedWorkspace) -> anyhow::Result<ExitCode> {
    let stores = context.stores_with_folded_journals().await?;
    let id = context.workspace(&stores, named.id()).await?;
    ClearCredit::new(Arc::clone(&stores.workspaces)).execute(&context.actor(), id).await?;
    let view = WorkspaceCreditView { id: id.to_string(), credit_usd: None };
    context.output.show(&view, || format!("The workspace {id} has no credit limit."))?;
    Ok(ExitCode::SUCCESS)
}

async fn budget(context: &Context, args: &BudgetArgs) -> anyhow::Result<ExitCode> {
    let change = BudgetsChange {
        daily: edit("--daily", args.daily.as_deref(), "an amount of USD")?,
        weekly: edit("--weekly", args.weekly.as_deref(), "an amount of USD")?,
        monthly: edit("--monthly", args.monthly.as_deref(), "an amount of USD")?,
        lifetime: edit("--lifetime", args.lifetime.as_deref(), "an amount of USD")?,
    };
    let stores = context.stores_with_folded_journals().await?;
    let id = context.workspace(&stores, args.workspace.id()).await?;
    let use_case = SetWorkspaceBudgets::new(Arc::clone(&stores.workspaces));
    let budgets = use_case.execute(&context.actor(), id, change).await?;
    let view = WorkspaceBudgetsView { id: id.to_string(), budgets: BudgetsView::from(&budgets) };
    context.output.show(&view, || {
        let usd = |budget: Option<Usd>| budget.map_or("no limit".to_owned(), |amount| format!("{amount} USD"));
        format!(
            "Budgets of the workspace {id}: daily {}, weekly {}, monthly {}, lifetime {}.",
            usd(budgets.daily),
            usd(budgets.weekly),
            usd(budgets.monthly),
            usd(budgets.lifetime)
        )
    })?;
    Ok(ExitCode::SUCCESS)
}

async fn rates(context: &Context, args: &WorkspaceRatesArgs) -> anyhow::Result<ExitCode> {
    let change = RatesChange {
        requests_per_minute: edit("--rpm", args.rpm.as_deref(), "a whole number")?,
        tokens_per_minute: edit("--tpm", args.tpm.as_deref(), "a whole number")?,
    };
    let stores = context.stores_with_folded_journals().await?;
    let id = context.workspace(&stores, args.workspace.id()).await?;
    let rates = SetWorkspaceRates::new(Arc::clone(&stores.workspaces)).execute(&context.actor(), id, change).await?;
    let view = WorkspaceRatesView {
        id: id.to_string(),
        requests_per_minute: rates.requests_per_minute,
        tokens_per_minute: rates.tokens_per_minute,
    };
    context.output.show(&view, || {
        let rate = |rate: Option<u32>| rate.map_or("as configured".to_owned(), |rate| rate.to_string());
        let (requests, tokens) = (rate(rates.requests_per_minute), rate(rates.tokens_per_minute));
        format!(
            "All keys of the workspace {id} together, requests per minute: {requests}, tokens per minute: {tokens}."
        )
    })?;
    Ok(ExitCode::SUCCESS)
}

/// Parses an edit: a value, `none` to clear it, or no text to keep it.
fn edit<T: FromStr<Err: Display>>(option: &str, text: Option<&str>, wanted: &str) -> anyhow::Result<Edit<T>> {
    match text {
        None => Ok(Edit::Keep),
        Some("none") => Ok(Edit::Clear),
        Some(text) => match text.parse() {
            Ok(value) => Ok(Edit::Set(value)),
            Err(fault) => bail!("{option} {text} is neither {wanted} nor \"none\": {fault}"),
        },
    }
}

async fn set_suspended(context: &Context, id: &str, suspended: bool) -> anyhow::Result<ExitCode> {
    let stores = context.stores_with_folded_journals().await?;
    let id = context.workspace(&stores, Some(id)).await?;
    SuspendWorkspace::new(Arc::clone(&stores.workspaces)).execute(&context.actor(), id, suspended).await?;
    let view = WorkspaceSuspensionView { id: id.to_string(), suspended };
    let word = if suspended { "suspended" } else { "active again" };
    context.output.show(&view, || format!("The workspace {id} is {word}."))?;
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edit_sets_clears_or_keeps_value() {
        assert_eq!(edit::<u32>("--rpm", None, "a whole number").unwrap(), Edit::Keep);
        assert_eq!(edit::<u32>("--rpm", Some("none"), "a whole number").unwrap(), Edit::Clear);
        assert_eq!(edit("--rpm", Some("7"), "a whole number").unwrap(), Edit::Set(7_u32));
        let error = edit::<Usd>("--daily", Some("a lot"), "an amount of USD").unwrap_err();
        assert_eq!(
            error.to_string(),
            "--daily a lot is neither an amount of USD nor \"none\": not a decimal number from \
             -9223372.036854775808 to 9223372.036854775807 with at most 12 digits after the point"
        );
    }
}
