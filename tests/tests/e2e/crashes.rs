//! `kill -9` under load: every received response is in the ledger exactly once, and no hold remains.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::{Context, Result, anyhow, ensure};
use tokio::task::JoinSet;
use tokio::time::sleep;
use tollgate_tests::{Behaviour, Instance, Key, SecondHand, Server, Upstream, decisions};

use crate::gateway::{body, providers_toml};
use crate::limits::{CHEAP, ensure_audit_passes};

const TRIALS: u64 = 100;
const CALLERS: usize = 16;

#[tokio::test]
async fn hundred_crashes_under_load_record_each_response_once() -> Result<()> {
    let alpha = Upstream::start(Behaviour::Late(Duration::from_millis(2), CHEAP.to_owned())).await?;
    let settings = "[limits]\nrequest_timeout_ms = 4000\n";
    let toml = format!("{settings}{}", providers_toml(&alpha.base_url(), &alpha.base_url(), 3_500));
    let mut instance = Instance::new(&toml)?;
    instance.set_env("ALPHA_API_KEY", "alpha-secret-0001");
    // The limit makes every request take a hold before it is sent.
    let key = instance.key(&["--name", "limited", "--limit-usd", "1000"]).await?;
    let answered = Arc::new(Mutex::new(BTreeSet::new()));
    for trial in 0..TRIALS {
        let server = instance.serve().await?;
        let before = count(&answered)?;
        let mut callers = call_until_failure(&server, (&key, body("acme/alone")), &answered);
        // A busy machine starts slowly; after the first response, each crash comes at another point of the work.
        for _ in 0..1_000 {
            if count(&answered)? > before {
                break;
            }
            sleep(Duration::from_millis(5)).await;
        }
        sleep(Duration::from_millis(trial * 7 % 60)).await;
        server.kill().await?;
        while callers.join_next().await.is_some() {}
        ensure!(count(&answered)? > before, "no response before crash {trial}");
    }
    let answered = answered.lock().map_err(|_| anyhow!("a caller panicked"))?.clone();

    // Holds of dead processes end without intervention.
    let server = instance.serve().await?;
    let hand = SecondHand::of(&instance).await?;
    ensure!(hand.number("SELECT COUNT(*) FROM allowances").await? == 0, "dead processes still hold money");
    let held = hand.number("SELECT COALESCE(SUM(allotted_pico), 0) FROM spend_counters").await?;
    ensure!(held == 0, "{held} picodollars are held without a request");
    hand.close().await?;

    ensure_recorded_once(&instance, &answered).await?;
    ensure_audit_passes(&instance).await?;
    server.stop().await
}

#[tokio::test]
async fn journal_of_another_installation_is_left_alone() -> Result<()> {
    let alpha = Upstream::start(Behaviour::json(CHEAP)).await?;
    let mut instance = Instance::on_file(&providers_toml(&alpha.base_url(), &alpha.base_url(), 3_500))?;
    instance.set_env("ALPHA_API_KEY", "alpha-secret-0001");
    let key = instance.inference_key().await?;
    let server = instance.serve().await?;
    server.decide(&key.secret, body("acme/alone")).await?.ok()?;
    server.kill().await?;
    let journal = instance.path().join("data/tollgate-journal");
    let before = tollgate_tests::files_below(&journal)?;

    let mut other = Instance::on_file("")?;
    other.set_env("TOLLGATE__JOURNAL__PATH", journal.display().to_string());
    other.inference_key().await?;
    let listed = other.run(&["key", "list"]).await?;
    let said = String::from_utf8(listed.stderr)?;
    ensure!(listed.status.success() && said.lines().count() == 1, "{said}");
    ensure!(said.contains("WARN") && said.contains("journals of another database are left alone"), "{said}");
    let server = other.serve().await?;
    sleep(Duration::from_millis(2_500)).await;
    let log = server.output();
    server.stop().await?;
    ensure!(log.matches("journals of another database").count() == 1 && !log.contains("ERROR"), "{log}");
    let after = tollgate_tests::files_below(&journal)?;
    ensure!(before.iter().all(|file| after.contains(file)) && !journal.join("quarantine").exists(), "{after:?}");

    let folded = instance.run(&["usage", "sum", "--by", "key"]).await?;
    let said = String::from_utf8(folded.stderr)?;
    ensure!(folded.status.success() && said.contains("journal of a dead process recovered"), "{said}");
    ensure_audit_passes(&instance).await?;
    Ok(())
}

/// The ids of received responses.
pub type Answered = Arc<Mutex<BTreeSet<String>>>;

/// Sends requests by several callers until one fails, and collects the ids of the responses.
pub fn call_until_failure(server: &Server, (key, text): (&Key, String), answered: &Answered) -> JoinSet<()> {
    let mut callers = JoinSet::new();
    for _ in 0..CALLERS {
        let (call, address) = (decisions(&key.secret, &text), server.address());
        let answered = Arc::clone(answered);
        callers.spawn(async move {
            while let Ok(reply) = call.send(address).await {
                let Ok(answer) = reply.ok() else { return };
                if let (Some(id), Ok(mut answered)) = (answer["id"].as_str(), answered.lock()) {
                    answered.insert(id.to_owned());
                }
            }
        });
    }
    callers
}

/// Checks that each response has one record, and that it is completed.
pub async fn ensure_recorded_once(instance: &Instance, answered: &BTreeSet<String>) -> Result<()> {
    let listed = instance.run(&["usage", "list", "--csv"]).await?;
    let table = String::from_utf8(listed.stdout)?;
    let mut lines = table.lines();
    let columns: Vec<&str> = lines.next().context("a table without a head")?.split(',').collect();
    let column =
        |name| columns.iter().position(|column| *column == name).with_context(|| format!("no {name}: {columns:?}"));
    let (id, outcome) = (column("id")?, column("outcome")?);
    let mut recorded: BTreeMap<&str, (usize, &str)> = BTreeMap::new();
    for line in lines {
        let cells: Vec<&str> = line.split(',').collect();
        // Counted from the end: the providers of several calls are one quoted cell with commas.
        let outcome = cells.len() + outcome - columns.len();
        recorded.entry(cells[id]).or_insert((0, cells[outcome])).0 += 1;
    }
    ensure!(recorded.values().all(|(times, _)| *times == 1), "a record is duplicated");
    let lost = answered.iter().filter(|id| recorded.get(id.as_str()).is_none_or(|(_, how)| *how != "completed"));
    let lost: Vec<_> = lost.map(|id| (id, recorded.get(id.as_str()))).collect();
    ensure!(lost.is_empty(), "of {} answers these are not on record as completed: {lost:?}", answered.len());
    Ok(())
}

pub fn count(answered: &Mutex<BTreeSet<String>>) -> Result<usize> {
    Ok(answered.lock().map_err(|_| anyhow!("a caller panicked"))?.len())
}
