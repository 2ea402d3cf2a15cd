//! The ledger of this process: its journal, its allowances, and the journals of dead processes.

use std::sync::Arc;
use std::time::Duration;

use adapters_journal::LocalJournals;
use adapters_storage::SeaOrmBudgetStore;
use adapters_system::{SystemClock, TokioTimer};
use anyhow::Context;
use domain::budget::{
    BudgetStore, ForgetProcesses, ForgetSettings, LedgerSettings, LimitStatusReader, RecoverJournals, RecoveryReport,
    RenewingLedger, RenewingLedgerPorts,
};
use domain::decision::Metrics;
use domain::system::{Clock as _, LineLimit, TimeSource};

use super::heartbeat::{heartbeat, lost_after};
use super::journals::{CurrentProcess, Journals, RecoverableJournals};
use super::{Background, Stores};
use crate::config::Config;

/// The interval of the search for journals of dead processes.
const RECOVER_EVERY: Duration = Duration::from_secs(1);
/// The time that a stop waits for an unavailable store: slightly less than the whole stop.
const CLOSE_WITHIN: Duration = Duration::from_secs(25);
/// The time that a command waits for running servers to fold their journals, and its poll interval.
const FOLD_WITHIN: Duration = Duration::from_secs(1);
const SETTLE_STEP: Duration = Duration::from_millis(10);

/// Recovers the journals of dead processes, creates the journal of this one and starts the background tasks.
///
/// # Errors
/// The journal cannot be created, or the store cannot be written.
pub async fn start(
    config: &Config,
    stores: &Stores,
    limits: Arc<dyn LimitStatusReader>,
    metrics: Arc<dyn Metrics>,
    background: &Background,
) -> anyhow::Result<Arc<RenewingLedger>> {
    let store_id = stores.database.id().await.context("the identity of the database cannot be read")?;
    let store: Arc<dyn BudgetStore> = Arc::new(SeaOrmBudgetStore::new(stores.database.clone()));
    let current = CurrentProcess::default();
    let orphans = Arc::new(RecoverableJournals::new(config, store_id, stores, current.clone()));
    let recover = Arc::new(RecoverJournals::new(Arc::clone(&store), orphans, config.unknown_usage));
    // The charges of dead processes count before the first request.
    let report = recover.execute().await.context("the journals of earlier processes cannot be read")?;
    count(&*metrics, &report);
    let ports = RenewingLedgerPorts {
        store,
        journals: Arc::new(Journals::new(&config.journal, store_id, stores, background, current)),
        time: TimeSource { clock: Arc::clone(&stores.clock), timer: Arc::new(TokioTimer) },
        limits,
        recover: Arc::clone(&recover),
    };
    let settings = LedgerSettings { heartbeat: heartbeat(config), ..LedgerSettings::default() };
    let created = RenewingLedger::start(ports, settings).await;
    let place = config.journal.path.display();
    let ledger = Arc::new(created.with_context(|| format!("the journal cannot be created (journal.path is {place})"))?);
    run(Arc::clone(&ledger), background);
    recover_journals_of_others(recover, forget_processes(config, stores).await?, metrics, background);
    Ok(ledger)
}

/// Returns the use case that lists and forgets processes without a journal.
///
/// # Errors
/// The store cannot be read.
pub async fn forget_processes(config: &Config, stores: &Stores) -> anyhow::Result<ForgetProcesses> {
    let store_id = stores.database.id().await.context("the identity of the database cannot be read")?;
    let journals = RecoverableJournals::new(config, store_id, stores, CurrentProcess::default());
    let settings = ForgetSettings { lost_after: lost_after(config), unknown: config.unknown_usage };
    let store = Arc::new(SeaOrmBudgetStore::new(stores.database.clone()));
    Ok(ForgetProcesses::new(store, Arc::new(journals), Arc::clone(&stores.clock), settings))
}

/// Updates the store for a command that shows money or usage: folds the journals of dead processes, and waits briefly
/// until the running ones of this machine have folded theirs.
///
/// # Errors
/// The journals or the store cannot be read.
pub async fn fold_journals(config: &Config, stores: &Stores) -> anyhow::Result<()> {
    if config.storage.read_only {
        return Ok(());
    }
    let store_id = stores.database.id().await.context("the identity of the database cannot be read")?;
    let store: Arc<dyn BudgetStore> = Arc::new(SeaOrmBudgetStore::new(stores.database.clone()));
    let journals = LocalJournals::new(&config.journal.path, store_id, config.journal.keep);
    let live = journals.live().context("the journals cannot be read")?;
    RecoverJournals::new(Arc::clone(&store), Arc::new(journals), config.unknown_usage).execute().await?;
    let began = stores.clock.monotonic();
    for (process, last) in live {
        while store.process(process).await?.is_some_and(|status| status.folded_sequence < last) {
            if stores.clock.monotonic().saturating_sub(began) >= FOLD_WITHIN {
                tracing::debug!(process.id = %process, "a running server has charges that are not yet in the database");
                return Ok(());
            }
            tokio::time::sleep(SETTLE_STEP).await;
        }
    }
    Ok(())
}

fn run(ledger: Arc<RenewingLedger>, background: &Background) {
    let cancelled = background.cancelled.clone();
    background.tasks.spawn(async move { ledger.run(cancelled.cancelled(), CLOSE_WITHIN).await });
}

/// Recovers journals continuously: another process may die at any time, on this machine or with another one.
fn recover_journals_of_others(
    recover: Arc<RecoverJournals>,
    forget: ForgetProcesses,
    metrics: Arc<dyn Metrics>,
    background: &Background,
) {
    let cancelled = background.cancelled.clone();
    background.tasks.spawn(async move {
        let (lines, clock) = (LineLimit::default(), SystemClock::new());
        loop {
            tokio::select! {
                () = cancelled.cancelled() => return,
                () = tokio::time::sleep(RECOVER_EVERY) => {}
            }
            match recover.execute().await {
                Ok(report) => count(&*metrics, &report),
                Err(error) if !lines.admits("recovery", clock.monotonic()) => drop(error),
                Err(error) => {
                    let error = anyhow::Error::from(error);
                    tracing::warn!(error = format!("{error:#}"), "journals of dead processes not read, retrying");
                }
            }
            if let Err(error) = forget.execute().await {
                let error = anyhow::Error::from(error);
                tracing::debug!(error = format!("{error:#}"), "processes not read, retrying");
            }
        }
    });
}

fn count(metrics: &dyn Metrics, report: &RecoveryReport) {
    metrics.record_abandoned_requests(report.abandoned);
}
