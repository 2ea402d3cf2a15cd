//! `tollgate workspace …`

use std::fmt::Display;
use std::process::ExitCode;
use std::str::FromStr;

use anyhow::{Context as _, anyhow, bail};
use domain::change::Change;
use domain::edit::Edit;
use domain::money::Usd;
use domain::retention::DeleteWorkspaceError;
use domain::workspace::{BudgetsChange, RatesChange, WorkspaceChange, WorkspaceContent, WorkspaceError};

use super::Context;
use crate::cli::{BudgetArgs, NamedWorkspace, WorkspaceCommand, WorkspaceRatesArgs};
use crate::output::{escape, table};
use crate::view::{
    BudgetsView, CreatedWorkspace, DeletedWorkspaceView, LimitView, List, UsdNumber, WorkspaceBudgetsView,
    WorkspaceCreditView, WorkspaceRatesView, WorkspaceSuspensionView, WorkspaceView,
};
use crate::wiring::broadcast;

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
        WorkspaceCommand::Delete { id, with } => {
            delete_workspace(context, &id, &with.into_iter().map(Into::into).collect::<Vec<_>>()).await
        }
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
    let (create, by) = (stores.create_workspace(), context.authority());
    let owner_id = owner_id.map_or(Edit::Keep, Edit::Set);
    let settings = WorkspaceChange { owner_id, ..WorkspaceChange::named(name.unwrap_or(UNNAMED)) };
    // Only chosen names are unique.
    let is_unique = name.is_some() && !allow_duplicate;
    let workspace = create.execute(&Change::plain(&by), &settings, is_unique).await?;
    let view = CreatedWorkspace { id: workspace.id.to_string(), name: workspace.name.as_str().to_owned() };
    context.output.show(&view, || format!("Created the workspace {} ({}).", view.id, view.name))
}

async fn list(context: &Context) -> anyhow::Result<ExitCode> {
    let stores = context.stores_with_folded_journals().await?;
    let workspaces = stores.workspaces.list().await?;
    let list = List { data: workspaces.iter().map(WorkspaceView::from).collect::<Vec<_>>() };
    context.output.show(&list, || {
        table(["ID", "STATE", "CREDIT USD", "STORED BYTES", "NAME"], &list.data.iter().map(row).collect::<Vec<_>>())
    })
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
    context.output.show(&view, || describe(&view))
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
    let by = context.authority();
    let edit = WorkspaceChange::named(name);
    stores.manage_workspaces().update(&Change::plain(&by), &(&id).into(), &edit).await?;
    let view = CreatedWorkspace { id: id.to_string(), name: name.to_owned() };
    context.output.show(&view, || format!("The workspace {id} is named {}.", escape(name)))
}

async fn credit(context: &Context, named: &NamedWorkspace, amount: &str) -> anyhow::Result<ExitCode> {
    let amount: Usd = amount.parse().with_context(|| format!("--add-usd {amount} is not an amount of USD"))?;
    let stores = context.stores_with_folded_journals().await?;
    let id = context.workspace(&stores, named.id()).await?;
    let by = context.authority();
    let credit = stores.manage_workspaces().add_credit(&Change::plain(&by), &(&id).into(), amount).await?;
    let balance = credit.remaining().unwrap_or_default();
    let view = WorkspaceCreditView { id: id.to_string(), credit_usd: Some(UsdNumber(balance)) };
    context.output.show(&view, || format!("The workspace {id} has {balance} USD."))
}

async fn unlimited(context: &Context, named: &NamedWorkspace) -> anyhow::Result<ExitCode> {
    let stores = context.stores_with_folded_journals().await?;
    let id = context.workspace(&stores, named.id()).await?;
    let by = context.authority();
    stores.manage_workspaces().clear_credit(&Change::plain(&by), &(&id).into()).await?;
    let view = WorkspaceCreditView { id: id.to_string(), credit_usd: None };
    context.output.show(&view, || format!("The workspace {id} has no credit limit."))
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
    let by = context.authority();
    let changed = stores.manage_workspaces().set_budgets(&Change::plain(&by), &(&id).into(), change).await?;
    let budgets = changed.budgets;
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
    })
}

async fn rates(context: &Context, args: &WorkspaceRatesArgs) -> anyhow::Result<ExitCode> {
    let rates = RatesChange {
        requests_per_minute: edit("--rpm", args.rpm.as_deref(), "a whole number")?,
        tokens_per_minute: edit("--tpm", args.tpm.as_deref(), "a whole number")?,
    };
    let stores = context.stores_with_folded_journals().await?;
    let id = context.workspace(&stores, args.workspace.id()).await?;
    let change = WorkspaceChange { rates, ..WorkspaceChange::default() };
    let by = context.authority();
    let rates = stores.manage_workspaces().update(&Change::plain(&by), &(&id).into(), &change).await?.rates;
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
    })
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
    let change = WorkspaceChange { suspended: Some(suspended), ..WorkspaceChange::default() };
    let by = context.authority();
    stores.manage_workspaces().update(&Change::plain(&by), &(&id).into(), &change).await?;
    let view = WorkspaceSuspensionView { id: id.to_string(), suspended };
    let word = if suspended { "suspended" } else { "active again" };
    context.output.show(&view, || format!("The workspace {id} is {word}."))
}

/// Deletes a workspace with the named contents. Other contents are an error before anything is deleted.
async fn delete_workspace(context: &Context, named: &str, with: &[WorkspaceContent]) -> anyhow::Result<ExitCode> {
    let stores = context.stores_with_folded_journals().await?;
    let id = context.workspace(&stores, Some(named)).await?;
    let destinations = broadcast::manage_destinations(&context.config, &stores)?;
    let delete = stores.delete_workspace(destinations, stores.manage_guardrails(&context.config).await?);
    let by = context.authority();
    let deleted = delete.execute(&Change::plain(&by), &(&id).into(), with).await.map_err(|error| match error {
        DeleteWorkspaceError::Workspace(WorkspaceError::NotEmpty(remaining)) => {
            let kinds = remaining.counts().into_iter().filter(|(_, count)| *count > 0);
            let kinds: Vec<&str> = kinds.map(|(kind, _)| kind.as_str()).collect();
            anyhow!("the workspace still has {remaining}: delete them first, or with --with {}", kinds.join(","))
        }
        other => other.into(),
    })?;
    let contents = deleted.contents;
    let view = DeletedWorkspaceView::new(&deleted.workspace, contents);
    context.output.show(&view, || {
        let with = if contents.is_empty() { String::new() } else { format!(" with its {contents}") };
        format!("The workspace {id} is deleted{with}. Its usage records stay.")
    })
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
