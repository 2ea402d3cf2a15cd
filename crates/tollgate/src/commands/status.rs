//! `tollgate status`

use std::process::ExitCode;

use super::Context;
use crate::output::note;
use crate::view::{ProcessView, ServerView, StatusView};
use crate::wiring::forget_processes;

/// Asks the running servers for their status; fails if there is none, or if one does not accept requests.
pub async fn run(context: &Context) -> anyhow::Result<ExitCode> {
    let servers: Vec<ServerView> = context.servers().servers().await?.into_iter().map(ServerView::from).collect();
    let processes = match processes(context).await {
        Ok(processes) => Some(processes),
        Err(error) => {
            note(&format!("error: the live processes are unknown: {error:#}"));
            None
        }
    };
    let ok = !servers.is_empty() && servers.iter().all(ServerView::is_ready);
    let storage = &context.config.storage;
    let database = match std::path::absolute(&storage.file) {
        Ok(file) if storage.is_file() => file.display().to_string(),
        _ => storage.name(),
    };
    let view = StatusView { ok, database, servers, processes };
    context.output.show_lines(&view, || view.lines())?;
    Ok(if ok { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Returns the processes that the database knows as live.
async fn processes(context: &Context) -> anyhow::Result<Vec<ProcessView>> {
    let stores = context.stores().await?;
    let processes = forget_processes(&context.config, &stores).await?.list().await?;
    Ok(processes.iter().map(ProcessView::from).collect())
}
