//! Reads the status of a server and of the processes of its database.

use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use futures_util::future::{Either, join_all, select};

use crate::authority::{Authority, Restricted, Right};
use crate::budget::{ForgetProcesses, LiveProcess, RenewingLedger, UsageJournalStatus};
use crate::error::StoreError;
use crate::ids::ProcessId;
use crate::system::{HealthProbe, Timer};

/// Probes must finish within two seconds; a slower one is abandoned after this time.
const PROBE_TIMEOUT: Duration = Duration::from_secs(3);

/// The properties of a server that never change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerIdentity {
    /// The id of the process at its start.
    pub id: String,
    /// The release.
    pub version: &'static str,
    /// The time of the start.
    pub started_at: DateTime<Utc>,
    /// The monotonic time of the start.
    pub began: Duration,
    /// The file of its configuration.
    pub config_file: Option<String>,
    /// The name of the database.
    pub database: String,
}

/// The properties of the configuration in force, which a reload replaces.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LoadedConfiguration {
    /// The time at which it was read.
    pub loaded_at: DateTime<Utc>,
    /// The names of the set environment variables that it uses.
    pub variables: Vec<String>,
}

/// The status of a server's stores and journal, and the live processes of its database.
#[derive(Debug)]
pub struct StatusReading {
    /// Each store with the reason if it did not respond.
    pub stores: Vec<StoreReading>,
    /// The current id of the process in the database; `None` on a read-only one.
    pub process: Option<ProcessId>,
    /// The journal and the number of open requests; `None` on a read-only database.
    pub journal: Option<(UsageJournalStatus, usize)>,
    /// The live processes, and whether their journals are on this machine.
    pub processes: Result<Vec<(LiveProcess, bool)>, StoreError>,
}

/// The readiness of a store.
#[derive(Debug)]
pub struct StoreReading {
    /// Its name.
    pub name: &'static str,
    /// The reason if it did not respond.
    pub error: Option<StoreError>,
    /// True if requests are served while it does not respond.
    pub serves_during_outage: bool,
}

/// Reads the status.
pub struct ReadStatus {
    probes: Vec<Arc<dyn HealthProbe>>,
    ledger: Option<Arc<RenewingLedger>>,
    processes: ForgetProcesses,
    timer: Arc<dyn Timer>,
}

impl ReadStatus {
    /// Wires the ports. `ledger` is `None` on a read-only database.
    pub fn new(
        probes: Vec<Arc<dyn HealthProbe>>,
        ledger: Option<Arc<RenewingLedger>>,
        processes: ForgetProcesses,
        timer: Arc<dyn Timer>,
    ) -> Self {
        Self { probes, ledger, processes, timer }
    }

    /// Probes the stores, and lists the processes.
    ///
    /// # Errors
    /// The caller lacks [`Right::ReadAll`].
    pub async fn execute(&self, by: &Authority) -> Result<StatusReading, Restricted> {
        by.check(Right::ReadAll)?;
        let stores = join_all(self.probes.iter().map(|probe| self.probe(&**probe))).await;
        let ledger = self.ledger.as_deref();
        let process = ledger.map(RenewingLedger::process);
        let journal = ledger.map(|ledger| (ledger.journal_status(), ledger.open_calls()));
        Ok(StatusReading { stores, process, journal, processes: self.processes.list().await })
    }

    async fn probe(&self, probe: &dyn HealthProbe) -> StoreReading {
        let error = match select(probe.probe(), self.timer.sleep(PROBE_TIMEOUT)).await {
            Either::Left((outcome, _)) => outcome.err(),
            Either::Right(_) => Some(StoreError::unavailable("the probe did not end")),
        };
        StoreReading { name: probe.name(), error, serves_during_outage: probe.serves_during_outage() }
    }
}
