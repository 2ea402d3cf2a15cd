//! One server on a SQLite file whose disk is full for a while under load, and which is killed once it has recovered.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::Value;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};
use tollgate_tests::{Behaviour, Instance, Upstream, decisions, promotion};

use crate::cluster::{json, run as run_command};
use crate::disk::SmallDisk;
use crate::random::Random;
use crate::report;
use crate::subjects::text;

/// Room for the records of all clients at their highest rate, 2.4 MB/s: the disk is full only when it is filled.
const DISK_MEBIBYTES: u32 = 256;
const CLIENTS: usize = 6;
const PAUSE: Duration = Duration::from_millis(50);
const CONTAINER: &str = "sess_disk";
/// The longest recovery.
const RECOVERY_TIMEOUT: Duration = Duration::from_secs(20);
/// The time under load before the fault, and between the recovery and the kill.
const AROUND: Duration = Duration::from_secs(1);
const ANSWER: &str =
    r#"{"model":"judge-1.0","answers":{"refund":{"type":"noul","noul":0.97}},"usage":{"input_tokens":100}}"#;
const BODY: &str = r#"{"model":"acme/alone","questions":{"refund":{"type":"noul","instructions":"A refund?"}},"state":"s","trace":{"padding":"PADDING"}}"#;

/// The secrets of the keys, and the file to promote.
#[derive(Clone)]
struct Subjects {
    address: SocketAddr,
    unlimited: String,
    limited: String,
    file: String,
}

/// The ids of acknowledged calls, and the number of those that were 503.
#[derive(Default)]
struct Acknowledged {
    answers: Vec<String>,
    documents: Vec<String>,
    unavailable: usize,
    violations: BTreeSet<String>,
}

/// Runs the scenario in both modes of `storage.synchronous`; returns true if every property holds.
pub async fn run(seed: u64, fault: Duration) -> Result<bool> {
    let mut holds = true;
    for mode in ["normal", "full"] {
        let violations = run_mode(mode, seed, fault).await.with_context(|| format!("fill-sqlite-disk, {mode}"))?;
        for violation in &violations {
            report::line(&format!("VIOLATION fill-sqlite-disk, synchronous {mode}: {violation}"));
        }
        holds &= violations.is_empty();
    }
    Ok(holds)
}

async fn run_mode(mode: &str, seed: u64, fault: Duration) -> Result<BTreeSet<String>> {
    let upstream = Upstream::start(Behaviour::Late(Duration::from_millis(5), ANSWER.to_owned())).await?;
    let mut instance = Instance::on_file(&configuration(mode, &upstream.base_url()))?;
    let Some(disk) = SmallDisk::mount(&instance.path().join("small"), DISK_MEBIBYTES)? else {
        report::line("fill-sqlite-disk: skipped, this user may not mount a disk");
        return Ok(BTreeSet::new());
    };
    instance.set_env("ALPHA_API_KEY", "alpha-secret-0001");
    instance.set_env("TOLLGATE__STORAGE__URL", format!("sqlite://{}", disk.path().join("t.db").display()));
    instance.set_env("TOLLGATE__JOURNAL__PATH", instance.path().join("journal").display().to_string());
    let server = instance.serve().await?;
    let subjects = create_subjects(&instance, server.address()).await?;
    let acknowledged = Arc::new(Mutex::new(Acknowledged::default()));
    let stopped = Arc::new(AtomicBool::new(false));
    let mut clients = JoinSet::new();
    for number in 0..CLIENTS {
        let random = Random::new(seed, 2_000 + number as u64);
        clients.spawn(send(subjects.clone(), random, Arc::clone(&acknowledged), Arc::clone(&stopped)));
    }
    sleep(AROUND).await;
    disk.fill()?;
    sleep(fault).await;
    disk.free()?;
    let freed = Instant::now();
    let recovered = wait_for_recovery(&subjects).await;
    let recovery_ms = freed.elapsed().as_millis();
    sleep(AROUND).await;
    server.kill().await?;
    stopped.store(true, Ordering::Relaxed);
    while clients.join_next().await.is_some() {}
    let Acknowledged { answers, documents, unavailable, mut violations } =
        std::mem::take(&mut *acknowledged.lock().unwrap_or_else(PoisonError::into_inner));
    if let Err(error) = recovered {
        violations.insert(format!("recovery: {error:#}"));
    }
    let server = instance.serve().await?;
    let after_kill = Subjects { address: server.address(), ..subjects };
    if let Err(error) = wait_for_recovery(&after_kill).await {
        violations.insert(format!("recovery after the kill: {error:#}"));
    }
    violations.extend(lost(&instance, &answers, &documents).await?);
    if let Err(error) = run_command(&instance, &["doctor", "--audit"]).await {
        violations.insert(format!("counter: {error:#}"));
    }
    server.stop().await?;
    report::line(&format!(
        "fill-sqlite-disk for {} s, synchronous {mode}: {} answers, {} documents, {unavailable} unavailable, recovered \
         after {recovery_ms} ms, {} violations",
        fault.as_secs(),
        answers.len(),
        documents.len(),
        violations.len()
    ));
    Ok(violations)
}

async fn create_subjects(instance: &Instance, address: SocketAddr) -> Result<Subjects> {
    let unlimited = json(instance, &["key", "create", "--name", "unlimited"]).await?;
    let limited = json(instance, &["key", "create", "--name", "limited", "--limit-usd", "1000"]).await?;
    std::fs::write(instance.path().join("upload"), vec![7; 5_000])?;
    let file = json(instance, &["container", "put", CONTAINER, "f", "upload"]).await?;
    Ok(Subjects {
        address,
        unlimited: text(&unlimited, "key")?,
        limited: text(&limited, "key")?,
        file: text(&file, "id")?,
    })
}

/// Sends requests of both keys and promotions until it is stopped or the server is gone.
async fn send(
    subjects: Subjects,
    mut random: Random,
    acknowledged: Arc<Mutex<Acknowledged>>,
    stopped: Arc<AtomicBool>,
) {
    let body = BODY.replace("PADDING", &"x".repeat(20_000));
    while !stopped.load(Ordering::Relaxed) {
        let kind = random.below(4);
        let call = match kind {
            0 => promotion(&subjects.unlimited, CONTAINER, &subjects.file),
            1 => decisions(&subjects.unlimited, &body),
            _ => decisions(&subjects.limited, &body),
        };
        let reply = call.send(subjects.address).await;
        {
            let mut all = acknowledged.lock().unwrap_or_else(PoisonError::into_inner);
            match reply.as_ref().map(|reply| (reply.status, reply.json())) {
                Ok((200, Ok(answer))) => match (text(&answer, "id"), kind) {
                    (Ok(id), 0) => all.documents.push(id),
                    (Ok(id), _) => all.answers.push(id),
                    (Err(error), _) => drop(all.violations.insert(format!("status: {error:#}"))),
                },
                Ok((503, _)) => all.unavailable += 1,
                Ok((status, _)) => drop(all.violations.insert(format!("status: {status}"))),
                // The killed server.
                Err(_) => {}
            }
        }
        sleep(PAUSE).await;
    }
}

/// Waits until both keys and a promotion are answered.
async fn wait_for_recovery(subjects: &Subjects) -> Result<()> {
    let body = BODY.replace("PADDING", "");
    let end = Instant::now() + RECOVERY_TIMEOUT;
    for call in [
        decisions(&subjects.unlimited, &body),
        decisions(&subjects.limited, &body),
        promotion(&subjects.unlimited, CONTAINER, &subjects.file),
    ] {
        loop {
            let reply = call.send(subjects.address).await?;
            if reply.status == 200 {
                break;
            }
            anyhow::ensure!(Instant::now() < end, "{} {}", reply.status, reply.text());
            sleep(Duration::from_millis(100)).await;
        }
    }
    Ok(())
}

/// Returns the acknowledged answers without a record, and the acknowledged documents without a row or bytes.
async fn lost(instance: &Instance, answers: &[String], documents: &[String]) -> Result<Vec<String>> {
    // The command waits until the server has folded its journal.
    let records = run_command(instance, &["usage", "list", "--csv"]).await?;
    let records: BTreeSet<&str> = records.lines().flat_map(|line| line.split(',')).collect();
    let listed: Value = json(instance, &["document", "list"]).await?;
    let listed = listed.to_string();
    let bytes: BTreeSet<String> = instance
        .document_blobs()?
        .iter()
        .filter_map(|path| path.file_name().map(|name| name.to_string_lossy().into_owned()))
        .collect();
    let answer = |id: &&String| !records.contains(id.as_str());
    let document = |id: &&String| !listed.contains(id.as_str()) || !bytes.contains(id.as_str());
    let of_answers = answers.iter().filter(answer).map(|id| format!("set: no record of the answer {id}"));
    let of_documents = documents.iter().filter(document).map(|id| format!("documents: {id} is lost"));
    Ok(of_answers.chain(of_documents).collect())
}

fn configuration(mode: &str, provider: &str) -> String {
    format!(
        r#"
[storage]
synchronous = "{mode}"
busy_timeout_ms = 1000
[[providers]]
slug = "alpha"
name = "Alpha AI"
wire = "system-one"
base_url = "{provider}"
api_key = "env:ALPHA_API_KEY"
[[endpoints]]
model = "acme/alone"
provider = "alpha"
upstream_model = "judge-1"
input_usd_per_million_tokens = "0.042"
output_usd_per_million_tokens = "0"
"#
    )
}
