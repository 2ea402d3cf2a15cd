//! A run: load, faults in turn, and the checks at the end.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use tokio::task::block_in_place;
use tokio::time::{Instant, sleep};
use tollgate_tests::Server;

use crate::check::check;
use crate::cluster::{Cluster, REPLICAS, settings};
use crate::driver::{CONTAINER, Files, Load};
use crate::faults::FaultInjector;
use crate::history::{Call, FaultWindow, History, Millis, Outcome, ResourceUsage, Settings, Snapshot};
use crate::probe::{Probe, count_provider_calls, p99};
use crate::random::Random;
use crate::recorder::Recorder;
use crate::revoker::Revoker;
use crate::schedule::{Fault, Phase, plan};
use crate::subjects::{LastingKeys, create_lasting_keys, create_phase_keys, text};
use crate::{report, snapshot};

/// The longest recovery from a fault.
const RECOVERY_TIMEOUT: Duration = Duration::from_secs(20);
const POLL: Duration = Duration::from_millis(100);
/// The time without a rejection after which a replica counts as recovered.
const STEADY: Millis = 500;
/// The container files, and their size.
const FILES: usize = 4;
const FILE_BYTES: usize = 20_000;
/// A phase lasts for its fault, a quiet time of the same length, and what the commands and the recovery usually take.
const PHASE_PAUSES: u32 = 2;
const PHASE_OVERHEAD: Duration = Duration::from_secs(5);
/// The end of a run: processes that died with their journals count as lost, then the stores are swept and read.
const END: Duration = Duration::from_secs(40);
/// Answers per second of a fault after which a limit of a phase is used up.
const ANSWERS_PER_SECOND: i64 = 8;

/// How to run.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The seed.
    pub seed: u64,
    /// The duration of each fault, and of the quiet phase after it.
    pub fault: Duration,
    /// The faults; all if empty.
    pub only: Vec<Fault>,
    /// The time for the whole run, if it is limited.
    pub budget: Option<Duration>,
}

impl Plan {
    /// Returns true if a further phase and the end of the run fit into the budget.
    fn has_time(&self, elapsed: Duration) -> bool {
        self.budget.is_none_or(|budget| elapsed + PHASE_PAUSES * self.fault + PHASE_OVERHEAD + END <= budget)
    }
}

/// The parts of a run that its phases use.
struct Stand<'a> {
    recorder: &'a Recorder,
    probe: &'a Probe,
    keys: LastingKeys,
    settings: Settings,
    fault: Duration,
}

/// Runs the plan; returns true if every property holds.
pub async fn run(plan_of_run: &Plan) -> Result<bool> {
    let began = Instant::now();
    let Plan { seed, fault, only, .. } = plan_of_run;
    let phases = plan(*seed, only, REPLICAS);
    report::schedule(*seed, fault.as_secs(), &phases);
    let settings = settings(*fault);
    let has_standby = phases.iter().any(|phase| phase.fault == Fault::FailOverDatabase);
    let mut cluster = Cluster::start(&settings, *fault, has_standby).await?;
    snapshot::install_trigger(&cluster)?;
    let recorder = Arc::new(Recorder::new(REPLICAS));
    let started_at = snapshot::time(&cluster)?.saturating_sub_unsigned(recorder.now());
    let keys = create_lasting_keys(&cluster, &recorder).await?;
    let contents = contents(*seed);
    let files = put_files(&cluster, &contents).await?;
    let probe = Probe::start(REPLICAS);
    for (number, replica) in cluster.replicas.iter().enumerate() {
        probe.watch(number, replica.server.as_ref().and_then(Server::id));
    }
    let addresses: Vec<SocketAddr> = cluster.replicas.iter().map(|replica| replica.address).collect();
    let load = Load::start(&recorder, &addresses, &files, *seed);
    let revoker = Revoker::start(&recorder, cluster.second_admin(&settings)?, &addresses, settings.max_stale);
    let stand = Stand { recorder: &recorder, probe: &probe, keys, settings, fault: *fault };
    let mut injector = FaultInjector::new(&recorder, &probe);
    let mut windows = Vec::new();
    for (number, phase) in phases.iter().enumerate() {
        if number > 0 && !plan_of_run.has_time(began.elapsed()) {
            report::line(&format!("{}. {phase}: skipped, the budget is used up", number + 1));
            continue;
        }
        let window = stand.run_phase(&mut cluster, &mut injector, number, *phase).await;
        if window.is_err() {
            print_evidence(&cluster, *seed)?;
        }
        windows.extend(window?);
    }
    load.stop().await;
    revoker.stop().await;
    let (restarts, failovers) = (injector.restarts(), injector.failovers());
    let (keys, accounts) = recorder.subjects();
    let calls = recorder.with_calls(<[_]>::to_vec);
    let delay = probe.longest_delay();
    let history = History {
        started_at,
        delay,
        settings,
        replicas: REPLICAS,
        keys,
        accounts,
        windows,
        restarts,
        failovers,
        calls,
    };
    let stores = end(&mut cluster, &history, &recorder, &contents, *fault).await?;
    let violations = check(&history, &stores);
    report::result(*seed, &history, &violations);
    if !violations.is_empty() {
        print_evidence(&cluster, *seed)?;
    }
    Ok(violations.is_empty())
}

fn print_evidence(cluster: &Cluster, seed: u64) -> Result<()> {
    let folder = keep_evidence(cluster, seed)?;
    report::line(&format!("logs of the replicas and the database: {}", folder.display()));
    Ok(())
}

/// Copies the logs of the replicas and the database, which end with the run, to a folder beside this program's.
fn keep_evidence(cluster: &Cluster, seed: u64) -> Result<PathBuf> {
    let program = std::env::current_exe()?;
    let target = program.parent().and_then(Path::parent).context("the program does not lie in a target folder")?;
    let folder = target.join("chaos").join(seed.to_string());
    std::fs::create_dir_all(&folder)?;
    for (number, replica) in cluster.replicas.iter().enumerate() {
        std::fs::write(folder.join(format!("replica-{number}.log")), replica.output())?;
    }
    block_in_place(|| cluster.stores.database.dump(&folder.join("database.sql")))?;
    Ok(folder)
}

impl Stand<'_> {
    /// Runs a fault under load, waits for the recovery, and lets a quiet phase follow.
    async fn run_phase(
        &self,
        cluster: &mut Cluster,
        injector: &mut FaultInjector<'_>,
        number: usize,
        phase: Phase,
    ) -> Result<Option<FaultWindow>> {
        let seconds = i64::try_from(self.fault.as_secs()).unwrap_or(i64::MAX);
        let limit = (20 + ANSWERS_PER_SECOND.saturating_mul(seconds)).saturating_mul(self.settings.call_cost_pico);
        create_phase_keys(cluster, self.recorder, self.keys, number, limit, &self.settings).await?;
        sleep(self.fault / 5).await;
        self.probe.take();
        let began = self.recorder.now();
        if !injector.begin(cluster, phase).await.with_context(|| format!("{phase} did not begin"))? {
            report::line(&format!("{}. {phase}: skipped, this user may not mount a disk", number + 1));
            return Ok(None);
        }
        let in_force = self.recorder.now();
        sleep(self.fault).await;
        let until = self.recorder.now();
        injector.end(cluster, phase).await.with_context(|| format!("{phase} did not end"))?;
        let ended = self.recorder.now();
        let usage = self.usage(began, ended);
        let recovered = self.wait_for_recovery(ended).await;
        if recovered.is_none() {
            // The database may not answer, which is no reason to end the run.
            let activity = snapshot::activity(cluster).unwrap_or_else(|error| vec![format!("{error:#}")]);
            for line in activity {
                report::line(&format!("   in the database: {line}"));
            }
        }
        sleep(self.fault).await;
        cluster.counted().for_each(|provider| count_provider_calls(provider, self.recorder));
        let window = FaultWindow {
            fault: phase.to_string(),
            replica: phase.fault.has_one_target().then_some(phase.replica),
            outage: phase.fault.outage(),
            began,
            in_force,
            until,
            ended,
            recovered,
            quiet_until: self.recorder.now(),
            usage,
        };
        self.recorder.with_calls(|calls| report::phase(number, phase, &window, calls));
        Ok(Some(window))
    }

    fn usage(&self, began: Millis, ended: Millis) -> ResourceUsage {
        let (memory_kib, processor_permille, delay_ms) = self.probe.take();
        let times = self.recorder.with_calls(|calls| {
            let during = calls.iter().filter(|call| call.invoked >= began && call.completed <= ended);
            let answered =
                during.filter(|call| call.operation.is_decision() && matches!(call.outcome, Outcome::Ok { .. }));
            answered.map(|call| call.completed - call.invoked).collect()
        });
        ResourceUsage { memory_kib, processor_permille, p99_ms: p99(times), delay_ms }
    }

    /// Waits until every replica answers the keys that always have room, without a rejection for some time.
    async fn wait_for_recovery(&self, ended: Millis) -> Option<Millis> {
        let lasting = self.recorder.active().lasting;
        let end = Instant::now() + RECOVERY_TIMEOUT;
        while Instant::now() < end {
            let now = self.recorder.now();
            let is_recovered = self.recorder.with_calls(|calls| {
                let later: Vec<&Call> = calls
                    .iter()
                    .rev()
                    .take_while(|call| call.completed >= ended)
                    .filter(|call| call.operation.is_decision() && lasting.contains(&call.key))
                    .collect();
                has_recovered(&later, &lasting, ended, now)
            });
            if is_recovered {
                return Some(self.recorder.now());
            }
            sleep(POLL).await;
        }
        None
    }
}

/// Returns true if every replica has answered each key by a call that began after the fault, and none has rejected one
/// in the last half second.
fn has_recovered(later: &[&Call], lasting: &[usize], ended: Millis, now: Millis) -> bool {
    let is_ok = |call: &&&Call| matches!(call.outcome, Outcome::Ok { .. });
    let has_answered = |replica: usize, key: usize| {
        later.iter().filter(is_ok).any(|call| (call.replica, call.key) == (replica, key) && call.invoked >= ended)
    };
    let is_steady = later.iter().all(|call| is_ok(&call) || call.completed + STEADY < now);
    is_steady && (0..REPLICAS).all(|replica| lasting.iter().all(|key| has_answered(replica, *key)))
}

/// Ends the replicas and reads the stores.
async fn end(
    cluster: &mut Cluster,
    history: &History,
    recorder: &Recorder,
    contents: &[Vec<u8>],
    fault: Duration,
) -> Result<Snapshot> {
    let lost_within = 4 * fault + Duration::from_mins(3);
    snapshot::wait_for_lost_processes(cluster, REPLICAS, lost_within).await?;
    for replica in &mut cluster.replicas {
        if let Some(server) = replica.server.take() {
            server.stop().await?;
        }
    }
    cluster.counted().for_each(|provider| count_provider_calls(provider, recorder));
    // A process that could not fold into the new database has left its journal to the next start.
    let serving = if history.failovers.is_empty() { 1 } else { REPLICAS };
    snapshot::sweep(cluster, serving).await?;
    snapshot::read(cluster, contents, recorder.provider_calls()).await
}

/// Returns the contents of the container files.
fn contents(seed: u64) -> Vec<Vec<u8>> {
    let file = |number: usize| {
        let mut random = Random::new(seed, 1_000 + number as u64);
        (0..FILE_BYTES / 8).flat_map(|_| random.number().to_le_bytes()).collect()
    };
    (0..FILES).map(file).collect()
}

async fn put_files(cluster: &Cluster, contents: &[Vec<u8>]) -> Result<Files> {
    let mut ids = Vec::new();
    for (number, content) in contents.iter().enumerate() {
        std::fs::write(cluster.admin.path().join("upload"), content)?;
        let path = format!("files/{number}");
        ids.push(text(&cluster.json(&["container", "put", CONTAINER, &path, "upload"]).await?, "id")?);
    }
    Ok(ids.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::Operation;

    fn call(replica: usize, key: usize, invoked: Millis, outcome: Outcome) -> Call {
        let completed = invoked + 10;
        Call { operation: Operation::Decide, replica, incarnation: 0, key, invoked, completed, outcome }
    }

    #[test]
    fn phases_that_do_not_fit_into_the_budget_are_skipped() {
        let plan = |budget| Plan { seed: 1, fault: Duration::from_secs(2), only: Vec::new(), budget };
        let limited = plan(Some(Duration::from_secs(100)));
        assert!(limited.has_time(Duration::from_secs(51)));
        assert!(!limited.has_time(Duration::from_secs(52)));
        assert!(plan(None).has_time(Duration::from_hours(9)));
    }

    #[test]
    fn replicas_have_recovered_when_all_answer_and_none_rejects() {
        let ok = || Outcome::Ok { id: "a".to_owned(), cost_pico: 0, stage: 0 };
        let pairs = (0..REPLICAS).flat_map(|replica| [(replica, 0), (replica, 1)]);
        let calls: Vec<Call> = pairs.map(|(replica, key)| call(replica, key, 1_000, ok())).collect();
        let recovered =
            |calls: &[Call], ended, now| has_recovered(&calls.iter().collect::<Vec<_>>(), &[0, 1], ended, now);
        assert!(recovered(&calls, 1_000, 1_010));
        assert!(!recovered(&calls, 1_001, 1_020), "the calls began before the end of the fault");
        assert!(!recovered(&calls[1..], 1_000, 1_010), "a replica has not answered a key");
        let rejected = [calls, vec![call(2, 1, 1_100, Outcome::Unknown("reset".to_owned()))]].concat();
        assert!(!recovered(&rejected, 1_000, 1_610), "a call was rejected half a second ago");
        assert!(recovered(&rejected, 1_000, 1_611));
    }
}
