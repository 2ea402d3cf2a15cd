//! A process that crashes at each step of its work: at every file operation of the journal, and before and after every
//! call to the store. Afterwards its journal is recovered and the ledger must pass the audit.
//!
//! The test runs itself as a child: once to the end to list the points, then once for each point.
#![expect(clippy::unwrap_used, clippy::disallowed_methods, reason = "a test, which panics and reads its environment")]

#[path = "../real/machine.rs"]
#[allow(dead_code, reason = "shared with another test, each uses a part")]
mod machine;

mod child;
mod ledger_check;
mod points;
mod scene;

use std::collections::BTreeMap;
use std::io::Write as _;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use self::ledger_check::ReportedRequests;
use self::scene::Scene;

/// The maximum time for all crashes. If it does not suffice, a sample is taken.
const MAX_TIME: Duration = Duration::from_mins(1);

/// The child process; ignored in a normal test run.
#[test]
#[ignore = "the process that dies, started by the other test"]
fn child_process() {
    let folder = std::env::var("LEDGER_CRASH_FOLDER").unwrap();
    points::plan(std::env::var("LEDGER_CRASH_POINT").ok().as_deref());
    runtime().block_on(child::run(folder.as_ref()));
    points::report();
}

#[test]
fn ledger_adds_up_after_a_crash_at_any_point() {
    let scene = runtime().block_on(Scene::prepare());
    let (output, is_whole) = run_child(&scene, None);
    assert!(is_whole, "{output}");
    runtime().block_on(ReportedRequests::check(&scene, &output, "no point"));
    let points = points::read_report(&output);
    let mut crashes: Vec<(String, u32)> =
        points.iter().flat_map(|(name, count)| (1..=*count).map(|number| (name.clone(), number))).collect();
    for name in [
        "half a write",
        "rotating",
        "quarantine file written",
        "before removal of a segment",
        "before removal of a folder",
    ] {
        assert!(points.contains_key(name), "{name} is not reached: {points:?}");
    }
    let seed = seed();
    // The first occurrence of each name, then all others in random order.
    crashes.sort_by_key(|(name, number)| (*number > 1, shuffled(seed, name, *number)));
    let began = Instant::now();
    let mut tried: BTreeMap<String, u32> = BTreeMap::new();
    for (name, number) in &crashes {
        if began.elapsed() > MAX_TIME && *number > 1 {
            break;
        }
        let point = format!("{name}#{number}");
        let (output, is_whole) = run_child(&scene, Some(&point));
        // Journal threads may reach a point under another number; the child then runs to its end.
        assert!(!is_whole || points::read_report(&output).contains_key(name), "{point}: {output}");
        runtime().block_on(ReportedRequests::check(&scene, &output, &point));
        *tried.entry(name.clone()).or_default() += 1;
    }
    let sum: u32 = tried.values().sum();
    let line = format!("{sum} crashes at {} of {} points, seed {seed}\n", tried.len(), points.len());
    std::io::stderr().write_all(line.as_bytes()).unwrap();
    assert_eq!(tried.len(), points.len(), "each point once at least");
}

/// Starts the child in a fresh copy of the scene. Returns its output, and whether it ran to its end.
fn run_child(scene: &Scene, point: Option<&str>) -> (String, bool) {
    scene.reset();
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["child_process", "--exact", "--ignored", "--nocapture", "--test-threads=1"]);
    command.env("LEDGER_CRASH_FOLDER", scene.work()).env("RUST_BACKTRACE", "0").stderr(Stdio::null());
    command.envs(point.map(|point| ("LEDGER_CRASH_POINT", point)));
    let output = command.output().unwrap();
    (String::from_utf8(output.stdout).unwrap(), output.status.success())
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

fn seed() -> u64 {
    let seed = std::env::var("PROPTEST_RNG_SEED").ok().and_then(|seed| seed.parse().ok());
    seed.unwrap_or_else(|| u64::from(std::process::id()))
}

fn shuffled(seed: u64, name: &str, number: u32) -> u64 {
    let mut hash = seed ^ 0xcbf2_9ce4_8422_2325;
    for byte in name.bytes().chain(number.to_le_bytes()) {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    }
    hash
}
