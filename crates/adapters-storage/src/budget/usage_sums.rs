//! Sums of usage a day: kept by the fold, audited, and removed by retention.
//!
//! Beside the sums of each key stand those of all keys of a workspace ([`ids::ALL_KEYS`]): reading a year of many keys
//! from the former would take seconds.

use std::borrow::Cow;
use std::collections::BTreeMap;

use chrono::{DateTime, TimeDelta, Utc};
use domain::budget::{Discrepancy, ResetInterval};
use domain::error::StoreError;
use domain::money::Usd;
use domain::retention::RetentionPolicy;
use domain::text::hex;
use domain::usage::UsageRecord;
use sea_orm::{ConnectionTrait, QueryResult, Value};

use crate::connections::Transaction;
use crate::convert::{key_column, millis};
use crate::database::Database;
use crate::statements::{column, pieces, places, read, run};
use crate::usage::ids;

const DAY: TimeDelta = TimeDelta::days(1);
const DAY_MILLIS: i64 = 86_400_000;

/// The day, workspace, key, model and provider of a sum.
type SumName<'a> = (i64, Vec<u8>, Vec<u8>, Cow<'a, str>, Cow<'a, str>);

/// The changes of the sums of a fold.
#[derive(Default)]
pub(super) struct SumChanges<'a>(BTreeMap<SumName<'a>, [i64; 4]>);

/// The columns of a record for [`SumChanges::remove`].
pub(super) const SUM_COLUMNS: &str = "model, provider, input_tokens, output_tokens";

impl<'a> SumChanges<'a> {
    /// Adds a record.
    pub(super) fn add(&mut self, record: &'a UsageRecord) {
        let name = (
            millis(ResetInterval::Daily.start_of(record.charged_at)),
            ids::workspace_column(record.workspace_id),
            key_column(record.api_key),
            Cow::Borrowed(record.model.as_str()),
            Cow::Borrowed(record.provider.as_str()),
        );
        let tokens = |tokens: u64| i64::try_from(tokens).unwrap_or(i64::MAX);
        self.change(name, [1, tokens(record.input_tokens), tokens(record.output_tokens), record.cost.pico()]);
    }

    /// Removes a record that the fold replaces. `row` has its workspace, key, cost and time of charge in the given
    /// columns, and [`SUM_COLUMNS`] from `first` on.
    pub(super) fn remove(
        &mut self,
        row: &QueryResult,
        [workspace, key, cost, charged]: [usize; 4],
        first: usize,
    ) -> Result<(), StoreError> {
        let charged_at: i64 = column(row, charged)?;
        let (model, provider): (String, String) = (column(row, first)?, column(row, first + 1)?);
        let (input, output, pico): (i64, i64, i64) =
            (column(row, first + 2)?, column(row, first + 3)?, column(row, cost)?);
        let day = charged_at - charged_at.rem_euclid(DAY_MILLIS);
        let name = (day, column(row, workspace)?, column(row, key)?, Cow::Owned(model), Cow::Owned(provider));
        self.change(name, [-1, -input, -output, -pico]);
        Ok(())
    }

    fn change(&mut self, name: SumName<'a>, amounts: [i64; 4]) {
        add_amounts(self.0.entry(name).or_default(), amounts);
    }

    /// Writes the changes, in the order of the primary key.
    pub(super) async fn write(&self, transaction: &Transaction) -> Result<(), StoreError> {
        let of_keys = self.0.iter().map(|((day, workspace, key, model, provider), amounts)| {
            ((*day, workspace.as_slice(), key.as_slice(), model.as_ref(), provider.as_ref()), *amounts)
        });
        let mut sums: BTreeMap<_, [i64; 4]> = BTreeMap::new();
        for ((day, workspace, _, model, provider), amounts) in of_keys.clone() {
            add_amounts(sums.entry((day, workspace, ids::ALL_KEYS, model, provider)).or_default(), amounts);
        }
        sums.extend(of_keys);
        let rows: Vec<_> = sums.into_iter().collect();
        for piece in pieces(&rows) {
            let text = format!(
                "INSERT INTO usage_sums (day, workspace_id, api_key, model, provider, requests, input_tokens, \
                 output_tokens, cost_pico) VALUES {} ON CONFLICT (day, workspace_id, api_key, model, provider) \
                 DO UPDATE SET requests = usage_sums.requests + excluded.requests, \
                 input_tokens = usage_sums.input_tokens + excluded.input_tokens, \
                 output_tokens = usage_sums.output_tokens + excluded.output_tokens, \
                 cost_pico = usage_sums.cost_pico + excluded.cost_pico",
                places(piece.len(), 9)
            );
            let mut values: Vec<Value> = Vec::with_capacity(piece.len() * 9);
            for ((day, workspace, key, model, provider), amounts) in piece.iter().copied() {
                values.push(day.into());
                values.extend([workspace, key].map(Value::from));
                values.extend([model, provider].map(Value::from));
                values.extend(amounts.map(Value::from));
            }
            run(transaction, &text, values).await?;
        }
        Ok(())
    }
}

fn add_amounts(sum: &mut [i64; 4], amounts: [i64; 4]) {
    for (sum, amount) in sum.iter_mut().zip(amounts) {
        *sum = sum.saturating_add(amount);
    }
}

/// Implements the port.
pub(super) async fn prune(database: &Database, before: DateTime<Utc>, limit: u64) -> Result<u64, StoreError> {
    let Some(last) = before.checked_sub_signed(DAY) else { return Ok(0) };
    let (last, limit) = (millis(last), i64::try_from(limit).unwrap_or(i64::MAX));
    // Read before taking the write lock: usually there is nothing to remove.
    let text = "SELECT day, workspace_id, api_key, model, provider FROM usage_sums WHERE day <= ? AND api_key <> ? \
                ORDER BY day LIMIT ?";
    let of_all_keys = || Value::from(ids::ALL_KEYS);
    let old = read(database.report_readers()?, text, vec![last.into(), of_all_keys(), limit.into()]).await?;
    if old.is_empty() {
        return Ok(0);
    }
    let transaction = database.begin().await?;
    let mut removed = 0;
    for piece in pieces(&old) {
        let of_row = "(day = ? AND workspace_id = ? AND api_key = ? AND model = ? AND provider = ?)";
        let text = format!("DELETE FROM usage_sums WHERE {}", vec![of_row; piece.len()].join(" OR "));
        let mut values: Vec<Value> = Vec::with_capacity(piece.len() * 5);
        for row in piece {
            values.push(column::<i64>(row, 0)?.into());
            values.extend([column::<Vec<u8>>(row, 1)?, column(row, 2)?].map(Value::from));
            values.extend([column::<String>(row, 3)?, column(row, 4)?].map(Value::from));
        }
        removed += run(&transaction, &text, values).await?;
    }
    if removed < limit.unsigned_abs() {
        let text = "DELETE FROM usage_sums WHERE day <= ? AND api_key = ?";
        run(&transaction, text, vec![last.into(), of_all_keys()]).await?;
    }
    transaction.commit().await?;
    Ok(removed)
}

/// Requests and cost of a day by workspace, key, model and provider.
type DaySums = BTreeMap<[String; 4], (i64, i128)>;

/// Compares the sums of every day that has records with these records, each day at one point in time. On days of the
/// shortest retention both are equal; older records may have been removed, so that there the sums may be higher.
pub(super) async fn audit(database: &Database) -> Result<(u64, Vec<Discrepancy>), StoreError> {
    let (mut compared, mut discrepancies) = (0, Vec::new());
    let days = "SELECT DISTINCT charged_at - charged_at % 86400000 AS day FROM usage_records \
                WHERE charged_at >= 0 AND charged_at < ? ORDER BY day";
    let days = read(database.report_readers()?, days, vec![MAX_TIME.into()]).await?;
    let oldest = read(database.report_readers()?, "SELECT MIN(day) FROM usage_sums", Vec::new()).await?;
    let complete_days = TimeDelta::days(i64::try_from(RetentionPolicy::MIN_USAGE_DAYS).unwrap_or(0) - 1);
    let complete_since = millis(database.now() - complete_days);
    // Retention may have removed the sums of earlier days, and some of this one.
    let oldest = oldest.first().map_or(Ok(None), |row| column::<Option<i64>>(row, 0))?.unwrap_or(i64::MAX);
    for row in &days {
        let day: i64 = column(row, 0)?;
        if day <= oldest && day < complete_since {
            continue;
        }
        let snapshot = database.report_snapshot().await?;
        let mut expected = read_day(&snapshot, RECORDS_OF_DAY, day).await?;
        let sums = read_day(&snapshot, SUMS_OF_DAY, day).await?;
        drop(snapshot);
        add_sums_of_all_keys(&mut expected);
        for (name, (requests, pico)) in &expected {
            let (sum_requests, sum_pico) = sums.get(name).copied().unwrap_or_default();
            let is_equal = (sum_requests, sum_pico) == (*requests, *pico);
            let may_be_higher = day < complete_since && sum_requests >= *requests && sum_pico >= *pico;
            if !is_equal && !may_be_higher {
                discrepancies.push(discrepancy(day, name, *requests, sum_requests, [*pico, sum_pico]));
            }
        }
        if day >= complete_since {
            for (name, (requests, pico)) in
                sums.iter().filter(|(name, sum)| !expected.contains_key(*name) && sum.0 != 0)
            {
                discrepancies.push(discrepancy(day, name, 0, *requests, [0, *pico]));
            }
        }
        let of_keys = sums.keys().filter(|[_, key, ..]| !key.is_empty()).count();
        compared += u64::try_from(of_keys).unwrap_or(u64::MAX);
    }
    Ok((compared, discrepancies))
}

fn add_sums_of_all_keys(sums: &mut DaySums) {
    for ([workspace, _, model, provider], (requests, pico)) in sums.clone() {
        let of_all_keys = sums.entry([workspace, String::new(), model, provider]).or_default();
        *of_all_keys = (of_all_keys.0 + requests, of_all_keys.1 + pico);
    }
}

/// Later times, and those of a wrong type, which SQLite sorts behind numbers, cannot be read.
const MAX_TIME: i64 = 253_402_300_800_000;
const RECORDS_OF_DAY: &str = "SELECT workspace_id, api_key, model, provider, COUNT(*), \
     CAST(SUM(cost_pico / 1000000) AS bigint), CAST(SUM(cost_pico % 1000000) AS bigint) FROM usage_records \
     WHERE charged_at >= ? AND charged_at < ? GROUP BY workspace_id, api_key, model, provider";
const SUMS_OF_DAY: &str = "SELECT workspace_id, api_key, model, provider, requests, cost_pico / 1000000, \
     cost_pico % 1000000 FROM usage_sums WHERE day >= ? AND day < ?";

async fn read_day(connection: &impl ConnectionTrait, text: &str, day: i64) -> Result<DaySums, StoreError> {
    let rows = read(connection, text, vec![day.into(), (day + DAY_MILLIS).into()]).await?;
    let mut sums = DaySums::new();
    for row in &rows {
        // Records that cannot be read are reported one by one.
        let id = |place| column::<Vec<u8>>(row, place).map(|id| hex(&id));
        let (Ok(workspace), Ok(key)) = (id(0), id(1)) else { continue };
        let name = [workspace, key, column(row, 2)?, column(row, 3)?];
        let pico = i128::from(column::<i64>(row, 5)?) * 1_000_000 + i128::from(column::<i64>(row, 6)?);
        sums.insert(name, (column(row, 4)?, pico));
    }
    Ok(sums)
}

fn discrepancy(day: i64, name: &[String; 4], requests: i64, found: i64, pico: [i128; 2]) -> Discrepancy {
    let date = DateTime::from_timestamp_millis(day).map(|day| day.date_naive().to_string()).unwrap_or_default();
    let [workspace, key, model, provider] = name;
    let key = if key.is_empty() { "(all)" } else { key };
    let usd = |pico: i128| Usd::from_pico(i64::try_from(pico).unwrap_or(i64::MAX));
    Discrepancy {
        what: format!(
            "usage sum {date} workspace {workspace} key {key} {model} {provider}: {requests} requests in records, {found} \
             in the sum"
        ),
        expected: usd(pico[0]),
        found: usd(pico[1]),
    }
}
