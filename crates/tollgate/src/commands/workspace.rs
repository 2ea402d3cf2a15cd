//! `tollgate workspace …`

use std::fmt::Display;
use std::str::FromStr;

use domain::edit::Edit;
use domain::workspace::WorkspaceError;

use crate::cli::{BudgetArgs, NamedWorkspace, WorkspaceCommand, WorkspaceContent, WorkspaceRatesArgs};
use crate::commands::prelude::*;

/// The name of a workspace without one.
const UNNAMED: &str = "unnamed workspace";
const COLUMNS: &[Column] = &[
    ("ID", "/id"),
    ("SLUG", "/slug"),
    ("DEFAULT", "/is_default"),
    ("SUSPENDED", "/suspended"),
    ("CREDIT USD", "/credit_usd"),
    ("STORED BYTES", "/storage_used_bytes"),
    ("NAME", "/name"),
];
const BUDGET_COLUMNS: &[Column] = &[
    ("RESET", "/reset_interval"),
    ("LIMIT USD", "/limit_usd"),
    ("SPENT USD", "/spend_usd"),
    ("RESERVED USD", "/reserved_usd"),
    ("REMAINING", "/remaining_usd"),
    ("RESETS AT", "/resets_at"),
];

/// Runs a command on workspaces.
pub async fn run(api: &Api<'_>, command: WorkspaceCommand) -> anyhow::Result<ExitCode> {
    match command {
        WorkspaceCommand::Create { name, allow_duplicate, owner_id } => {
            // Only chosen names are unique.
            let is_unique = (name.is_some() && !allow_duplicate).then_some("true");
            let body = object(&[
                ("name", Some(Json::string(name.as_deref().unwrap_or(UNNAMED)))),
                ("owner_id", owner_id.as_deref().map(Json::string)),
            ]);
            let create = with_query("/workspaces", &[("unique_name", is_unique)]);
            let created = api.call(Method::POST, &create, Some(&body)).await?;
            api.show_next(&created, "key create --name NAME --workspace {}", "/data/slug")
        }
        WorkspaceCommand::List => api.show_list(&api.list("/workspaces", &[]).await?, COLUMNS),
        WorkspaceCommand::Show { workspace } => api.show(&api.get(&path(api, &workspace).await?).await?),
        WorkspaceCommand::Rename { id, name, allow_duplicate } => rename(api, &id, &name, allow_duplicate).await,
        WorkspaceCommand::Delete { id, with } => delete(api, &id, &with).await,
        WorkspaceCommand::Credit { workspace, add_usd } => {
            let amount: Usd =
                add_usd.parse().with_context(|| format!("--add-usd {add_usd} is not an amount of USD"))?;
            let body = object(&[("add_usd", Some(number(&amount)))]);
            let credits = format!("{}/credits", path(api, &workspace).await?);
            api.show(&api.call(Method::POST, &credits, Some(&body)).await?)
        }
        WorkspaceCommand::Unlimited { workspace } => {
            let credits = format!("{}/credits", path(api, &workspace).await?);
            api.show(&api.call(Method::DELETE, &credits, None).await?)
        }
        WorkspaceCommand::Budget(args) => budget(api, &args).await,
        WorkspaceCommand::Rates(args) => rates(api, &args).await,
        WorkspaceCommand::Suspend { id } => set_suspended(api, &id, "true").await,
        WorkspaceCommand::Resume { id } => set_suspended(api, &id, "false").await,
    }
}

fn path_of(workspace: &str) -> String {
    format!("/workspaces/{}", segment(workspace))
}

/// Returns the path of the named workspace, else of the default one, else of the only one.
async fn path(api: &Api<'_>, workspace: &NamedWorkspace) -> anyhow::Result<String> {
    match workspace.id() {
        Some(name) => Ok(path_of(name)),
        None => Ok(path_of(&api.default_workspace().await?)),
    }
}

async fn update(api: &Api<'_>, path: &str, members: &[(&str, Option<Json>)]) -> anyhow::Result<ExitCode> {
    api.show(&api.call(Method::PATCH, path, Some(&object(members))).await?)
}

async fn rename(api: &Api<'_>, workspace: &str, name: &str, allow_duplicate: bool) -> anyhow::Result<ExitCode> {
    let path = path_of(workspace);
    if !allow_duplicate {
        let own = text_at(&api.get(&path).await?, "/data/id");
        let all = api.list("/workspaces", &[]).await?;
        let all = pointer(&all, "/data").and_then(|data| data.elements()).unwrap_or_default();
        let has_name = |one: &Json| text_at(one, "/name").as_deref() == Some(name) && text_at(one, "/id") != own;
        if all.iter().any(has_name) {
            return Err(WorkspaceError::NameTaken(name.to_owned()).into());
        }
    }
    update(api, &path, &[("name", Some(Json::string(name)))]).await
}

/// Deletes a workspace with the named contents. Other contents are an error before anything is deleted.
async fn delete(api: &Api<'_>, workspace: &str, with: &[WorkspaceContent]) -> anyhow::Result<ExitCode> {
    let kinds: Vec<String> = with.iter().filter_map(|kind| word(kind).as_string()).collect();
    let with = (!kinds.is_empty()).then(|| kinds.join(","));
    let delete = with_query(&path_of(workspace), &[("with", with.as_deref())]);
    api.show(&api.call(Method::DELETE, &delete, None).await?)
}

/// Changes budgets, and shows all of them.
async fn budget(api: &Api<'_>, args: &BudgetArgs) -> anyhow::Result<ExitCode> {
    let budgets = format!("{}/budgets", path(api, &args.workspace).await?);
    let member = |option, text: Option<&str>| change(edit::<Usd>(option, text, "an amount of USD"));
    let body = object(&[
        ("daily", member("--daily", args.daily.as_deref())?),
        ("weekly", member("--weekly", args.weekly.as_deref())?),
        ("monthly", member("--monthly", args.monthly.as_deref())?),
        ("lifetime", member("--lifetime", args.lifetime.as_deref())?),
    ]);
    let answer = match body.text() {
        "{}" => api.get(&budgets).await?,
        _ => api.call(Method::PATCH, &budgets, Some(&body)).await?,
    };
    api.show_list(&answer, BUDGET_COLUMNS)
}

/// Returns a member of a change; `None` keeps it.
fn change<T: Display>(edit: anyhow::Result<Edit<T>>) -> anyhow::Result<Option<Json>> {
    Ok(match edit? {
        Edit::Keep => None,
        Edit::Clear => Some(null()),
        Edit::Set(value) => Some(number(&value)),
    })
}

async fn rates(api: &Api<'_>, args: &WorkspaceRatesArgs) -> anyhow::Result<ExitCode> {
    let member = |option, text: Option<&str>| change(edit::<u32>(option, text, "a whole number"));
    let rates = [
        ("requests_per_minute", member("--rpm", args.rpm.as_deref())?),
        ("tokens_per_minute", member("--tpm", args.tpm.as_deref())?),
    ];
    update(api, &path(api, &args.workspace).await?, &rates).await
}

async fn set_suspended(api: &Api<'_>, workspace: &str, suspended: &str) -> anyhow::Result<ExitCode> {
    update(api, &path_of(workspace), &[("suspended", Some(number(&suspended)))]).await
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
