//! `tollgate guardrail …`

use std::io::Read;
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use domain::api_key::ApiKeyHash;
use domain::audit::AuditDraft;
use domain::ids::GuardrailId;
use domain::json::Json;

use super::Context;
use crate::cli::GuardrailCommand;
use crate::output::table;
use crate::view::{Assigned, CreatedGuardrail, Deleted, GuardrailView, List};

/// Runs one of the commands on guardrails.
pub async fn run(context: &Context, command: GuardrailCommand) -> anyhow::Result<ExitCode> {
    match command {
        GuardrailCommand::Create { name, workspace } => create(context, &name, workspace.as_deref()).await,
        GuardrailCommand::List { workspace } => list(context, workspace.as_deref()).await,
        GuardrailCommand::Show { id } => show(context, &id).await,
        GuardrailCommand::Delete { id } => delete(context, &id).await,
        GuardrailCommand::Assign { id, hashes } => assign(context, &id, hashes).await,
    }
}

async fn create(context: &Context, name: &str, workspace: Option<&str>) -> anyhow::Result<ExitCode> {
    let stores = context.stores().await?;
    let workspace = context.workspace(&stores, workspace).await?;
    let guardrail = stores.create_guardrail().execute(&context.actor(), workspace, name).await?;
    let view = CreatedGuardrail { id: guardrail.id.to_string(), name: guardrail.name.as_str().to_owned() };
    context.output.show(&view, || format!("Made the guardrail {} ({}).", view.id, view.name))?;
    Ok(ExitCode::SUCCESS)
}

async fn list(context: &Context, workspace: Option<&str>) -> anyhow::Result<ExitCode> {
    let stores = context.stores().await?;
    let workspace = context.workspace(&stores, workspace).await?;
    let guardrails = stores.guardrails.list(workspace).await?;
    let list = List { data: guardrails.iter().map(GuardrailView::from).collect::<Vec<_>>() };
    context.output.show(&list, || {
        let row = |one: &GuardrailView| [one.id.clone(), one.created_at.clone(), one.name.clone()];
        table(["ID", "CREATED", "NAME"], &list.data.iter().map(row).collect::<Vec<_>>())
    })?;
    Ok(ExitCode::SUCCESS)
}

async fn show(context: &Context, id: &str) -> anyhow::Result<ExitCode> {
    let id = parse_id(id)?;
    let stores = context.stores().await?;
    let Some(guardrail) = stores.guardrails.find(id).await? else { bail!("there is no guardrail {id}") };
    let keys = stores.guardrails.count_keys(id).await?;
    let view = GuardrailView { key_count: Some(keys), ..GuardrailView::from(&guardrail) };
    context.output.show(&view, || {
        format!(
            "{}: {}\nworkspace {}, made {}, held by {keys} keys",
            view.id, view.name, view.workspace_id, view.created_at
        )
    })?;
    Ok(ExitCode::SUCCESS)
}

async fn delete(context: &Context, id: &str) -> anyhow::Result<ExitCode> {
    let id = parse_id(id)?;
    let stores = context.stores().await?;
    let audit = AuditDraft::done(&context.actor(), "guardrail.delete", format!("guardrail {id}"), Json::object([]));
    if !stores.guardrails.delete(id, &audit).await? {
        bail!("there is no guardrail {id}");
    }
    let document = Deleted { id: &id.to_string(), deleted: true };
    context.output.show(&document, || format!("The guardrail {id} is deleted."))?;
    Ok(ExitCode::SUCCESS)
}

async fn assign(context: &Context, id: &str, words: Vec<String>) -> anyhow::Result<ExitCode> {
    let id = parse_id(id)?;
    let hashes = hashes(words, std::io::stdin())?;
    let stores = context.stores().await?;
    let count = hashes.len().to_string();
    let details = Json::object([("key_hashes_count", count.as_str())]);
    let audit = AuditDraft::done(&context.actor(), "guardrail.assign_keys", format!("guardrail {id}"), details);
    let Some(assigned_count) = stores.guardrails.assign_keys(id, &hashes, &audit).await? else {
        bail!("there is no guardrail {id}")
    };
    context.output.show(&Assigned { assigned_count }, || {
        format!("{assigned_count} of {} keys hold the guardrail {id} now.", hashes.len())
    })?;
    Ok(ExitCode::SUCCESS)
}

/// Sorted and without duplicates; `-` stands for what `input` holds.
fn hashes(words: Vec<String>, mut input: impl Read) -> anyhow::Result<Vec<ApiKeyHash>> {
    let mut texts = Vec::with_capacity(words.len());
    for word in words {
        if word == "-" {
            let mut text = String::new();
            input.read_to_string(&mut text).context("standard input cannot be read")?;
            texts.extend(text.split_whitespace().map(str::to_owned));
        } else {
            texts.push(word);
        }
    }
    let parse = |(index, text): (usize, &String)| {
        text.parse::<ApiKeyHash>().with_context(|| format!("the hash number {} cannot be used", index + 1))
    };
    let mut hashes: Vec<ApiKeyHash> = texts.iter().enumerate().map(parse).collect::<Result<_, _>>()?;
    if hashes.is_empty() {
        bail!("there are no hashes to assign");
    }
    hashes.sort_unstable();
    hashes.dedup();
    Ok(hashes)
}

fn parse_id(text: &str) -> anyhow::Result<GuardrailId> {
    text.parse().with_context(|| format!("{text:?} cannot be used"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_come_from_arguments_and_from_standard_input() {
        let (a, b) = ("a".repeat(64), "b".repeat(64));
        let found = hashes(vec![b.clone(), "-".to_owned()], format!("{a}\n {b}\n").as_bytes()).unwrap();
        assert_eq!(found.iter().map(ToString::to_string).collect::<Vec<_>>(), [a, b]);
        assert!(hashes(vec!["-".to_owned()], &b""[..]).is_err());
        let error = hashes(vec!["a".repeat(64), "x".to_owned()], &b""[..]).unwrap_err();
        assert!(error.to_string().contains("number 2"));
    }
}
