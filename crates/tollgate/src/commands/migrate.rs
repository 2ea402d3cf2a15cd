//! `tollgate migrate …`

use std::process::ExitCode;

use adapters_storage::MigrationState;
use serde::Serialize;

use super::Context;
use crate::cli::MigrateCommand;
use crate::output::{note, table};
use crate::view::List;
use crate::wiring::{Schema, Stores, create_bucket};

/// A migration and its state.
#[derive(Serialize)]
pub struct MigrationView {
    /// Its name.
    pub name: String,
    /// True if the database has it.
    pub applied: bool,
    /// False if this program does not know it.
    pub known: bool,
}

/// Runs a command on the schema.
pub async fn run(context: &Context, command: MigrateCommand) -> anyhow::Result<ExitCode> {
    let schema = match command {
        MigrateCommand::Up { create_bucket } => {
            if create_bucket {
                make_bucket(context).await?;
            }
            Schema::UpToDate
        }
        MigrateCommand::Status => {
            context.require_database()?;
            Schema::AsItIs
        }
    };
    let stores = Stores::open(&context.config, schema).await?;
    let list = List { data: states(&stores).await? };
    context.output.show(&list, || {
        let word = |one: &MigrationView| match (one.known, one.applied) {
            (false, _) => "unknown",
            (true, true) => "applied",
            (true, false) => "missing",
        };
        let row = |one: &MigrationView| [word(one).to_owned(), one.name.clone()];
        table(["STATE", "MIGRATION"], &list.data.iter().map(row).collect::<Vec<_>>())
    })?;
    Ok(ExitCode::SUCCESS)
}

async fn make_bucket(context: &Context) -> anyhow::Result<()> {
    let blobs = &context.config.blobs;
    let said = if create_bucket(blobs).await? { "created" } else { "exists" };
    note(&format!("bucket of blobs.url: {said}"));
    Ok(())
}

/// Returns every migration with its state.
pub async fn states(stores: &Stores) -> anyhow::Result<Vec<MigrationView>> {
    let states = stores.database.migration_status().await?;
    let view = |state: MigrationState| MigrationView { name: state.name, applied: state.applied, known: state.known };
    Ok(states.into_iter().map(view).collect())
}
