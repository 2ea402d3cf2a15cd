//! `tollgate store …`

use std::process::ExitCode;

use super::{Context, store_copy};
use crate::cli::StoreCommand;

/// Runs a command on the database.
pub async fn run(context: &Context, command: StoreCommand) -> anyhow::Result<ExitCode> {
    match command {
        StoreCommand::Copy(args) => store_copy::run(context, &args).await,
    }
}
