//! `tollgate key …`

use std::process::ExitCode;

use anyhow::{Context as _, bail};
use chrono::{DateTime, Utc};
use domain::api_key::{ApiKeyHash, ApiKeyScope, NewApiKey};
use domain::audit::AuditDraft;
use domain::budget::{ResetInterval, SpendLimit};
use domain::json::Json;
use domain::money::Usd;
use domain::rate::RateLimits;

use super::Context;
use crate::cli::{CreateKeyArgs, KeyCommand, LimitReset};
use crate::output::{note, table};
use crate::view::{CreatedKey, KeyView, List};

/// Runs one of the commands on keys.
pub async fn run(context: &Context, command: KeyCommand) -> anyhow::Result<ExitCode> {
    match command {
        KeyCommand::Create(args) => create(context, args).await,
        KeyCommand::List { management, workspace } => list(context, management, workspace.as_deref()).await,
        KeyCommand::Disable { hash } => set_disabled(context, &hash, true).await,
        KeyCommand::Enable { hash } => set_disabled(context, &hash, false).await,
        KeyCommand::Delete { hash } => delete(context, &hash).await,
    }
}

async fn create(context: &Context, args: CreateKeyArgs) -> anyhow::Result<ExitCode> {
    let limit = limit(args.limit_usd.as_deref(), args.limit_reset)?;
    let expires_at = args.expires_at.as_deref().map(expiry).transpose()?;
    let stores = context.stores().await?;
    let scope = if args.management {
        ApiKeyScope::Management
    } else {
        ApiKeyScope::Inference(context.workspace(&stores, args.workspace.as_deref()).await?)
    };
    let new = NewApiKey { name: args.name, scope, limit, rates: RateLimits::default(), expires_at };
    let (key, secret) = stores.create_api_key().execute(&context.actor(), new).await?;
    if key.limit.is_some() {
        note("note: the limit is recorded; this version does not enforce it yet");
    }
    let view = CreatedKey::new(&key, &secret);
    context.output.show(&view, || {
        let kind = view.workspace_id.as_ref().map_or("management key".to_owned(), |id| format!("workspace {id}"));
        format!("{}\n\nThis is shown once. Name: {}, {kind}.\nHash: {}", view.key, view.name, view.hash)
    })?;
    Ok(ExitCode::SUCCESS)
}

fn limit(amount: Option<&str>, reset: Option<LimitReset>) -> anyhow::Result<Option<SpendLimit>> {
    let Some(amount) = amount else { return Ok(None) };
    let amount: Usd = amount.parse().with_context(|| format!("--limit-usd {amount} is not an amount of USD"))?;
    let reset = reset.map(|reset| match reset {
        LimitReset::Daily => ResetInterval::Daily,
        LimitReset::Weekly => ResetInterval::Weekly,
        LimitReset::Monthly => ResetInterval::Monthly,
    });
    Ok(Some(SpendLimit { amount, reset }))
}

fn expiry(text: &str) -> anyhow::Result<DateTime<Utc>> {
    let at = DateTime::parse_from_rfc3339(text)
        .with_context(|| format!("--expires-at {text:?} is not a time such as 2027-01-31T00:00:00Z"))?;
    Ok(at.with_timezone(&Utc))
}

async fn list(context: &Context, management: bool, workspace: Option<&str>) -> anyhow::Result<ExitCode> {
    let stores = context.stores().await?;
    let workspace = if management { None } else { Some(context.workspace(&stores, workspace).await?) };
    let keys = stores.keys.list(workspace).await?;
    let list = List { data: keys.iter().map(KeyView::from).collect::<Vec<_>>() };
    context.output.show(&list, || {
        let rows: Vec<[String; 5]> = list.data.iter().map(row).collect();
        table(["HASH", "KEY", "STATE", "CREATED", "NAME"], &rows)
    })?;
    Ok(ExitCode::SUCCESS)
}

fn row(key: &KeyView) -> [String; 5] {
    let state = if key.disabled { "disabled" } else { "enabled" };
    [key.hash.clone(), key.label.clone(), state.to_owned(), key.created_at.clone(), key.name.clone()]
}

async fn set_disabled(context: &Context, hash: &str, disabled: bool) -> anyhow::Result<ExitCode> {
    let hash = parse_hash(hash)?;
    let stores = context.stores().await?;
    let details = Json::object([("disabled", if disabled { "true" } else { "false" })]);
    let audit = AuditDraft::done(&context.actor(), "key.set_disabled", format!("key {hash}"), details);
    if !stores.keys.set_disabled(&hash, disabled, &audit).await? {
        bail!("there is no key {hash}");
    }
    let document = serde_json::json!({ "hash": hash.to_string(), "disabled": disabled });
    let word = if disabled { "disabled" } else { "enabled" };
    context.output.show(&document, || format!("The key {hash} is {word}."))?;
    Ok(ExitCode::SUCCESS)
}

async fn delete(context: &Context, hash: &str) -> anyhow::Result<ExitCode> {
    let hash = parse_hash(hash)?;
    let stores = context.stores().await?;
    let audit = AuditDraft::done(&context.actor(), "key.delete", format!("key {hash}"), Json::object([]));
    if !stores.keys.delete(&hash, &audit).await? {
        bail!("there is no key {hash}");
    }
    let document = serde_json::json!({ "hash": hash.to_string(), "deleted": true });
    context.output.show(&document, || format!("The key {hash} is deleted."))?;
    Ok(ExitCode::SUCCESS)
}

/// A key's hash. A secret given by mistake is not repeated.
pub fn parse_hash(text: &str) -> anyhow::Result<ApiKeyHash> {
    text.parse().context("keys are named by their hash")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_and_times_are_read_exactly() {
        let some = limit(Some("2.50"), Some(LimitReset::Weekly)).unwrap().unwrap();
        assert_eq!((some.amount.to_string().as_str(), some.reset), ("2.5", Some(ResetInterval::Weekly)));
        assert!(limit(Some("a lot"), None).is_err());
        assert_eq!(limit(None, None).unwrap(), None);
        assert_eq!(expiry("2027-01-31T01:00:00+01:00").unwrap().to_rfc3339(), "2027-01-31T00:00:00+00:00");
        assert!(expiry("tomorrow").is_err());
    }

    #[test]
    fn a_secret_in_place_of_a_hash_is_not_repeated() {
        let message = format!("{:#}", parse_hash("sk-tg-v1-00").unwrap_err());
        assert!(message.contains("hash") && !message.contains("sk-tg-v1-00"), "{message}");
    }
}
