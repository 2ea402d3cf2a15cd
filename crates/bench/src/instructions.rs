//! The instructions of an answer, counted by `valgrind --tool=callgrind`. Unlike times they repeat, whatever else runs.
//! Work in the kernel is not counted.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use clap::{Args, ValueEnum};
use tokio::process::Command;

use crate::gateway::Gateway;
use crate::http::{self, call_once};
use crate::load::{Requests, Target, drive};
use crate::process::Helper;
use crate::wires::{INBOUND, OUTBOUND};

/// The duration of the load before the count, for caches and connections.
const WARM_UP: Duration = Duration::from_secs(5);
/// The pause for work after the last answer: folds, log lines.
const AFTERWARDS: Duration = Duration::from_secs(1);
/// The fewest instructions of an answer for which a thread is listed.
const LISTED: u64 = 100;

/// The operation to count, and the load.
#[derive(Args)]
pub struct Options {
    /// The binary to measure, built with line tables and not stripped.
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
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Operation {
    /// Decisions of a key without limits.
    Decisions,
    /// The count of models.
    Count,
}

/// Counts and prints the instructions of an answer by thread.
pub async fn run(options: &Options) -> Result<()> {
    fs::create_dir_all(&options.folder)?;
    let prefix = options.folder.canonicalize()?.join("callgrind");
    let upstream = Helper::start(&["upstream"]).await?;
    let mut gateway = Gateway::install(&options.tollgate, upstream.address).await?;
    let out_file = format!("--callgrind-out-file={}", prefix.display());
    gateway.start_under(&["valgrind", "--tool=callgrind", "--separate-threads=yes", &out_file]).await?;
    let (pid, requests) = (gateway.pid()?, Requests::repeat(request(&gateway, options.operation)));
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
    report(&profiles(&prefix)?, answers)
}

fn request(gateway: &Gateway, operation: Operation) -> Vec<u8> {
    match operation {
        Operation::Decisions => {
            let body = INBOUND[0].body(OUTBOUND[0].model);
            http::request("POST", INBOUND[0].path, &gateway.inference_key, Some(body.as_bytes()))
        }
        Operation::Count => {
            http::request("GET", "/api/v1/models/count?output_modalities=all", &gateway.management_key, None)
        }
    }
}

async fn control(action: &str, pid: u32) -> Result<()> {
    let done = Command::new("callgrind_control").args([action, &pid.to_string()]).output().await?;
    ensure!(done.status.success(), "callgrind_control {action}: {}", String::from_utf8_lossy(&done.stderr));
    Ok(())
}

/// The profile of one thread.
struct Profile {
    path: PathBuf,
    instructions: u64,
}

/// Returns the profiles of the first dump: `PREFIX.1-THREAD`.
fn profiles(prefix: &Path) -> Result<Vec<Profile>> {
    let (folder, name) = (prefix.parent().context("no folder")?, prefix.file_name().context("no file name")?);
    let of_dump = format!("{}.1-", name.to_string_lossy());
    let mut found = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(&of_dump)) {
            let instructions = total(&fs::read_to_string(&path)?);
            found.push(Profile { path, instructions });
        }
    }
    found.sort_by(|one, other| one.path.cmp(&other.path));
    Ok(found)
}

/// Returns the sum that a profile states; zero for a thread that did nothing.
fn total(profile: &str) -> u64 {
    let lines = profile.lines().filter_map(|line| line.strip_prefix("totals: ").or(line.strip_prefix("summary: ")));
    lines.filter_map(|rest| rest.trim().parse().ok()).next_back().unwrap_or(0)
}

fn report(profiles: &[Profile], answers: u64) -> Result<()> {
    let mut output = std::io::stdout();
    writeln!(output, "{answers} answers; instructions of one, by thread:")?;
    let each = |instructions: u64| instructions / answers.max(1);
    for Profile { path, instructions } in profiles.iter().filter(|profile| each(profile.instructions) >= LISTED) {
        writeln!(output, "{:>10}  {}", each(*instructions), path.display())?;
    }
    let all = profiles.iter().map(|profile| profile.instructions).sum();
    Ok(writeln!(output, "{:>10}  all threads", each(all))?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn total_is_the_last_sum_of_a_profile() {
        assert_eq!(total("version: 1\nfn=(1) main\n1 20\n\ntotals: 4711\n"), 4711);
        assert_eq!(total("summary: 12\n1 20\n"), 12);
        assert_eq!(total("version: 1\n"), 0);
    }

    #[test]
    fn profiles_are_those_of_the_dump() {
        let folder = tempfile::tempdir().unwrap();
        for (name, sum) in [("callgrind", 1), ("callgrind.1-02", 20), ("callgrind.1-01", 10), ("callgrind.2-01", 5)] {
            fs::write(folder.path().join(name), format!("totals: {sum}\n")).unwrap();
        }
        let found = profiles(&folder.path().join("callgrind")).unwrap();
        assert_eq!(found.iter().map(|profile| profile.instructions).collect::<Vec<_>>(), [10, 20]);
    }
}
