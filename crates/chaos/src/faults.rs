//! The faults: each begins, lasts while the load goes on, and ends.

use std::path::PathBuf;

use anyhow::{Context, Result};
use test_servers::StopMode;
use tokio::task::block_in_place;
use tollgate_tests::Network;

use crate::cluster::{Cluster, Replica};
use crate::history::{Millis, Restart};
use crate::probe::Probe;
use crate::recorder::Recorder;
use crate::schedule::{Fault, Phase};

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
    stopped: Option<Stopped>,
}

impl<'a> FaultInjector<'a> {
    /// Creates an injector that reports restarts.
    pub fn new(recorder: &'a Recorder, probe: &'a Probe) -> Self {
        Self { recorder, probe, restarts: Vec::new(), stopped: None }
    }

    /// Returns the restarts so far.
    pub fn restarts(&self) -> Vec<Restart> {
        self.restarts.clone()
    }

    /// Begins the fault of a phase. Returns false if this machine does not permit it.
    pub async fn begin(&mut self, cluster: &mut Cluster, phase: Phase) -> Result<bool> {
        let replica = &mut cluster.replicas[phase.replica];
        match phase.fault {
            Fault::KillReplica | Fault::LoseJournal => self.kill(replica, phase.replica).await?,
            Fault::RestartDatabase => block_in_place(|| cluster.database.stop(StopMode::Fast))?,
            Fault::CrashDatabase => block_in_place(|| cluster.database.stop(StopMode::Immediate))?,
            Fault::FreezeDatabase => block_in_place(|| cluster.database.freeze())?,
            Fault::CutNetwork => replica.relay.set(Network::Cut),
            Fault::FreezeNetwork => replica.relay.set(Network::Frozen),
            Fault::RemoveBlobs => std::fs::rename(cluster.blobs(), away(cluster))?,
            Fault::SkewClock => {
                self.stop(replica, phase.replica).await?;
                replica.skew(phase.skew_seconds)?;
                self.restart(replica, phase.replica, false).await?;
            }
            Fault::FillJournalDisk => match &replica.disk {
                Some(disk) => block_in_place(|| disk.fill())?,
                None => return Ok(false),
            },
        }
        Ok(true)
    }

    /// Ends the fault of a phase.
    pub async fn end(&mut self, cluster: &mut Cluster, phase: Phase) -> Result<()> {
        let replica = &mut cluster.replicas[phase.replica];
        match phase.fault {
            Fault::KillReplica => self.restart(replica, phase.replica, false).await,
            Fault::LoseJournal => {
                replica.remove_journal()?;
                self.restart(replica, phase.replica, true).await
            }
            Fault::RestartDatabase | Fault::CrashDatabase => block_in_place(|| cluster.database.launch()),
            Fault::FreezeDatabase => block_in_place(|| cluster.database.resume()),
            Fault::CutNetwork | Fault::FreezeNetwork => {
                replica.relay.set(Network::Up);
                Ok(())
            }
            Fault::RemoveBlobs => Ok(std::fs::rename(away(cluster), cluster.blobs())?),
            Fault::SkewClock => {
                self.stop(replica, phase.replica).await?;
                replica.unskew();
                self.restart(replica, phase.replica, false).await
            }
            Fault::FillJournalDisk => replica.disk.as_ref().map_or(Ok(()), crate::disk::SmallDisk::free),
        }
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

fn away(cluster: &Cluster) -> PathBuf {
    cluster.blobs().with_extension("away")
}
