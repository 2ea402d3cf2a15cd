//! The state of the stores at the end of a run.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use test_servers::FaultyPostgres;
use tokio::task::block_in_place;
use tokio::time::{Instant, sleep};
use tollgate_tests::files_below;

use crate::cluster::Cluster;
use crate::driver::PROMOTION;
use crate::history::{Content, Counter, Excess, Record, Snapshot};
use crate::money::parse_usd;

/// The age with which leftovers are due for the sweeper.
const SWEPT_AGE: Duration = Duration::from_hours(2);
const SWEEP_TIMEOUT: Duration = Duration::from_secs(20);
const POLL: Duration = Duration::from_millis(200);

/// Compares each committed state of a counter with its limit. A deferred trigger runs at the commit, so it does not see
/// the states within a transaction.
const TRIGGER: &str = r#"
CREATE SCHEMA chaos;
CREATE TABLE chaos.limits (scope text, subject text, limit_pico bigint, PRIMARY KEY (scope, subject));
CREATE TABLE chaos.excesses (scope text, subject text, spent_pico bigint, allotted_pico bigint, at bigint);
CREATE FUNCTION chaos.compare() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO chaos.excesses
  SELECT c.scope, c.subject, c.spent_pico, c.allotted_pico, extract(epoch FROM clock_timestamp()) * 1000
  FROM public.spend_counters AS c JOIN chaos.limits AS l ON l.scope = c.scope AND l.subject = c.subject
  WHERE c.scope = NEW.scope AND c.subject = NEW.subject AND c."interval" = 'total'
    AND c.spent_pico + c.allotted_pico > l.limit_pico;
  RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER chaos_limits AFTER INSERT OR UPDATE ON public.spend_counters
  DEFERRABLE INITIALLY DEFERRED FOR EACH ROW WHEN (NEW."interval" = 'total') EXECUTE FUNCTION chaos.compare();
"#;

/// Returns what is taken of each account with a total limit, by scope and subject: the amount of each process by its id,
/// and the spent amount without one.
pub fn taken_of_accounts(database: &FaultyPostgres) -> Result<BTreeMap<(String, String), BTreeMap<String, i64>>> {
    let sql = "SELECT scope, subject, '', spent_pico FROM spend_counters WHERE \"interval\" = 'total' \
               UNION ALL SELECT scope, subject, process_id, amount_pico FROM allowances WHERE \"interval\" = 'total'";
    let mut taken: BTreeMap<_, BTreeMap<_, _>> = BTreeMap::new();
    for row in database.query(sql)? {
        let [scope, subject, holder, pico] = &row[..] else { continue };
        let account = (scope.clone(), subject.clone());
        taken.entry(account).or_default().insert(holder.clone(), pico.parse()?);
    }
    Ok(taken)
}

/// Installs the trigger.
pub fn install_trigger(cluster: &Cluster) -> Result<()> {
    query(cluster, TRIGGER).map(drop)
}

/// The silence after which a process runs no more, in milliseconds: a running one is seen every five seconds.
const SILENT_MS: u32 = 30_000;

/// Waits until every process that died with its journal counts as lost, so that its allowances are accounted for. A
/// silence of an hour is needed for that, so the last sign of a silent process is made an hour older, once: another change
/// would be a sign of life.
pub async fn wait_for_lost_processes(cluster: &Cluster, running: usize, longest: Duration) -> Result<()> {
    let end = Instant::now() + longest;
    loop {
        let older = format!(
            "UPDATE budget_processes SET seen_at = seen_at - 3700000 WHERE state = 'live' \
             AND extract(epoch FROM clock_timestamp()) * 1000 - seen_at BETWEEN {SILENT_MS} AND 3600000"
        );
        query(cluster, &older)?;
        let rows = query(cluster, "SELECT COUNT(*) FROM budget_processes WHERE state = 'live'")?;
        let live: usize = cell(&rows, 0, 0)?.parse()?;
        if live <= running {
            return Ok(());
        }
        if Instant::now() >= end {
            let sql = "SELECT id, clock_timestamp(), to_timestamp(seen_at / 1000.0), has_store_journal FROM budget_processes \
                       WHERE state = 'live'";
            bail!(
                "{live} processes are live, {running} run, after {} s: {:?}",
                longest.as_secs(),
                query(cluster, sql)?
            );
        }
        sleep(POLL).await;
    }
}

/// Runs the sweeper until no orphan is left or its time is over. All files are aged before: the sweeper's clock is that of
/// the database, which a run does not shift. Rows are not: interrupted promotions must be released at any age. So many
/// replicas serve meanwhile.
pub async fn sweep(cluster: &mut Cluster, serving: usize) -> Result<()> {
    for path in files_below(&cluster.stores.documents())? {
        let file = std::fs::File::options().write(true).open(&path)?;
        file.set_modified(file.metadata()?.modified()? - SWEPT_AGE)?;
    }
    for replica in cluster.replicas.iter_mut().take(serving) {
        replica.start().await?;
    }
    let end = Instant::now() + SWEEP_TIMEOUT;
    while Instant::now() < end {
        let documents = documents(cluster)?;
        let is_known = |path: &std::path::PathBuf| documents.contains_key(&name(path));
        let has_orphans = !files_below(&cluster.stores.documents())?.iter().all(is_known);
        if !has_orphans && documents.values().all(|state| state == "ready") {
            break;
        }
        sleep(POLL).await;
    }
    for replica in &mut cluster.replicas {
        if let Some(server) = replica.server.take() {
            server.stop().await?;
        }
    }
    Ok(())
}

/// Reads the stores. No replica runs.
pub async fn read(cluster: &Cluster, files: &[Vec<u8>], provider_calls: BTreeMap<usize, i64>) -> Result<Snapshot> {
    let audit_error = cluster.command(&["doctor", "--audit"]).await.err().map(|error| format!("{error:#}"));
    let counters = "SELECT scope, subject, spent_pico, allotted_pico FROM spend_counters WHERE \"interval\" = 'total'";
    let mut snapshot = Snapshot {
        records: records(cluster).await?,
        lone_evidence: lone_evidence(cluster)?,
        allotted_pico: cell(&query(cluster, "SELECT COALESCE(SUM(amount_pico), 0) FROM allowances")?, 0, 0)?.parse()?,
        provider_calls,
        documents: documents(cluster)?,
        claims: claims(cluster)?,
        wrong_usage: wrong_usage(cluster)?,
        audit_error,
        ..Snapshot::default()
    };
    for row in query(cluster, counters)? {
        let [scope, subject, spent, allotted] = &row[..] else { continue };
        let counter = Counter { spent_pico: spent.parse()?, allotted_pico: allotted.parse()? };
        snapshot.counters.insert((scope.clone(), subject.clone()), counter);
    }
    let excesses = "SELECT scope, subject, spent_pico, allotted_pico, at FROM chaos.excesses ORDER BY at";
    for row in query(cluster, excesses)? {
        let [scope, subject, spent, allotted, at] = &row[..] else { continue };
        let counter = Counter { spent_pico: spent.parse()?, allotted_pico: allotted.parse()? };
        let (scope, subject, at) = (scope.clone(), subject.clone(), at.parse()?);
        snapshot.excesses.push(Excess { scope, subject, counter, at });
    }
    for path in files_below(&cluster.stores.documents())? {
        let bytes = std::fs::read(&path)?;
        let content = files.iter().position(|file| *file == bytes).map_or(Content::Other, Content::File);
        snapshot.blobs.insert(name(&path), content);
    }
    for replica in &cluster.replicas {
        let output = replica.output();
        snapshot.panics.extend(output.lines().filter(|line| line.contains("panicked")).map(str::to_owned));
    }
    Ok(snapshot)
}

async fn records(cluster: &Cluster) -> Result<Vec<Record>> {
    let table = cluster.command(&["usage", "list", "--csv"]).await?;
    let mut lines = table.lines();
    let columns: Vec<&str> = lines.next().context("a table without a head")?.split(',').collect();
    let column =
        |name| columns.iter().position(|column| *column == name).with_context(|| format!("no {name}: {columns:?}"));
    let (id, outcome, cost) = (column("id")?, column("outcome")?, column("cost_usd")?);
    let (times, evidence) = (charge_times(cluster)?, evidence(cluster)?);
    let record = |line: &str| {
        // These columns come before every column that may contain a comma.
        let cells: Vec<&str> = line.split(',').collect();
        let cell = |index: usize| cells.get(index).copied().context("a line without all columns");
        let cost_pico = parse_usd(cell(cost)?).with_context(|| format!("no cost in {line}"))?;
        let id = cell(id)?.to_owned();
        let (charged_at, evidence) = (times.get(&id).copied(), evidence.get(&id).cloned());
        Ok(Record { id, outcome: cell(outcome)?.to_owned(), cost_pico, charged_at, evidence })
    };
    lines.map(record).collect()
}

/// Returns the times that the charges count in, by the id of the answer.
fn charge_times(cluster: &Cluster) -> Result<BTreeMap<String, i64>> {
    let rows = query(cluster, "SELECT 'gen-dec-' || encode(id, 'hex'), charged_at FROM usage_records")?;
    rows.iter().enumerate().map(|(row, _)| Ok((cell(&rows, row, 0)?, cell(&rows, row, 1)?.parse()?))).collect()
}

/// Returns the questions with evidence of the records with a preset, in their order, by the id of the answer.
fn evidence(cluster: &Cluster) -> Result<BTreeMap<String, Vec<String>>> {
    let sql = "SELECT 'gen-dec-' || encode(r.id, 'hex'), COALESCE(string_agg(g.question, ' ' ORDER BY g.question), '') \
               FROM usage_records AS r LEFT JOIN evidence AS e ON e.record_id = r.id \
               LEFT JOIN evidence_groups AS g ON g.id = e.group_id \
               WHERE r.preset_id IS NOT NULL GROUP BY r.id";
    let rows = query(cluster, sql)?;
    let questions = |row| anyhow::Ok(cell(&rows, row, 1)?.split_whitespace().map(str::to_owned).collect());
    rows.iter().enumerate().map(|(row, _)| Ok((cell(&rows, row, 0)?, questions(row)?))).collect()
}

/// Returns the evidence without the record of a request with a preset.
fn lone_evidence(cluster: &Cluster) -> Result<Vec<String>> {
    let sql = "SELECT 'gen-dec-' || encode(e.record_id, 'hex'), e.position FROM evidence AS e \
               LEFT JOIN usage_records AS r ON r.id = e.record_id WHERE r.preset_id IS NULL";
    Ok(query(cluster, sql)?.iter().map(|row| row.join(" | ")).collect())
}

/// Returns what the connections to the database are doing.
pub fn activity(cluster: &Cluster) -> Result<Vec<String>> {
    let sql = "SELECT a.client_port, a.state, a.wait_event, now() - a.xact_start, \
               EXISTS (SELECT FROM pg_locks AS l WHERE l.pid = a.pid AND l.locktype = 'advisory' AND l.granted), \
               left(regexp_replace(a.query, '\\s+', ' ', 'g'), 100) \
               FROM pg_stat_activity AS a WHERE a.application_name = 'tollgate' AND a.xact_start IS NOT NULL";
    Ok(query(cluster, sql)?.iter().map(|row| row.join(" | ")).collect())
}

/// Returns the time of the database, in milliseconds since 1970.
pub fn time(cluster: &Cluster) -> Result<i64> {
    let now = query(cluster, "SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint")?;
    Ok(cell(&now, 0, 0)?.parse()?)
}

fn documents(cluster: &Cluster) -> Result<BTreeMap<String, String>> {
    let rows = query(cluster, "SELECT id, state FROM documents")?;
    rows.iter().enumerate().map(|(row, _)| Ok((cell(&rows, row, 0)?, cell(&rows, row, 1)?))).collect()
}

/// Returns the ids of documents by the numbers in their idempotency keys.
fn claims(cluster: &Cluster) -> Result<BTreeMap<u64, String>> {
    let sql = format!(
        "SELECT replace(idempotency_key, '{PROMOTION}', ''), document_id FROM idempotency_claims \
         WHERE idempotency_key LIKE '{PROMOTION}%'"
    );
    let rows = query(cluster, &sql)?;
    rows.iter().enumerate().map(|(row, _)| Ok((cell(&rows, row, 0)?.parse()?, cell(&rows, row, 1)?))).collect()
}

/// Returns the workspaces whose used storage is not the sum of their documents.
fn wrong_usage(cluster: &Cluster) -> Result<Vec<String>> {
    let sql = "SELECT w.id, w.storage_used_bytes, w.document_count, COALESCE(SUM(d.charged_bytes), 0), COUNT(d.id) \
               FROM workspaces AS w LEFT JOIN documents AS d ON d.workspace_id = w.id GROUP BY w.id \
               HAVING w.storage_used_bytes <> COALESCE(SUM(d.charged_bytes), 0) OR w.document_count <> COUNT(d.id)";
    Ok(query(cluster, sql)?.iter().map(|row| row.join(" | ")).collect())
}

fn query(cluster: &Cluster, sql: &str) -> Result<Vec<Vec<String>>> {
    block_in_place(|| cluster.stores.database.query(sql))
}

fn cell(rows: &[Vec<String>], row: usize, column: usize) -> Result<String> {
    rows.get(row).and_then(|row| row.get(column)).cloned().context("the query returned too little")
}

fn name(path: &std::path::Path) -> String {
    path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trigger_records_committed_states_above_limits_only() {
        let database = FaultyPostgres::start().unwrap_or_else(|error| panic!("{error:#}"));
        let run = |sql: &str| database.query(sql).unwrap_or_else(|error| panic!("{error:#}"));
        run("CREATE TABLE spend_counters (scope text, subject text, \"interval\" text, period_start bigint, \
             spent_pico bigint, allotted_pico bigint)");
        run(TRIGGER);
        run("INSERT INTO chaos.limits VALUES ('key', 'k', 100)");
        run(
            "INSERT INTO spend_counters VALUES ('key', 'k', 'total', 0, 60, 40), ('key', 'other', 'total', 0, 900, 0), \
             ('key', 'k', 'daily', 7, 900, 0)",
        );
        // A fold adds to the spent amount before it takes from the allotted one.
        run("BEGIN; UPDATE spend_counters SET spent_pico = 70 WHERE subject = 'k' AND \"interval\" = 'total'; \
             UPDATE spend_counters SET allotted_pico = 30 WHERE subject = 'k' AND \"interval\" = 'total'; COMMIT");
        let excesses = "SELECT subject, spent_pico, allotted_pico FROM chaos.excesses";
        assert_eq!(run(excesses), Vec::<Vec<String>>::new());
        run("UPDATE spend_counters SET allotted_pico = 31 WHERE subject = 'k' AND \"interval\" = 'total'");
        run("UPDATE spend_counters SET allotted_pico = 30 WHERE subject = 'k' AND \"interval\" = 'total'");
        assert_eq!(run(excesses), [["k", "70", "31"]]);
    }
}
