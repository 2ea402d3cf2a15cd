//! `tollgate store …`

use std::process::ExitCode;

use adapters_storage::SeaOrmDestinationRepository;
use anyhow::bail;
use domain::audit::AuditDraft;
use domain::json::Json;
use serde_json::json;

use super::{Context, store_copy};
use crate::cli::StoreCommand;

/// Runs a command on the database.
pub async fn run(context: &Context, command: StoreCommand) -> anyhow::Result<ExitCode> {
    match command {
        StoreCommand::Encrypt => encrypt(context).await,
        StoreCommand::Copy(args) => store_copy::run(context, &args).await,
    }
}

/// Encrypts the secrets of all destinations that are stored in plain text.
async fn encrypt(context: &Context) -> anyhow::Result<ExitCode> {
    if context.config.storage.encryption_key.is_none() {
        bail!("no encryption key is configured: set storage.encryption_key_env or storage.encryption_key_file");
    }
    let stores = context.stores().await?;
    let actor = context.actor();
    let audit = |count: u64| {
        let details = Json::object([("encrypted", count.to_string().as_str())]);
        AuditDraft::done(&actor, "destination.encrypt", "secrets of destinations", details)
    };
    let encrypted = SeaOrmDestinationRepository::new(stores.database.clone()).encrypt_plain(audit).await?;
    context.output.show(&json!({ "encrypted": encrypted }), || {
        format!("The secrets of {encrypted} destinations were encrypted; all are encrypted now.")
    })?;
    Ok(ExitCode::SUCCESS)
}
