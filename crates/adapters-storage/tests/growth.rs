//! Measurements that take long: run with `cargo test --release -p adapters-storage --test growth -- --ignored --nocapture`.
//! `TOLLGATE_GROWTH_RECORDS` is the number of records, 200,000 without it.
#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a measurement fails by panicking and prints")]

mod common;

use std::sync::Arc;
use std::time::Duration;

use adapters_storage::{
    Database, SeaOrmBudgetStore, SeaOrmEvidenceRepository, SeaOrmLedgerReports, SeaOrmUsageRepository,
};
use chrono::TimeDelta;
use common::*;
use domain::budget::{BudgetStore, FoldEntry, FoldRequest, LedgerMaintenance, UsageCharge};
use domain::evaluation::{AnswerOrigin, Group, LiveAnswers, ReportSettings, TalliedAnswer};
use domain::evidence::{Evidence, EvidenceFilter, EvidenceRepository, LabelMode, LabelSource, NewLabel};
use domain::ids::{DecisionId, PresetId, ProcessId, RequestId};
use domain::json::Json;
use domain::money::Price;
use domain::pricing::TokenPrices;
use domain::statistics::{LabelSelection, Probability, is_error_as_written};
use domain::testing::FixedClock;
use domain::usage::{
    AnswerEvidence, AnswerMethod, AttemptOutcome, AttemptRecord, PresetReference, UsageFilter, UsageGroup, UsageRecord,
    UsageRepository, UsageSource, UsageSumQuery,
};
use tokio::time::Instant;
use uuid::Uuid;

/// The days over which the records of a measurement are spread.
const DAYS: u64 = 365;

/// Returns a record of a request with one attempt; ids increase with time, `apart` milliseconds from one to the next.
fn typical(number: u64, keys: u64, apart: u64) -> UsageRecord {
    let elapsed = number * apart;
    let millis = 1_790_000_000_000 + elapsed;
    let uuid = |salt: u128| Uuid::from_u128((u128::from(millis) << 80) | (7 << 76) | (8 << 60) | salt);
    let random = u128::from(number.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let created_at = at(0) + TimeDelta::milliseconds(i64::try_from(elapsed).unwrap());
    let prices = TokenPrices { prompt: "0.000000042".parse().unwrap(), completion: Price::ZERO };
    let attempt = AttemptRecord {
        provider: "typesafe".into(),
        model: "typesafe/jev-1.14".parse().unwrap(),
        upstream_model: "jev-1.14.0".into(),
        outcome: AttemptOutcome::Completed,
        began: Duration::from_micros(137),
        latency: Duration::from_micros(5_120),
        output_tokens: 3,
        usage_source: UsageSource::Reported,
        prices,
        ..attempt(429)
    };
    let key = number % keys;
    UsageRecord {
        id: DecisionId::from_uuid(uuid(random >> 4)),
        request_id: RequestId::from_uuid(uuid(random >> 5)),
        workspace_id: workspace_id(u128::from(key % 100) << 64),
        api_key: key_id(key),
        requested_model: attempt.model.as_str().to_owned(),
        model: attempt.model.clone(),
        provider: attempt.provider.to_string(),
        prices: attempt.prices,
        client_address: Some([192, 0, 2, 7].into()),
        latency: Duration::from_micros(5_300),
        charged_at: created_at + TimeDelta::milliseconds(1),
        created_at,
        attempts: Arc::new([attempt]),
        ..usage(1, 1)
    }
}

/// Records that retention removes in a measurement.
const RETENTION_RECORDS: u64 = 12_800;

/// Runs a task while another one writes again and again; returns the longest time of such a write, too.
async fn beside_writers<T>(database: &Database, task: impl Future<Output = T>) -> (T, Duration) {
    let mut longest = Duration::ZERO;
    let writing = async {
        loop {
            let began = Instant::now();
            database.probe_write().await.unwrap();
            longest = longest.max(began.elapsed());
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    let done = tokio::select! {
        done = task => done,
        () = writing => unreachable!("the writer never ends"),
    };
    (done, longest)
}

/// Returns the evidence of an answer.
fn evidence(position: u32) -> AnswerEvidence {
    AnswerEvidence {
        position,
        question: "wants_a_refund".to_owned(),
        model: "typesafe/jev-1.14".parse().unwrap(),
        provider: "typesafe".into(),
        wire: "system-one".into(),
        method: AnswerMethod::Native,
        decision: Json::parse("true").unwrap(),
        probabilities: Some(Json::parse(r#"{"true":0.973}"#).unwrap()),
    }
}

fn preset_id() -> PresetId {
    PresetId::from_uuid(Uuid::from_u128(2))
}

/// The times of folds.
#[derive(Default)]
struct Folding {
    records: u64,
    whole: Duration,
    processor: Duration,
    longest: Duration,
}

/// Folds records with evidence of so many answers each, in batches.
async fn fold(store: &SeaOrmBudgetStore, records: u64, keys: u64, answers: u32) -> Folding {
    const BATCH: u64 = 512;
    let process = ProcessId::from_uuid(Uuid::from_u128(1));
    store.register(process).await.unwrap();
    let apart = DAYS * 86_400_000 / records;
    let (mut after, mut folding) = (0, Folding::default());
    let charge = |number| {
        let mut record = typical(number, keys, apart);
        let preset = PresetReference { id: preset_id(), version: 1 };
        record.preset = (answers > 0).then_some(preset);
        UsageCharge { evidence: (0..answers).map(evidence).collect(), ..UsageCharge::new(record) }
    };
    while after < records {
        let entries = (after..after + BATCH).map(|number| FoldEntry { charge: charge(number), allowances: Vec::new() });
        let request = FoldRequest { process, after, up_to: after + BATCH, entries: entries.collect() };
        let (began, used) = (Instant::now(), processor_time());
        store.fold(&request).await.unwrap();
        folding.longest = folding.longest.max(began.elapsed());
        folding.whole += began.elapsed();
        folding.processor += processor_time().saturating_sub(used);
        after += BATCH;
    }
    Folding { records: after, ..folding }
}

async fn measure(records: u64, keys: u64) {
    let folder = Folder::new();
    let clock = FixedClock::at(at(0));
    let database = open_by(&folder.settings(), Arc::new(clock.clone())).await;
    let (store, reports) = (SeaOrmBudgetStore::new(database.clone()), SeaOrmLedgerReports::new(database.clone()));
    let Folding { records, whole: folding, longest, .. } = fold(&store, records, keys, 0).await;
    let raw = folder.raw().await;
    let sizes: Vec<(String, i64)> =
        sea_orm::sqlx::query_as("SELECT name, SUM(pgsize) FROM dbstat WHERE name LIKE '%usage_records%' GROUP BY name")
            .fetch_all(&raw)
            .await
            .unwrap_or_default();
    raw.close().await;
    println!(
        "{records} records of {keys} keys: fold {:?} a record, at most {longest:?} a batch",
        folding / u32::try_from(records).unwrap()
    );
    for (name, bytes) in &sizes {
        println!("  {name}: {} bytes a record", bytes / i64::try_from(records).unwrap());
    }
    println!(
        "  in all {} bytes a record",
        sizes.iter().map(|(_, bytes)| bytes).sum::<i64>() / i64::try_from(records).unwrap()
    );
    let usage = SeaOrmUsageRepository::new(database.clone());
    for (what, api_key) in [("workspace", None), ("key", Some(key_id(0)))] {
        let filter = UsageFilter { api_key, ..UsageFilter::for_workspace(workspace_id(0)) };
        let began = Instant::now();
        let page = usage.list(&filter, 100).await.unwrap();
        let first = began.elapsed();
        let last = page.last().unwrap();
        let next = UsageFilter { after: Some((last.charged_at, last.id.clone())), ..filter };
        let began = Instant::now();
        usage.list(&next, 100).await.unwrap();
        println!("  list by {what}: {first:?}, the next page {:?}", began.elapsed());
    }
    let since = at(0).date_naive();
    for (what, workspaces) in [("all", None), ("one workspace", Some(vec![workspace_id(0)]))] {
        let groups = vec![UsageGroup::Day, UsageGroup::Model];
        let until = since + TimeDelta::days(i64::try_from(DAYS).unwrap() + 1);
        let began = Instant::now();
        let sums = usage
            .sum(&UsageSumQuery { groups, workspaces, since, until, ..UsageSumQuery::default() }, 10_000)
            .await
            .unwrap();
        println!("  sums of a year by day and model, {what}: {:?}, {} rows", began.elapsed(), sums.len());
    }
    let began = Instant::now();
    let audit = reports.audit().await.unwrap();
    println!("  audit: {:?}, {} records, {} counters", began.elapsed(), audit.records, audit.counters);
    assert_eq!(audit.discrepancies, []);
    clock.advance(Duration::from_hours(24 * (DAYS + 400)));
    let removing = async {
        let began = Instant::now();
        assert_eq!(reports.prune(Duration::ZERO, RETENTION_RECORDS).await.unwrap().removed, RETENTION_RECORDS);
        began.elapsed()
    };
    let (took, longest) = beside_writers(&database, removing).await;
    let each = took / u32::try_from(RETENTION_RECORDS).unwrap();
    println!("  retention: {each:?} a record; another writer waited at most {longest:?}");
}

#[expect(clippy::disallowed_methods, reason = "a measurement has no configuration")]
fn records() -> u64 {
    std::env::var("TOLLGATE_GROWTH_RECORDS").map_or(200_000, |records| records.parse().unwrap())
}

#[tokio::test]
#[ignore = "takes minutes"]
async fn evidence_slows_folds_little() {
    for (keys, answers) in [(1, 0), (1, 1), (1, 5), (5_000, 0), (5_000, 1), (5_000, 5)] {
        let folder = Folder::new();
        let database = open_by(&folder.settings(), Arc::new(FixedClock::at(at(0)))).await;
        let folding = fold(&SeaOrmBudgetStore::new(database), records(), keys, answers).await;
        let [whole, used] =
            [folding.whole, folding.processor].map(|time| time / u32::try_from(folding.records).unwrap());
        println!(
            "{keys} keys, evidence of {answers} answers: fold {whole:?} a record, {used:?} of processor time; at most \
             {:?} a batch",
            folding.longest
        );
    }
}

#[tokio::test]
#[ignore = "takes minutes"]
async fn records_take_little_space_and_time() {
    let records = records();
    measure(records, 1).await;
    measure(records, 5_000).await;
    measure(records, 100_000).await;
}

/// Returns an answer as the report of live evidence counts it.
fn tallied(row: Evidence) -> (Group, TalliedAnswer) {
    let Evidence { answer, preset, label, cost, latency, .. } = row;
    let score = answer.score();
    let AnswerEvidence { question, model, provider, wire, method, decision, .. } = answer;
    let (model, method) = (model.as_str().to_owned(), method.as_str().to_owned());
    let (provider, wire) = (provider.to_string(), wire.to_string());
    let origin = AnswerOrigin { model, provider, wire, method };
    let label = label.map(|label| (is_error_as_written(&decision, &label.value, 0), label.source));
    let latency_ms = latency.map(|latency| u64::try_from(latency.as_millis()).unwrap());
    (
        Group { preset_version: preset.version, question, origin },
        TalliedAnswer { score, label, missing: None, cost, latency_ms },
    )
}

/// Returns the processor time of this process.
fn processor_time() -> Duration {
    const TICKS_PER_SECOND: u64 = 100;
    let status = std::fs::read_to_string("/proc/self/stat").unwrap();
    let fields = status.rsplit(')').next().unwrap().split_whitespace().skip(11).take(2);
    Duration::from_millis(fields.map(|ticks| ticks.parse::<u64>().unwrap() * 1_000 / TICKS_PER_SECOND).sum())
}

/// Returns the resident memory of this process in MiB.
fn memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() / 1_024
}

/// Five rows of evidence a record: 200,000 records have a million. A tenth has labels.
#[tokio::test]
#[ignore = "takes minutes"]
async fn report_of_evidence_is_read_in_pages() {
    const PAGE: u64 = 1_000;
    let folder = Folder::new();
    let database = open_by(&folder.settings(), Arc::new(FixedClock::at(at(0)))).await;
    let Folding { records, .. } = fold(&SeaOrmBudgetStore::new(database.clone()), records(), 5_000, 5).await;
    let repository = SeaOrmEvidenceRepository::new(database);
    let mut filter = EvidenceFilter::of_preset(preset_id());
    // The first walk labels a tenth of the answers, the second one reads them for the report.
    for is_report in [false, true] {
        filter.after = None;
        let (mut answers, mut rows, mut longest, mut most) = (LiveAnswers::default(), 0, Duration::ZERO, 0);
        let (began, before) = (Instant::now(), memory());
        loop {
            let page_began = Instant::now();
            let page = repository.list(&filter, PAGE).await.unwrap();
            longest = longest.max(page_began.elapsed());
            let Some(last) = page.last() else { break };
            filter.after = Some(last.place());
            rows += page.len();
            if is_report {
                page.into_iter().map(tallied).for_each(|(group, answer)| answers.add(group, answer));
            } else {
                let value = Json::parse("false").unwrap();
                let label = |row: &Evidence| NewLabel {
                    id: row.id.clone(),
                    position: row.answer.position,
                    value: value.clone(),
                    source: LabelSource::Human,
                };
                let labels: Vec<NewLabel> = page.iter().step_by(10).map(label).collect();
                repository.label(&labels, LabelMode::Each, "system", None).await.unwrap();
            }
            most = most.max(memory());
        }
        assert_eq!(rows as u64, 5 * records);
        if is_report {
            let reading = began.elapsed();
            let (alpha, delta) = (Probability::new(0.05).unwrap(), Probability::new(0.1).unwrap());
            let (selection, computing) = (LabelSelection::Volunteered, Instant::now());
            let report = answers.report(&ReportSettings {
                selection,
                decisive_version: None,
                alpha,
                delta,
                tolerance: 0,
                seed: 1,
            });
            let labels: usize = report.groups.iter().map(|group| group.labelled.count()).sum();
            assert_eq!(labels, rows / 10);
            println!(
                "report of {rows} rows, {labels} labels: read in {reading:?}, at most {longest:?} a page, figures {:?}, \
                 {} MiB more",
                computing.elapsed(),
                most.saturating_sub(before)
            );
            assert!(most.saturating_sub(before) < 64, "the rows are held");
        }
    }
}
