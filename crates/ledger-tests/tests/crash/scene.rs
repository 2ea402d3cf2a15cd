//! The initial files of each child: a database, and journals of two dead processes, one of them damaged.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use adapters_journal::testing::LocalMachine;
use domain::budget::{JournaledLedger, Ledger, LedgerSettings, UsageCharge};
use domain::ids::ProcessId;
use domain::testing::contract::{JournalMachine, Stores, hold_request, insert_payer, limit_payer, payer, usage_record};
use domain::testing::{JournalBounds, create_time_without_timer};
use tempfile::TempDir;
use uuid::Uuid;

use crate::machine::{clock, open_database, stores};

/// The limit of the only key, in picodollars.
pub const LIMIT: i64 = 100_000;
/// The charge and the hold of each of the dead processes' requests, in picodollars.
pub const DEAD_COST: i64 = 7;
pub const DEAD_HOLD: i64 = 50;

/// The initial files, and the child's copy of them.
pub struct Scene {
    folder: TempDir,
    /// The allowances of the process whose journal is damaged.
    pub damaged_allotment: i64,
}

impl Scene {
    pub async fn prepare() -> Self {
        let folder = TempDir::new().unwrap();
        let template = folder.path().join("template");
        fs::create_dir(&template).unwrap();
        let clock = clock();
        let database = open_database(&template.join("tollgate.db"), &clock).await;
        database.migrate().await.unwrap();
        let stores = stores(&database, &clock);
        insert_payer(&stores).await;
        limit_payer(&stores, Some(LIMIT)).await;
        let machine = LocalMachine::new(database.id().await.unwrap(), clock).unwrap();
        die(&stores, &machine, 1).await;
        let (_, before) = counted(&stores).await;
        die(&stores, &machine, 2).await;
        let (_, after) = counted(&stores).await;
        // The charge of its first request.
        machine.damage(process(2), 4);
        copy_folder(&machine.root(), &template.join("journals")).unwrap();
        // An incomplete start.
        fs::create_dir(template.join(format!("journals/.new-{}", process(8)))).unwrap();
        database.close().await;
        Self { folder, damaged_allotment: after - before }
    }

    /// Returns the child's folder.
    pub fn work(&self) -> PathBuf {
        self.folder.path().join("work")
    }

    /// Copies the initial files again.
    pub fn reset(&self) {
        if self.work().exists() {
            fs::remove_dir_all(self.work()).unwrap();
        }
        copy_folder(&self.folder.path().join("template"), &self.work()).unwrap();
    }
}

pub fn process(number: u128) -> ProcessId {
    ProcessId::from_uuid(Uuid::from_u128(number))
}

/// Returns the spent and the allotted amount of the key.
pub async fn counted(stores: &Stores) -> (i64, i64) {
    let found = stores.limits.limit_statuses(&payer()).await.unwrap();
    (found[0].spent.pico(), found[0].reserved.pico())
}

/// Runs a process that dies with three requests, the first and the last charged; their ids begin at 100 or 200.
async fn die(stores: &Stores, machine: &LocalMachine, number: u128) {
    let ledger = JournaledLedger::new(
        Arc::clone(&stores.budget),
        machine.start(process(number), JournalBounds::default()),
        create_time_without_timer(&stores.clock),
        Arc::clone(&stores.limits),
        LedgerSettings::default(),
    );
    for request in 100 * number..100 * number + 3 {
        ledger.reserve(hold_request(request, DEAD_HOLD)).await.unwrap().unwrap();
    }
    for request in [100 * number, 100 * number + 2] {
        let charge = UsageCharge::new(usage_record(request, DEAD_COST));
        ledger.settle(&charge).await.unwrap();
    }
}

fn copy_folder(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy_folder(&entry.path(), &target)?;
        } else {
            fs::copy(entry.path(), target)?;
        }
    }
    Ok(())
}
