//! The instructions of an answer, its allocations, clock readings, atomic operations and system calls, counted by
//! `valgrind --tool=callgrind`. Unlike times they repeat, whatever else runs. Work in the kernel is not counted.
//!
//! Locks are inlined and have no symbol, so they are not counted on their own: without contention one is two atomic
//! operations.

use std::collections::HashMap;
use std::fs;
use std::io::Write as _;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use clap::{Args, ValueEnum};
use serde_json::{Value, json};
use tokio::process::Command;

use crate::gateway::Gateway;
use crate::http::{self, call_once};
use crate::load::{Requests, Target, drive};
use crate::parts::governed_key;
use crate::process::Helper;
use crate::statistics::figure;
use crate::wires::{INBOUND, OUTBOUND};

/// The duration of the load before the count, for caches and connections.
const WARM_UP: Duration = Duration::from_secs(5);
/// The pause for work after the last answer: folds, log lines.
const AFTERWARDS: Duration = Duration::from_secs(1);
/// The fewest instructions of an answer for which a thread is listed.
const LISTED: u64 = 100;
/// The functions that allocate: those of the program's allocator, and those of C libraries.
const ALLOCATING: [&str; 6] =
    ["mi_malloc_aligned", "mi_zalloc_aligned", "mi_realloc_aligned", "malloc", "calloc", "realloc"];
/// A function of the threads that answer requests.
const OF_WORKERS: &str = "<actix_server::worker::ServerWorker as core::future::future::Future>::poll";

/// The operation to count, and the load.
#[derive(Args)]
pub struct Options {
    /// The binary to measure, with its symbols. Line tables serve `callgrind_annotate`.
    #[arg(long)]
    tollgate: PathBuf,
    /// The folder for the profiles, one file per thread, for `callgrind_annotate`.
    #[arg(long)]
    folder: PathBuf,
    /// The operation.
    #[arg(long, value_enum, default_value_t = Operation::Decisions)]
    operation: Operation,
    /// Client connections.
    #[arg(long, default_value_t = 16)]
    connections: usize,
    /// The duration of the load, in seconds. A server under callgrind answers about a hundred Decisions a second.
    #[arg(long, default_value_t = 20)]
    seconds: u64,
    /// Fail if the workers' figure of an answer is higher, for example `allocations=70`.
    #[arg(long, value_name = "FIGURE=NUMBER", value_parser = bound)]
    at_most: Vec<(Figure, f64)>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Operation {
    /// Decisions of a key without limits.
    Decisions,
    /// Decisions of a key with every limit and policy: rates, credit, budgets, a destination, a guardrail.
    EverythingOn,
    /// Decisions of a key without limits, whose questions are those of a preset.
    Preset,
    /// The same, with thresholds that every answer reaches.
    Thresholds,
    /// The count of models.
    Count,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Figure {
    /// Instructions outside of the kernel.
    Instructions,
    /// Calls of functions that allocate or reallocate.
    Allocations,
    /// Calls of `clock_gettime`.
    ClockReadings,
    /// Instructions that lock the bus: locks, reference counts, counters.
    AtomicOperations,
    /// System calls, without clock readings, which need none outside of valgrind. Under valgrind threads find less work
    /// at a time and wait more often, so a loaded server has fewer of them.
    SystemCalls,
}

fn bound(text: &str) -> Result<(Figure, f64)> {
    let (name, most) = text.split_once('=').context("a bound is FIGURE=NUMBER")?;
    let figure = Figure::from_str(name, false).map_err(anyhow::Error::msg)?;
    Ok((figure, most.parse()?))
}

/// Counts and prints the instructions of an answer by thread.
pub async fn run(options: &Options) -> Result<()> {
    fs::create_dir_all(&options.folder)?;
    let prefix = options.folder.canonicalize()?.join("callgrind");
    let upstream = Helper::start(&["upstream"]).await?;
    let mut gateway = Gateway::install(&options.tollgate, upstream.address).await?;
    let out_file = format!("--callgrind-out-file={}", prefix.display());
    let events = ["--separate-threads=yes", "--collect-bus=yes", "--collect-systime=usec"];
    gateway.start_under(&[&["valgrind", "--tool=callgrind", &out_file], &events[..]].concat()).await?;
    let (pid, request) = (gateway.pid()?, request(&gateway, options.operation, upstream.address).await?);
    let requests = Requests::repeat(request);
    let target = Target { name: "callgrind", address: gateway.address, pid, requests };
    call_once(target.address, target.requests.next()).await?;
    drive(&target, options.connections, WARM_UP).await?;
    control("--zero", pid).await?;
    let before = target.requests.sent();
    drive(&target, options.connections, Duration::from_secs(options.seconds)).await?;
    let answers = u64::try_from(target.requests.sent() - before)?;
    tokio::time::sleep(AFTERWARDS).await;
    control("--dump", pid).await?;
    gateway.stop().await?;
    let profiles = profiles(&prefix)?;
    report(&profiles, answers)?;
    check(&Counts::of_workers(&profiles), answers, &options.at_most)
}

async fn request(gateway: &Gateway, operation: Operation, upstream: SocketAddr) -> Result<Vec<u8>> {
    let decisions =
        |key: &str| http::request("POST", INBOUND[0].path, key, Some(INBOUND[0].body(OUTBOUND[0].model).as_bytes()));
    Ok(match operation {
        Operation::Decisions => decisions(&gateway.inference_key),
        Operation::EverythingOn => decisions(&governed_key(gateway, upstream).await?),
        Operation::Preset => preset(gateway, json!({"model": OUTBOUND[0].model})).await?,
        Operation::Thresholds => {
            let stage = json!({"model": OUTBOUND[0].model, "accept": {"*": 0}});
            preset(gateway, json!({"stages": [stage]})).await?
        }
        Operation::Count => {
            http::request("GET", "/api/v1/models/count?output_modalities=all", &gateway.management_key, None)
        }
    })
}

/// Creates a preset of this configuration, to which the questions are added, and returns the request of
/// [`Operation::Decisions`] that names it.
async fn preset(gateway: &Gateway, mut config: Value) -> Result<Vec<u8>> {
    let mut body: Value = serde_json::from_str(&INBOUND[0].body("@preset/bench"))?;
    config["questions"] = body["questions"].take();
    let file = gateway.folder().join("preset.json");
    fs::write(&file, config.to_string())?;
    gateway.command(&["preset", "create", "bench", "--from", &file.to_string_lossy()]).await?;
    body["questions"] = json!({});
    Ok(http::request("POST", INBOUND[0].path, &gateway.inference_key, Some(body.to_string().as_bytes())))
}

async fn control(action: &str, pid: u32) -> Result<()> {
    let done = Command::new("callgrind_control").args([action, &pid.to_string()]).output().await?;
    ensure!(done.status.success(), "callgrind_control {action}: {}", String::from_utf8_lossy(&done.stderr));
    Ok(())
}

/// The work of threads.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct Counts {
    instructions: u64,
    allocations: u64,
    clock_readings: u64,
    atomic_operations: u64,
    /// With those of the clock readings: under valgrind each is one.
    system_calls: u64,
}

impl Counts {
    fn of_workers(profiles: &[Profile]) -> Self {
        Self::sum(profiles.iter().filter(|profile| profile.is_worker))
    }

    fn sum<'a>(profiles: impl Iterator<Item = &'a Profile>) -> Self {
        profiles.fold(Self::default(), |sum, Profile { counts, .. }| Self {
            instructions: sum.instructions + counts.instructions,
            allocations: sum.allocations + counts.allocations,
            clock_readings: sum.clock_readings + counts.clock_readings,
            atomic_operations: sum.atomic_operations + counts.atomic_operations,
            system_calls: sum.system_calls + counts.system_calls,
        })
    }

    /// Returns a figure of one answer.
    fn each(&self, of: Figure, answers: u64) -> f64 {
        let count = match of {
            Figure::Instructions => self.instructions,
            Figure::Allocations => self.allocations,
            Figure::ClockReadings => self.clock_readings,
            Figure::AtomicOperations => self.atomic_operations,
            Figure::SystemCalls => self.system_calls.saturating_sub(self.clock_readings),
        };
        figure(count) / figure(answers.max(1))
    }
}

/// The profile of one thread.
struct Profile {
    path: PathBuf,
    is_worker: bool,
    counts: Counts,
}

impl Profile {
    /// Reads a file of callgrind: the sums of its events, and the calls of functions. A function has its name at the
    /// first mention and only its number later.
    fn parse(path: PathBuf, text: &str) -> Self {
        let (mut names, mut callee) = (HashMap::new(), None);
        let (mut events, mut sums): (Vec<&str>, Vec<u64>) = (Vec::new(), Vec::new());
        let mut profile = Self { path, is_worker: false, counts: Counts::default() };
        for line in text.lines() {
            if let Some((kind @ ("fn" | "cfn"), function)) = line.split_once('=') {
                let (number, name) = function.split_once(' ').unwrap_or((function, ""));
                let name = *names.entry(number).or_insert(name);
                profile.is_worker |= name == OF_WORKERS;
                callee = (kind == "cfn").then_some(name);
            } else if let Some(calls) = line.strip_prefix("calls=") {
                let calls = calls.split(' ').next().and_then(|calls| calls.parse().ok()).unwrap_or(0);
                let Some(name) = callee.map(|name: &str| name.split(['@', '\'']).next().unwrap_or(name)) else {
                    continue;
                };
                if ALLOCATING.contains(&name) {
                    profile.counts.allocations += calls;
                } else if name == "clock_gettime" {
                    profile.counts.clock_readings += calls;
                }
            } else if let Some(named) = line.strip_prefix("events: ") {
                events = named.split_whitespace().collect();
            } else if let Some(numbers) = line.strip_prefix("totals: ").or(line.strip_prefix("summary: ")) {
                sums = numbers.split_whitespace().filter_map(|number| number.parse().ok()).collect();
            }
        }
        // Zeros at the end of a line may be missing.
        let sum =
            |event| events.iter().position(|name| *name == event).and_then(|at| sums.get(at)).map_or(0, |sum| *sum);
        profile.counts.instructions = sum("Ir");
        profile.counts.atomic_operations = sum("Ge");
        profile.counts.system_calls = sum("sysCount");
        profile
    }
}

/// Returns the profiles of the first dump: `PREFIX.1-THREAD`.
fn profiles(prefix: &Path) -> Result<Vec<Profile>> {
    let (folder, name) = (prefix.parent().context("no folder")?, prefix.file_name().context("no file name")?);
    let of_dump = format!("{}.1-", name.to_string_lossy());
    let mut found = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(&of_dump)) {
            let text = fs::read_to_string(&path)?;
            found.push(Profile::parse(path, &text));
        }
    }
    found.sort_by(|one, other| one.path.cmp(&other.path));
    Ok(found)
}

fn report(profiles: &[Profile], answers: u64) -> Result<()> {
    let mut output = std::io::stdout();
    let (workers, all) = (Counts::of_workers(profiles), Counts::sum(profiles.iter()));
    writeln!(output, "{answers} answers; for one of them:\n{:>12}  {:>12}", "workers", "all threads")?;
    for of in Figure::value_variants() {
        let [workers, all] = [workers, all].map(|counts| counts.each(*of, answers));
        writeln!(output, "{workers:>12.1}  {all:>12.1}  {}", name(*of))?;
    }
    writeln!(output, "instructions by thread:")?;
    for Profile { path, is_worker, counts } in profiles {
        let each = counts.instructions / answers.max(1);
        if each >= LISTED {
            writeln!(output, "{each:>12}  {}{}", path.display(), if *is_worker { " (worker)" } else { "" })?;
        }
    }
    Ok(())
}

fn name(of: Figure) -> String {
    of.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
}

/// Fails with the figures that are above their bound.
fn check(workers: &Counts, answers: u64, bounds: &[(Figure, f64)]) -> Result<()> {
    ensure!(workers.instructions > 0, "no thread ran {OF_WORKERS}: are the symbols stripped?");
    let above = bounds.iter().filter_map(|(of, most)| {
        let found = workers.each(*of, answers);
        (found > *most).then(|| format!("{} of an answer: {found:.1}, at most {most}", name(*of)))
    });
    let above: Vec<String> = above.collect();
    if above.is_empty() { Ok(()) } else { bail!("{}", above.join("; ")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WORKER: &str = "events: Ir Ge sysCount sysTime\nsummary: 900 8\n\nob=(1) /bin/x\n\
        fn=(1) <actix_server::worker::ServerWorker as core::future::future::Future>::poll\n\
        cfn=(2) mi_malloc_aligned\ncalls=3 10\n1 20\ncfn=(3) clock_gettime@@GLIBC_2.17\ncalls=4 0\n1 4\n\
        fn=(4) other\ncfn=(2)\ncalls=2 10\n1 9\ncfn=(5) mi_free\ncalls=9 10\n1 9\n\ntotals: 1000 8 7 90\n";

    #[test]
    fn profile_counts_events_and_calls() {
        let profile = Profile::parse(PathBuf::new(), WORKER);
        let counts =
            Counts { instructions: 1_000, allocations: 5, clock_readings: 4, atomic_operations: 8, system_calls: 7 };
        assert!(profile.is_worker);
        assert_eq!(profile.counts, counts);
        // Each clock reading is a system call under valgrind alone.
        assert!((counts.each(Figure::SystemCalls, 2) - 1.5).abs() < 1e-9);
        let idle = Profile::parse(PathBuf::new(), "events: Ir Ge sysCount\nsummary: 12\n");
        assert_eq!((idle.is_worker, idle.counts), (false, Counts { instructions: 12, ..Counts::default() }));
    }

    #[test]
    fn check_names_every_figure_above_its_bound() {
        let counts = Profile::parse(PathBuf::new(), WORKER).counts;
        let bounds = ["instructions=500", "allocations=2", "clock-readings=1.9"].map(|text| bound(text).unwrap());
        assert!(check(&counts, 2, &bounds[..1]).is_ok());
        let error = check(&counts, 2, &bounds).unwrap_err().to_string();
        assert_eq!(error, "allocations of an answer: 2.5, at most 2; clock-readings of an answer: 2.0, at most 1.9");
        assert!(check(&Counts::default(), 2, &[]).is_err(), "a program without symbols is not measured");
        assert!(bound("instructions").is_err() && bound("words=1").is_err() && bound("instructions=many").is_err());
    }

    #[test]
    fn profiles_are_those_of_the_dump() {
        let folder = tempfile::tempdir().unwrap();
        for (name, sum) in [("callgrind", 1), ("callgrind.1-02", 20), ("callgrind.1-01", 10), ("callgrind.2-01", 5)] {
            fs::write(folder.path().join(name), format!("events: Ir\ntotals: {sum}\n")).unwrap();
        }
        let found = profiles(&folder.path().join("callgrind")).unwrap();
        assert_eq!(found.iter().map(|profile| profile.counts.instructions).collect::<Vec<_>>(), [10, 20]);
    }
}
