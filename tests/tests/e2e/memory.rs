//! The memory of a server, measured from outside.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use tokio::task::JoinSet;
use tollgate_tests::{Call, Key};

use crate::gateway::TestGateway;

/// The memory of a process, from `/proc`.
struct ProcessMemory(PathBuf);

impl ProcessMemory {
    fn of(gateway: &TestGateway) -> Result<Self> {
        Ok(Self(PathBuf::from(format!("/proc/{}", gateway.server.id().context("it has ended")?))))
    }

    fn status(&self, name: &str) -> Result<usize> {
        let status = fs::read_to_string(self.0.join("status"))?;
        let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        let kibibytes = line.context("no such line")?.trim().trim_end_matches(" kB");
        Ok(kibibytes.parse::<usize>()? << 10)
    }

    /// Returns the memory in use, and begins a new peak.
    fn begin(&self) -> Result<usize> {
        fs::write(self.0.join("clear_refs"), "5")?;
        self.status("VmRSS")
    }

    fn peak(&self) -> Result<usize> {
        self.status("VmHWM")
    }
}

/// Returns the repeated text, of at most `bytes` bytes.
pub fn fill(part: &str, bytes: usize) -> String {
    part.repeat(bytes / part.len())
}

/// Creates a guardrail with these rules and a key under it.
pub async fn key_under(gateway: &TestGateway, rules: serde_json::Value) -> Result<Key> {
    let create = Call::post("/api/v1/guardrails").key(&gateway.management.secret).json(rules.to_string());
    let reply = gateway.server.send(&create).await?;
    ensure!(reply.status == 201, "{}", reply.text());
    let id = reply.json()?["data"]["id"].as_str().context("no id")?.to_owned();
    let key = gateway.instance.inference_key().await?;
    gateway.instance.json(&["guardrail", "assign", &id, &key.hash]).await?;
    Ok(key)
}

/// Sends requests at the same time and returns their statuses and the peak of memory above idle.
pub async fn measure(gateway: &TestGateway, calls: Vec<Call>) -> Result<(Vec<u16>, usize)> {
    let memory = ProcessMemory::of(gateway)?;
    let idle = memory.begin()?;
    let (mut running, mut statuses) = (JoinSet::new(), Vec::new());
    for call in calls {
        let address = gateway.server.address();
        running.spawn(async move { call.send_within(address, Duration::from_mins(5)).await });
    }
    while let Some(ended) = running.join_next().await {
        statuses.push(ended??.status);
    }
    statuses.sort_unstable();
    Ok((statuses, memory.peak()?.saturating_sub(idle)))
}
