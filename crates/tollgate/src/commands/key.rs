//! `tollgate key …`

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, bail};
use chrono::{DateTime, Utc};
use domain::api_key::{
    ApiKey, ApiKeyChange, ApiKeyScope, CreateApiKeyError, KeyReference, NewApiKey, NoGrantCache, RotateApiKey,
};
use domain::authority::{ManagementAccess, ManagementScope};
use domain::budget::{LedgerReader as _, Payer, ResetInterval, SpendLimit};
use domain::change::Change;
use domain::edit::Edit;
use domain::ids::WorkspaceId;
use domain::money::Usd;
use domain::rate::RateLimits;
use domain::usage::{RejectionFilter, UsageFilter};

use super::Context;
use super::context::parse_timestamp;
use super::references::{find_key, find_workspace, key_name};
use crate::cli::{CreateKeyArgs, KeyAccess, KeyCommand, LimitReset, UpdateKeyArgs};
use crate::output::table;
use crate::view::{CreatedKey, KeyView, LimitView, List, RejectionView, UsdNumber, time};
use crate::wiring::Stores;

/// The name of a key without one.
const UNNAMED: &str = "unnamed key";
/// The number of counts of rejected requests that `key show` prints.
const SHOWN_REJECTIONS: u64 = 10;

/// Runs a command on keys.
pub async fn run(context: &Context, command: KeyCommand) -> anyhow::Result<ExitCode> {
    match command {
        KeyCommand::Create(args) => create(context, args).await,
        KeyCommand::Update(args) => update(context, args).await,
        KeyCommand::Show { key } => show(context, &key).await,
        KeyCommand::List { management, workspace } => list(context, management, workspace.as_deref()).await,
        KeyCommand::Disable { key } => set_disabled(context, &key, true).await,
        KeyCommand::Enable { key } => set_disabled(context, &key, false).await,
        KeyCommand::Rotate { key, grace_seconds } => rotate(context, &key, Duration::from_secs(grace_seconds)).await,
        KeyCommand::Delete { key } => delete(context, &key).await,
    }
}

async fn create(context: &Context, args: CreateKeyArgs) -> anyhow::Result<ExitCode> {
    let amount = args.limit_usd.as_deref().map(limit_usd).transpose()?;
    let limit = amount.map(|amount| SpendLimit { amount, reset: args.limit_reset.and_then(interval) });
    let rates = RateLimits { requests_per_minute: args.rpm, tokens_per_minute: args.tpm };
    let expires_at = args.expires_at.as_deref().map(expiry).transpose()?;
    let stores = context.stores().await?;
    let scope = if args.management {
        let access = args.access.map_or(ManagementAccess::Write, access);
        let workspaces = workspaces(&stores, &args.workspace).await?;
        ApiKeyScope::Management(ManagementScope::try_new(access, workspaces)?)
    } else if let [_, _, ..] = args.workspace.as_slice() {
        bail!("an inference key has one workspace; --management creates a key that manages several")
    } else {
        ApiKeyScope::Inference(context.workspace(&stores, args.workspace.first().map(String::as_str)).await?)
    };
    // Only chosen names are unique.
    let is_unique = args.name.is_some() && !args.allow_duplicate;
    let name = args.name.unwrap_or_else(|| UNNAMED.to_owned());
    let new = NewApiKey { limit, rates, expires_at, ..NewApiKey::named(name, scope) };
    let (create, by) = (stores.create_api_key(), context.authority());
    let change = Change::plain(&by);
    let created =
        if is_unique { create.execute_unique(&change, new).await } else { create.execute(&change, new).await };
    let (key, secret) = created?;
    let view = CreatedKey::new(&key, &secret);
    context.output.show(&view, || {
        let kind = match (&view.workspace_id, &view.management) {
            (Some(id), _) => format!("workspace {id}"),
            (None, Some(scope)) => format!("management key, {scope}"),
            (None, None) => "management key".to_owned(),
        };
        format!(
            "{}\n\nThis is shown once. Name: {}, {kind}.\nHash: {}\nId: {}",
            view.key, view.name, view.hash, view.id
        )
    })
}

async fn update(context: &Context, args: UpdateKeyArgs) -> anyhow::Result<ExitCode> {
    let (named, allow_duplicate) = (args.key.clone(), args.allow_duplicate);
    let named_workspaces = args.workspace.clone();
    let mut change = change(args)?;
    if change.is_empty() && named_workspaces.is_empty() {
        bail!("no fields to update");
    }
    let stores = context.stores().await?;
    if let Some(workspaces) = workspaces(&stores, &named_workspaces).await? {
        change.workspaces = Edit::Set(workspaces);
    }
    let name = find_key(&stores, &named).await?;
    if let (Some(wanted), false) = (&change.name, allow_duplicate) {
        require_free_name(&stores, &name, wanted).await?;
    }
    let key = stores.manage_keys().update(&Change::plain(&context.authority()), &(&name).into(), &change).await?;
    let view = KeyView::from(&key);
    context.output.show(&view, || describe(&view))
}

/// Returns the given workspaces; `None` if none is given.
async fn workspaces(stores: &Stores, named: &[String]) -> anyhow::Result<Option<Vec<WorkspaceId>>> {
    if named.is_empty() {
        return Ok(None);
    }
    let mut found = Vec::with_capacity(named.len());
    for name in named {
        found.push(find_workspace(stores, name).await?);
    }
    Ok(Some(found))
}

fn access(access: KeyAccess) -> ManagementAccess {
    match access {
        KeyAccess::Read => ManagementAccess::Read,
        KeyAccess::Keys => ManagementAccess::Keys,
        KeyAccess::Write => ManagementAccess::Write,
    }
}

/// Checks that no other key of the same workspace, or no other management key, has the name.
async fn require_free_name(stores: &Stores, key: &KeyReference, wanted: &str) -> anyhow::Result<()> {
    let Some(key) = stores.keys.find(key).await? else { bail!("key {key} not found") };
    let others = stores.keys.list(key.scope.workspace_id()).await?;
    if others.iter().any(|other| other.id != key.id && other.name.as_str() == wanted) {
        return Err(CreateApiKeyError::NameTaken(wanted.to_owned()).into());
    }
    Ok(())
}

fn change(args: UpdateKeyArgs) -> anyhow::Result<ApiKeyChange> {
    let amount = args.limit_usd.as_deref().map(limit_usd).transpose()?;
    Ok(ApiKeyChange {
        name: args.name,
        access: args.access.map(access),
        workspaces: if args.all_workspaces { Edit::Clear } else { Edit::Keep },
        limit: edit(args.no_limit, amount),
        limit_reset: match args.limit_reset {
            Some(reset) => interval(reset).map_or(Edit::Clear, Edit::Set),
            None => Edit::Keep,
        },
        requests_per_minute: edit(args.no_rpm, args.rpm),
        tokens_per_minute: edit(args.no_tpm, args.tpm),
        expires_at: edit(args.no_expiry, args.expires_at.as_deref().map(expiry).transpose()?),
        ..ApiKeyChange::default()
    })
}

fn edit<T>(clear: bool, value: Option<T>) -> Edit<T> {
    if clear { Edit::Clear } else { value.map_or(Edit::Keep, Edit::Set) }
}

fn limit_usd(amount: &str) -> anyhow::Result<Usd> {
    amount.parse().with_context(|| format!("--limit-usd {amount} is not an amount of USD"))
}

fn interval(reset: LimitReset) -> Option<ResetInterval> {
    match reset {
        LimitReset::Daily => Some(ResetInterval::Daily),
        LimitReset::Weekly => Some(ResetInterval::Weekly),
        LimitReset::Monthly => Some(ResetInterval::Monthly),
        LimitReset::Never => None,
    }
}

fn expiry(text: &str) -> anyhow::Result<DateTime<Utc>> {
    parse_timestamp("--expires-at", text)
}

async fn show(context: &Context, name: &str) -> anyhow::Result<ExitCode> {
    let stores = context.stores_with_folded_journals().await?;
    let name = find_key(&stores, name).await?;
    let Some(key) = stores.keys.find(&name).await? else { bail!("key {name} not found") };
    let limits = limits(&stores, &key).await?;
    let filter = RejectionFilter { api_key: Some(key.id), ..RejectionFilter::default() };
    let rejections = stores.rejections.list(&filter, SHOWN_REJECTIONS).await?;
    let rejections = rejections.iter().map(RejectionView::from).collect();
    let view = KeyView { limits: Some(limits), rejections: Some(rejections), ..KeyView::from(&key) };
    context.output.show(&view, || describe(&view))
}

/// Returns every limit of a key; a management key has none.
async fn limits(stores: &Stores, key: &ApiKey) -> anyhow::Result<Vec<LimitView>> {
    let Some(workspace_id) = key.scope.workspace_id() else { return Ok(Vec::new()) };
    let workspace = stores.workspaces.find(workspace_id).await?.context("the key's workspace was not found")?;
    let mut guardrails: Vec<_> = workspace.default_guardrail_id.into_iter().chain(key.guardrail_id).collect();
    guardrails.dedup();
    let payer = Payer { workspace_id, api_key: key.id, guardrails };
    let standing = stores.reports().limit_statuses(&payer).await?;
    Ok(standing.iter().map(LimitView::from).collect())
}

fn describe(key: &KeyView) -> String {
    let limit = key.limit_usd.map_or("no limit".to_owned(), |limit| {
        format!("{} USD, resets: {}", limit.0, key.limit_reset.unwrap_or("never"))
    });
    let rate = |rate: Option<u32>| rate.map_or("as configured".to_owned(), |rate| rate.to_string());
    let mut text = format!(
        "{} ({})\nId: {}\nHash: {}\n{}\nState: {}, expires: {}\nLimit: {limit}\n\
         Requests per minute: {}, tokens per minute: {}\nGuardrail: {}\n",
        key.name,
        key.label,
        key.id,
        key.hash,
        scope_text(key),
        if key.disabled { "disabled" } else { "enabled" },
        key.expires_at.as_deref().unwrap_or("never"),
        rate(key.requests_per_minute),
        rate(key.tokens_per_minute),
        key.guardrail_id.as_deref().unwrap_or("none"),
    );
    if let Some(limits) = key.limits.as_ref().filter(|limits| !limits.is_empty()) {
        text.push('\n');
        text.push_str(&table(LimitView::HEAD, &limits.iter().map(LimitView::line).collect::<Vec<_>>()));
    }
    if let Some(rejections) = key.rejections.as_ref().filter(|rejections| !rejections.is_empty()) {
        text.push_str("\nRejected requests:\n");
        text.push_str(&table(RejectionView::HEAD, &rejections.iter().map(RejectionView::line).collect::<Vec<_>>()));
    }
    text
}

/// Describes the workspace of an inference key, or the scope of a management key.
fn scope_text(key: &KeyView) -> String {
    match (&key.workspace_id, &key.management) {
        (None, Some(scope)) => format!("Management key: {scope}"),
        (workspace, _) => format!("Workspace: {}", workspace.as_deref().unwrap_or("none")),
    }
}

async fn list(context: &Context, management: bool, workspace: Option<&str>) -> anyhow::Result<ExitCode> {
    let stores = context.stores_with_folded_journals().await?;
    let workspace = if management { None } else { Some(context.workspace(&stores, workspace).await?) };
    let keys = stores.keys.list(workspace).await?;
    let mut list = List { data: keys.iter().map(KeyView::from).collect::<Vec<_>>() };
    if !management {
        add_usage(&stores, &keys, &mut list.data).await?;
    }
    context.output.show(&list, || {
        if management {
            let rows: Vec<[String; 6]> = list.data.iter().map(management_row).collect();
            return table(["HASH", "KEY", "STATE", "SCOPE", "CREATED", "NAME"], &rows);
        }
        let rows: Vec<[String; 8]> = list.data.iter().map(row).collect();
        table(["HASH", "KEY", "STATE", "LIMIT USD", "SPENT USD", "LAST USED", "CREATED", "NAME"], &rows)
    })
}

/// Adds the spend and the last use to the views of inference keys.
async fn add_usage(stores: &Stores, keys: &[ApiKey], views: &mut [KeyView]) -> anyhow::Result<()> {
    let of_workspace = |key: &ApiKey| Some((key.scope.workspace_id()?, key.id));
    let ids: Vec<_> = keys.iter().filter_map(of_workspace).collect();
    let amounts = stores.reports().key_spend(&ids).await?;
    for ((key, spend), view) in keys.iter().zip(amounts).zip(views) {
        view.spent_usd = Some(UsdNumber(spend.of(key.limit.and_then(|limit| limit.reset))));
        let newest = stores.usage.list(&UsageFilter::for_key(key.id), 1).await?;
        view.last_used_at = newest.first().map(|record| time(record.created_at));
    }
    Ok(())
}

fn state(key: &KeyView) -> &'static str {
    if key.disabled { "disabled" } else { "enabled" }
}

fn management_row(key: &KeyView) -> [String; 6] {
    let scope = key.management.as_ref().map(ToString::to_string).unwrap_or_default();
    [key.hash.clone(), key.label.clone(), state(key).to_owned(), scope, key.created_at.clone(), key.name.clone()]
}

fn row(key: &KeyView) -> [String; 8] {
    let limit = match (key.limit_usd, key.limit_reset) {
        (Some(limit), Some(reset)) => format!("{} {reset}", limit.0),
        (Some(limit), None) => limit.0.to_string(),
        (None, _) => "no limit".to_owned(),
    };
    [
        key.hash.clone(),
        key.label.clone(),
        state(key).to_owned(),
        limit,
        key.spent_usd.map(|spent| spent.0.to_string()).unwrap_or_default(),
        key.last_used_at.clone().unwrap_or_default(),
        key.created_at.clone(),
        key.name.clone(),
    ]
}

async fn set_disabled(context: &Context, name: &str, disabled: bool) -> anyhow::Result<ExitCode> {
    let stores = context.stores().await?;
    let name = key_name(&stores, name).await?;
    let change = ApiKeyChange { disabled: Some(disabled), ..ApiKeyChange::default() };
    let key = stores.manage_keys().update(&Change::plain(&context.authority()), &name, &change).await?;
    let document = serde_json::json!({ "id": key.id.to_string(), "hash": key.hash.to_string(), "disabled": disabled });
    let word = if disabled { "disabled" } else { "enabled" };
    context.output.show(&document, || format!("The key {} is {word}.", key.id))
}

/// Running servers receive the change through the change feed.
async fn rotate(context: &Context, name: &str, grace: Duration) -> anyhow::Result<ExitCode> {
    let stores = context.stores().await?;
    let name = key_name(&stores, name).await?;
    let rotate = RotateApiKey::new(
        Arc::clone(&stores.keys),
        Arc::new(NoGrantCache),
        Arc::clone(&stores.secrets),
        Arc::clone(&stores.clock),
    );
    let (key, secret) = rotate.execute(&Change::plain(&context.authority()), &name, grace).await?;
    let view = CreatedKey::new(&key, &secret);
    context.output.show(&view, || {
        let rest = match &key.previous_secret {
            None => "This is shown once. The old secret stops working within a second.".to_owned(),
            Some(secret) => format!("This is shown once. The old secret works until {}.", time(secret.expires_at)),
        };
        format!("{}\n\n{rest} Name: {}.\nHash: {}\nId: {}", view.key, view.name, view.hash, view.id)
    })
}

async fn delete(context: &Context, name: &str) -> anyhow::Result<ExitCode> {
    let stores = context.stores().await?;
    let name = key_name(&stores, name).await?;
    let key = stores.manage_keys().delete(&Change::plain(&context.authority()), &name).await?;
    let document = serde_json::json!({ "id": key.id.to_string(), "hash": key.hash.to_string(), "deleted": true });
    context.output.show(&document, || format!("The key {} is deleted.", key.id))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_and_times_are_parsed_exactly() {
        assert_eq!(limit_usd("2.50").unwrap().to_string(), "2.5");
        for bad in ["a lot", "9999999999", "0.0000000000001", "1e400"] {
            let error = limit_usd(bad).unwrap_err();
            let expected = format!(
                "--limit-usd {bad} is not an amount of USD: not a decimal number from -9223372.036854775808 to \
                 9223372.036854775807 with at most 12 digits after the point"
            );
            assert_eq!(format!("{error:#}"), expected);
        }
        assert_eq!(expiry("2027-01-31T01:00:00+01:00").unwrap().to_rfc3339(), "2027-01-31T00:00:00+00:00");
        assert_eq!(expiry("2026-12-01").unwrap().to_rfc3339(), "2026-12-01T00:00:00+00:00");
        assert!(expiry("tomorrow").is_err());
    }

    #[test]
    fn change_contains_given_options_only() {
        let none = || UpdateKeyArgs {
            key: String::new(),
            name: None,
            allow_duplicate: false,
            access: None,
            workspace: Vec::new(),
            all_workspaces: false,
            limit_usd: None,
            limit_reset: None,
            no_limit: false,
            rpm: None,
            no_rpm: false,
            tpm: None,
            no_tpm: false,
            expires_at: None,
            no_expiry: false,
        };
        assert!(change(none()).unwrap().is_empty());
        let cleared = change(UpdateKeyArgs {
            all_workspaces: true,
            no_limit: true,
            no_rpm: true,
            no_tpm: true,
            no_expiry: true,
            ..none()
        })
        .unwrap();
        assert_eq!((cleared.limit, cleared.requests_per_minute), (Edit::Clear, Edit::Clear));
        assert_eq!(cleared.workspaces, Edit::Clear);
        let changed = change(UpdateKeyArgs { access: Some(KeyAccess::Keys), ..none() }).unwrap();
        assert_eq!(changed.access, Some(ManagementAccess::Keys));
        assert_eq!((cleared.tokens_per_minute, cleared.expires_at), (Edit::Clear, Edit::Clear));
        let reset = |reset| change(UpdateKeyArgs { limit_reset: Some(reset), ..none() }).unwrap().limit_reset;
        assert_eq!(reset(LimitReset::Never), Edit::Clear);
        assert_eq!(reset(LimitReset::Weekly), Edit::Set(ResetInterval::Weekly));
    }
}
