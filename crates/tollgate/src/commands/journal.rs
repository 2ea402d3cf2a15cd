//! `tollgate journal …`

use std::process::ExitCode;

use domain::ids::ProcessId;

use super::Context;
use crate::cli::JournalCommand;
use crate::output::table;
use crate::view::{ForgottenView, List, ProcessView};
use crate::wiring::forget_processes;

/// Runs a command on journals.
pub async fn run(context: &Context, command: JournalCommand) -> anyhow::Result<ExitCode> {
    match command {
        JournalCommand::List => list(context).await,
        JournalCommand::Forget { process } => forget(context, process).await,
    }
}

async fn list(context: &Context) -> anyhow::Result<ExitCode> {
    let stores = context.stores_with_folded_journals().await?;
    let processes = forget_processes(&context.config, &stores).await?.list().await?;
    let list = List { data: processes.iter().map(ProcessView::from).collect::<Vec<_>>() };
    let rows: Vec<[String; 3]> = list.data.iter().map(ProcessView::row).collect();
    context.output.show(&list, || table(ProcessView::HEAD, &rows))?;
    Ok(ExitCode::SUCCESS)
}

async fn forget(context: &Context, process: ProcessId) -> anyhow::Result<ExitCode> {
    let stores = context.stores_with_folded_journals().await?;
    forget_processes(&context.config, &stores).await?.forget(process).await?;
    let view = ForgottenView { id: process.to_string(), forgotten: true };
    context.output.show(&view, || format!("Ended the process {}.", view.id))?;
    Ok(ExitCode::SUCCESS)
}
