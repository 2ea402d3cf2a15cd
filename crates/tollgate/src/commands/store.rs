//! `tollgate store …`, `tollgate migrate …` and `tollgate journal …`

use adapters_storage::{CopyProgress, MigrationState, StoreCopy, TableContent};
use api_actix::ProcessStatus;
use domain::audit::AuditDraft;
use domain::ids::ProcessId;
use serde_json::json;

use super::backup::{Verification, verify};
use super::status::{PROCESS_HEAD, process_row};
use crate::cli::{JournalCommand, MigrateCommand, StoreCommand, StoreCopyArgs};
use crate::commands::prelude::*;
use crate::config::with_storage_url;
use crate::wiring::{FOLD_WITHIN, ServerLock, SocketFolder, create_bucket, fold_journals, forget_processes};

/// Runs a command on the database.
pub async fn run(context: &Context, command: StoreCommand) -> anyhow::Result<ExitCode> {
    match command {
        StoreCommand::Copy(args) => copy_store(context, &args).await,
    }
}

/// The result of a copy.
#[derive(Debug, Serialize)]
struct Report {
    from: String,
    to: String,
    rows: u64,
    tables: Vec<TableContent>,
    verified: bool,
    #[serde(flatten)]
    verification: Verification,
}

/// Copies an instance into an empty database, or continues an unfinished copy, and verifies it.
async fn copy_store(context: &Context, args: &StoreCopyArgs) -> anyhow::Result<ExitCode> {
    let from = with_storage_url(&context.config, &args.from).map_err(|problem| anyhow::anyhow!("--from {problem}"))?;
    let to = with_storage_url(&context.config, &args.to).map_err(|problem| anyhow::anyhow!("--to {problem}"))?;
    let (from_name, to_name) = (from.storage.name(), to.storage.name());
    ensure!(from.storage.servers() != to.storage.servers(), "--from and --to name the same database, {from_name}");
    require_source(&from)?;

    let source = Stores::open(&from, Schema::Required).await?;
    let target = Stores::open(&to, Schema::AsItIs).await?;
    let _locks = lock_out_servers(&from, &to).await?;
    let folded = fold_journals(&from, &source, FOLD_WITHIN).await;
    folded.with_context(|| format!("the journals of {from_name} cannot be folded"))?;

    let copy = StoreCopy::new(source.database.clone(), target.database.clone());
    let failed = || format!("cannot copy {from_name} to {to_name}");
    copy.run(show_progress()).await.with_context(failed)?;
    note("comparing the rows of both databases");
    let tables = copy.verify(|_| ()).await.with_context(failed)?;
    note("auditing the ledger and the audit log of the copy");
    let verification = verify(&target).await?;
    for problem in &verification.problems {
        note(&format!("error: {problem}"));
    }
    if !verification.is_ok() && !args.accept_problems {
        bail!(
            "the copy equals its source, but its ledger or audit log has {} problems, and it stays unfinished: mend the \
             source and copy again, or use --accept-problems",
            verification.problems.len()
        );
    }
    let details = Json::object([("from", Json::string(&from_name).text()), ("to", Json::string(&to_name).text())]);
    copy.finish(&AuditDraft::done(&context.actor(), "instance.copy", "instance", details))
        .await
        .with_context(failed)?;
    source.database.close().await;
    target.database.close().await;

    let rows = tables.iter().map(|table| table.rows).sum();
    let report = Report { from: from_name, to: to_name, rows, tables, verified: verification.is_ok(), verification };
    context.output.show(&report, || text(&report))
}

/// Checks that the source exists: a wrong path must not create an empty database.
fn require_source(from: &Config) -> anyhow::Result<()> {
    let file = &from.storage.file;
    let is_missing = from.storage.is_file() && !file.try_exists().unwrap_or(true);
    ensure!(!is_missing, "--from: no database at {}", file.display());
    Ok(())
}

/// Checks that no server of this machine runs on either database, and keeps new ones from starting while the locks live.
async fn lock_out_servers(from: &Config, to: &Config) -> anyhow::Result<Vec<ServerLock>> {
    let mut locks = Vec::new();
    for storage in [&from.storage, &to.storage] {
        let (name, path) = (storage.name(), storage.servers());
        let running = || format!("a server runs on {name}: stop it, then copy again");
        ensure!(SocketFolder::of(&path).servers().await?.is_empty(), running());
        match ServerLock::take_alone(&path) {
            Ok(Some(lock)) => locks.push(lock),
            Ok(None) => bail!(running()),
            Err(error) => tracing::debug!(%error, "database folder does not support file locks"),
        }
    }
    Ok(locks)
}

/// Shows the progress: a bar on a terminal, and a line at the end of each table.
fn show_progress() -> impl FnMut(CopyProgress) {
    let mut bar: Option<Progress> = None;
    move |CopyProgress { table, rows, of }| {
        bar.get_or_insert_with(|| Progress::rows(format!("Copying {table}"), of)).set(rows);
        if rows >= of {
            bar.take().iter().for_each(Progress::end);
            note(&format!("copied {table}: {rows} of {of} rows"));
        }
    }
}

fn text(report: &Report) -> String {
    let Report { from, to, rows, tables, verification: Verification { records, audit_entries, .. }, .. } = report;
    format!(
        "Copied {from} to {to}: {rows} rows in {} tables, all compared; {records} usage records and {audit_entries} audit \
         entries audited.\nSet storage.url to the copy and keep blobs.url and journal.path. Do not serve {from} again.",
        tables.len()
    )
}

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
pub async fn run_migrate(context: &Context, command: MigrateCommand) -> anyhow::Result<ExitCode> {
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
    })
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

/// Runs a command on journals.
pub async fn run_journal(context: &Context, command: JournalCommand) -> anyhow::Result<ExitCode> {
    match command {
        JournalCommand::List => list_processes(context).await,
        JournalCommand::Forget { process } => forget_process(context, process).await,
    }
}

async fn list_processes(context: &Context) -> anyhow::Result<ExitCode> {
    let stores = context.stores_with_folded_journals().await?;
    let processes = forget_processes(&context.config, &stores).await?.list().await?;
    let list = List { data: processes.iter().map(ProcessStatus::from).collect::<Vec<_>>() };
    let rows: Vec<[String; 3]> = list.data.iter().map(process_row).collect();
    context.output.show(&list, || table(PROCESS_HEAD, &rows))
}

async fn forget_process(context: &Context, process: ProcessId) -> anyhow::Result<ExitCode> {
    let stores = context.stores_with_folded_journals().await?;
    forget_processes(&context.config, &stores).await?.forget(process, &context.actor()).await?;
    let view = json!({"id": process.to_string(), "forgotten": true});
    context.output.show(&view, || format!("Ended the process {process}."))
}
