//! The faults: each begins, lasts while the load goes on, and ends.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use test_servers::StopMode;
use tokio::task::block_in_place;
use tokio::time::sleep;
use tollgate_tests::{Behaviour, Network};

use crate::cluster::{ANSWER, Cluster, Replica, answer_in_time};
use crate::disk::SmallDisk;
use crate::history::{Failover, Millis, Restart, Unknown};
use crate::probe::Probe;
use crate::recorder::Recorder;
use crate::schedule::{Fault, Phase};
use crate::snapshot::taken_of_accounts;
use crate::stores::Stores;

/// The time within which a disconnected server has committed or rolled back what it was doing.
const DISCONNECTED: Duration = Duration::from_millis(200);

/// The number of the lock that writers of one database take in turn.
const WRITE_LOCK: i64 = 0x746f_6c6c_6761_7465;
/// The time for which a fault holds that lock: every replica writes within it.
const HOLD_LOCK: Duration = Duration::from_secs(1);

/// The end of a process that a fault has stopped.
struct Stopped {
    incarnation: usize,
    at: Millis,
}

/// Causes the faults of one run.
pub struct FaultInjector<'a> {
    recorder: &'a Recorder,
    probe: &'a Probe,
    restarts: Vec<Restart>,
    failovers: Vec<Failover>,
    stopped: Option<Stopped>,
}

/// Holds the lock of writers until those of all replicas wait for it, and then silences the network of a replica: its
/// session gets the lock after it vanished.
fn vanish_with_lock(replica: &Replica, stores: &Stores) -> Result<()> {
    let database = &stores.database;
    let hold = format!("SELECT pg_advisory_xact_lock({WRITE_LOCK}), pg_sleep({})", HOLD_LOCK.as_secs_f64());
    std::thread::scope(|scope| {
        let holder = scope.spawn(|| database.query(&hold));
        std::thread::sleep(HOLD_LOCK / 2);
        replica.relay.set(Network::Frozen);
        holder.join().map_err(|_| anyhow!("the holder of the lock panicked"))?
    })
    .map(drop)
}

impl<'a> FaultInjector<'a> {
    /// Creates an injector that reports restarts and failovers.
    pub fn new(recorder: &'a Recorder, probe: &'a Probe) -> Self {
        Self { recorder, probe, restarts: Vec::new(), failovers: Vec::new(), stopped: None }
    }

    /// Returns the restarts so far.
    pub fn restarts(&self) -> Vec<Restart> {
        self.restarts.clone()
    }

    /// Returns the failovers so far.
    pub fn failovers(&self) -> Vec<Failover> {
        self.failovers.clone()
    }

    /// Begins the fault of a phase. Returns false if this machine does not permit it.
    pub async fn begin(&mut self, cluster: &mut Cluster, phase: Phase) -> Result<bool> {
        let Cluster { replicas, stores, upstream, .. } = cluster;
        let replica = &mut replicas[phase.replica];
        match phase.fault {
            Fault::KillReplica | Fault::LoseJournal => self.kill(replica, phase.replica).await?,
            Fault::RestartDatabase => block_in_place(|| stores.database.stop(StopMode::Fast))?,
            Fault::CrashDatabase => block_in_place(|| stores.database.stop(StopMode::Immediate))?,
            Fault::FreezeDatabase => block_in_place(|| stores.database.freeze())?,
            Fault::CutNetwork => replica.relay.set(Network::Cut),
            Fault::FreezeNetwork => replica.relay.set(Network::Frozen),
            Fault::RemoveBlobs => stores.remove_bucket()?,
            Fault::CutObjectStore => stores.objects.stop(),
            Fault::KillValkey => block_in_place(|| stores.rates.kill())?,
            Fault::FreezeValkey => stores.rates.freeze()?,
            Fault::SkewClock => {
                self.stop(replica, phase.replica).await?;
                replica.skew(phase.skew_seconds)?;
                self.restart(replica, phase.replica, false).await?;
            }
            Fault::FillJournalDisk => match &replica.disk {
                Some(disk) => block_in_place(|| disk.fill())?,
                None => return Ok(false),
            },
            Fault::FillDatabaseDisk => match &stores.disk {
                Some(disk) => block_in_place(|| disk.fill())?,
                None => return Ok(false),
            },
            Fault::EndProviderConnections => upstream.behave(Behaviour::DieBetweenCalls(true, ANSWER.to_owned())),
            Fault::VanishWithLock => block_in_place(|| vanish_with_lock(replica, stores))?,
            Fault::FailOverDatabase => self.fail_over(cluster).await?,
            Fault::FillSqliteDisk => return Ok(false),
        }
        Ok(true)
    }

    /// Ends the fault of a phase.
    pub async fn end(&mut self, cluster: &mut Cluster, phase: Phase) -> Result<()> {
        let Cluster { replicas, stores, upstream, .. } = cluster;
        let replica = &mut replicas[phase.replica];
        match phase.fault {
            Fault::EndProviderConnections => {
                upstream.behave(answer_in_time());
                Ok(())
            }
            Fault::KillReplica => self.restart(replica, phase.replica, false).await,
            Fault::LoseJournal => {
                replica.remove_journal()?;
                self.restart(replica, phase.replica, true).await
            }
            Fault::RestartDatabase | Fault::CrashDatabase => block_in_place(|| stores.database.launch()),
            Fault::FreezeDatabase => block_in_place(|| stores.database.resume()),
            Fault::CutNetwork | Fault::FreezeNetwork | Fault::VanishWithLock => {
                replica.relay.set(Network::Up);
                Ok(())
            }
            Fault::RemoveBlobs => stores.return_bucket(),
            Fault::CutObjectStore => block_in_place(|| stores.objects.resume()),
            Fault::KillValkey => block_in_place(|| stores.rates.restart()),
            Fault::FreezeValkey => stores.rates.resume(),
            Fault::SkewClock => {
                self.stop(replica, phase.replica).await?;
                replica.unskew();
                self.restart(replica, phase.replica, false).await
            }
            Fault::FillJournalDisk => replica.disk.as_ref().map_or(Ok(()), SmallDisk::free),
            Fault::FillDatabaseDisk => {
                stores.disk.as_ref().map_or(Ok(()), SmallDisk::free)?;
                // A server that cannot write its log ends.
                block_in_place(|| stores.database.revive())
            }
            // The old database does not come back.
            Fault::FailOverDatabase | Fault::FillSqliteDisk => Ok(()),
        }
    }

    /// Lets the standby fall behind and take over. Everything is disconnected before the database is killed, so that the
    /// counters of the lost server are known exactly.
    async fn fail_over(&mut self, cluster: &mut Cluster) -> Result<()> {
        let standby = cluster.stores.standby.take().context("the run has no standby")?;
        standby.wait_for(&cluster.stores.database)?;
        let lag_began = self.recorder.now();
        standby.lag().await;
        cluster.disconnect();
        sleep(DISCONNECTED).await;
        let taken = block_in_place(|| taken_of_accounts(&cluster.stores.database))?;
        block_in_place(|| cluster.stores.database.kill())?;
        let (database, disk) = standby.promote()?;
        let known = block_in_place(|| taken_of_accounts(&database))?;
        let unknown = taken.into_iter().map(|(account, amounts)| {
            let known = known.get(&account).cloned().unwrap_or_default();
            (account, unknown(&amounts, &known))
        });
        let unknown = unknown.collect();
        cluster.connect(database, disk)?;
        self.failovers.push(Failover { lag_began, promoted: self.recorder.now(), unknown });
        Ok(())
    }

    async fn kill(&mut self, replica: &mut Replica, number: usize) -> Result<()> {
        let server = replica.server.take().context("the replica does not run")?;
        self.note_stop(number);
        server.kill().await
    }

    async fn stop(&mut self, replica: &mut Replica, number: usize) -> Result<()> {
        let server = replica.server.take().context("the replica does not run")?;
        self.note_stop(number);
        server.stop().await
    }

    fn note_stop(&mut self, number: usize) {
        self.probe.watch(number, None);
        self.stopped = Some(Stopped { incarnation: self.recorder.incarnation(number), at: self.recorder.now() });
    }

    async fn restart(&mut self, replica: &mut Replica, number: usize, lost_journal: bool) -> Result<()> {
        let Stopped { incarnation, at } = self.stopped.take().context("no process has ended")?;
        self.recorder.restart(number);
        replica.start().await?;
        self.probe.watch(number, replica.server.as_ref().and_then(tollgate_tests::Server::id));
        let ready = self.recorder.now();
        self.restarts.push(Restart { replica: number, incarnation, stopped: at, ready, lost_journal });
        Ok(())
    }
}

/// Compares the amounts of an account on the lost server and on its standby, by holder.
fn unknown(lost: &BTreeMap<String, i64>, known: &BTreeMap<String, i64>) -> Unknown {
    let of = |amounts: &BTreeMap<String, i64>, holder| amounts.get(holder).copied().unwrap_or_default();
    let holders: BTreeSet<&String> = lost.keys().chain(known.keys()).collect();
    let grown: Vec<i64> = holders.into_iter().map(|holder| of(lost, holder) - of(known, holder)).collect();
    Unknown { drawn_pico: grown.iter().sum::<i64>().max(0), moved_pico: grown.iter().filter(|pico| **pico > 0).sum() }
}
