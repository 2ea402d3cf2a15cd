//! The audit of the ledger.
//!
//! It reads the counters in one short transaction, and then the records of that time page by page, so that no
//! transaction lasts long. An account may differ because records were removed or replaced in the meantime, so it is
//! compared again in one transaction. Only differences found there are reported.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, BTreeSet, HashMap};

use chrono::{DateTime, Utc};
use domain::budget::{Account, Discrepancy, LedgerAudit, Payer, ResetInterval};
use domain::error::StoreError;
use domain::money::Usd;
use sea_orm::{ConnectionTrait, DbBackend, QueryResult, Value};

use super::counters::{counters_at, span_of, subject};
use super::records::{ChargedRecord, PayerColumns};
use crate::convert::{key_column, moment};
use crate::database::Database;
use crate::statements::{column, read};
use crate::usage::{COST_COLUMNS, StoredCosts, ids};

/// The number of records per transaction.
const PAGE: i64 = 2_000;

/// An account by its columns: scope and subject.
type AccountName = (String, String);
/// A counter of an account: interval and start of the period.
type CounterPeriod = (String, i64);

/// The amounts of a counter, actual or expected.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Sums {
    spent: i128,
    allotted: i128,
}

/// The counters of accounts.
#[derive(Default)]
struct AccountCounters(BTreeMap<AccountName, BTreeMap<CounterPeriod, Sums>>);

impl AccountCounters {
    fn at(&mut self, account: AccountName, span: CounterPeriod) -> &mut Sums {
        self.0.entry(account).or_default().entry(span).or_default()
    }

    fn of(&self, account: &AccountName) -> BTreeMap<CounterPeriod, Sums> {
        self.0.get(account).cloned().unwrap_or_default()
    }
}

/// The cost of records by account and day.
#[derive(Default)]
struct DailyCosts(HashMap<(Account, DateTime<Utc>), i128>);

impl DailyCosts {
    /// Adds a cost to the accounts of a payer on the day of a time, or to one of them.
    fn add(&mut self, payer: &Payer, at: DateTime<Utc>, pico: i128, wanted: Option<&AccountName>) {
        let day = ResetInterval::Daily.start_of(at);
        for account in payer.accounts() {
            if wanted.is_none_or(|wanted| name_of(&account) == *wanted) {
                *self.0.entry((account, day)).or_default() += pico;
            }
        }
    }

    fn add_to(self, book: &mut AccountCounters) {
        for ((account, day), pico) in self.0 {
            for counter in counters_at(account, day) {
                let (interval, start) = span_of(&counter);
                book.at(name_of(&account), (interval.to_owned(), start)).spent += pico;
            }
        }
    }
}

/// The cost of records by payer and day. Few payers have many records, so each payer is decoded once.
#[derive(Default)]
struct PayerSums(HashMap<(PayerColumns, i64), PayerDay>);

/// The cost of the records of a payer on a day, with a time of the day.
struct PayerDay {
    payer: Payer,
    at: DateTime<Utc>,
    pico: i128,
}

impl PayerSums {
    /// Adds the cost of a record; `id` is the column of its id, for errors.
    fn add(&mut self, columns: PayerColumns, charged_at: i64, pico: i128, id: &[u8]) -> Result<(), StoreError> {
        match self.0.entry((columns, charged_at.div_euclid(MILLIS_OF_DAY))) {
            Entry::Occupied(mut entry) => entry.get_mut().pico += pico,
            Entry::Vacant(entry) => {
                let payer = entry.key().0.decode(id)?;
                let at = moment(charged_at, "usage_records.charged_at", ids::display_id(id))?;
                entry.insert(PayerDay { payer, at, pico });
            }
        }
        Ok(())
    }

    fn into_daily_costs(self) -> DailyCosts {
        let mut daily_costs = DailyCosts::default();
        for PayerDay { payer, at, pico } in self.0.into_values() {
            daily_costs.add(&payer, at, pico, None);
        }
        daily_costs
    }
}

fn name_of(account: &Account) -> AccountName {
    (account.scope().as_str().to_owned(), subject(account))
}

/// A running audit.
pub(super) struct Audit<'a> {
    database: &'a Database,
    report: LedgerAudit,
}

impl<'a> Audit<'a> {
    pub(super) fn new(database: &'a Database) -> Self {
        Self { database, report: LedgerAudit::default() }
    }

    pub(super) async fn run(mut self) -> Result<LedgerAudit, StoreError> {
        let snapshot = self.database.report_snapshot().await?;
        let end = last_row(&snapshot).await?;
        let (found, mut expected) = self.read_counters(&snapshot, None).await?;
        drop(snapshot);
        let daily_costs = self.check_records(end).await?;
        daily_costs.add_to(&mut expected);
        let accounts: BTreeSet<AccountName> = found.0.keys().chain(expected.0.keys()).cloned().collect();
        for account in accounts {
            if found.of(&account) != expected.of(&account) {
                self.compare_again(&account).await?;
            }
        }
        Ok(self.report)
    }

    /// Reads the counters, and computes the expected ones without records; of one account, or of all.
    async fn read_counters(
        &mut self,
        connection: &impl ConnectionTrait,
        account: Option<&AccountName>,
    ) -> Result<(AccountCounters, AccountCounters), StoreError> {
        let (filter, values) = match account {
            Some((scope, subject)) => ("WHERE scope = ? AND subject = ?", vec![scope, subject]),
            None => ("", Vec::new()),
        };
        let values = || values.iter().map(|value| value.as_str().into()).collect();
        let (mut found, mut expected) = (AccountCounters::default(), AccountCounters::default());
        let counters = format!(
            "SELECT scope, subject, \"interval\", period_start, spent_pico, allotted_pico FROM spend_counters {filter}"
        );
        for row in read(connection, &counters, values()).await? {
            let (account, span, pico) = counter(&row)?;
            if span.0 == ARCHIVED {
                expected.at(account, (TOTAL.to_owned(), 0)).spent += pico;
            } else {
                *found.at(account, span) = Sums { spent: pico, allotted: i128::from(column::<i64>(&row, 5)?) };
                self.report.counters += 1;
            }
        }
        for (table, is_allowance) in [("allowances", true), ("adjustments", false)] {
            let amounts =
                format!("SELECT scope, subject, \"interval\", period_start, amount_pico FROM {table} {filter}");
            for row in read(connection, &amounts, values()).await? {
                let (account, span, pico) = counter(&row)?;
                let sums = expected.at(account, span);
                if is_allowance {
                    sums.allotted += pico;
                    self.report.allowances += 1;
                } else {
                    sums.spent += pico;
                }
            }
        }
        Ok((found, expected))
    }

    /// Reads the records in pages, each in its own transaction, and recomputes their costs. SQLite has an order in which
    /// records were added, so later ones are left out. PostgreSQL has none; where later ones count, their accounts are
    /// compared again.
    async fn check_records(&mut self, end: i64) -> Result<DailyCosts, StoreError> {
        let (mut sums, mut costs) = (PayerSums::default(), StoredCosts::default());
        let readers = self.database.report_readers()?;
        let is_ordered = readers.get_database_backend() == DbBackend::Sqlite;
        let (place, first) =
            if is_ordered { ("rowid", i64::MIN.into()) } else { ("id", Value::from(Vec::<u8>::new())) };
        let bound = if is_ordered { "AND rowid <= ?" } else { "" };
        let text = format!(
            "SELECT id, {place}, workspace_id, api_key, guardrails, charged_at, cost_pico, {COST_COLUMNS} \
             FROM usage_records WHERE {place} > ? {bound} ORDER BY {place} LIMIT ?"
        );
        let mut last: Value = first;
        loop {
            let end = is_ordered.then(|| Value::from(end));
            let values = [Some(last), end, Some(PAGE.into())].into_iter().flatten().collect();
            let rows = read(readers, &text, values).await?;
            let Some(row) = rows.last() else { break };
            last = if is_ordered { column::<i64>(row, 1)?.into() } else { column::<Vec<u8>>(row, 1)?.into() };
            for row in &rows {
                self.check(row, &mut sums, &mut costs);
            }
        }
        Ok(sums.into_daily_costs())
    }

    /// Adds the cost of a record to the sums of its payer, and recomputes it.
    fn check(&mut self, row: &QueryResult, sums: &mut PayerSums, costs: &mut StoredCosts) {
        self.report.records += 1;
        let found = Usd::from_pico(column(row, 6).unwrap_or_default());
        // Without its payer a record counts nowhere, so the counters would exceed the records.
        let mut check = || {
            let id: Vec<u8> = column(row, 0)?;
            ids::decision_id(&id)?;
            let payer = sums.add(PayerColumns::read(row, 2)?, column(row, 5)?, i128::from(found.pico()), &id);
            let cost = costs.read(row, 7, &id);
            payer.and(cost)
        };
        let id = || ChargedRecord::id_of(row);
        match check() {
            Ok(Some(expected)) if expected == found => {}
            Ok(Some(expected)) => self.name(format!("record {}", id()), expected, found),
            Ok(None) => {
                self.name(format!("record {}, whose cost exceeds the range of amounts", id()), Usd::ZERO, found);
            }
            Err(_) => self.name(format!("record {}, which cannot be read", id()), Usd::ZERO, found),
        }
    }

    /// Compares the counters of an account in one transaction.
    async fn compare_again(&mut self, account: &AccountName) -> Result<(), StoreError> {
        let snapshot = self.database.report_snapshot().await?;
        let (counters, allowances) = (self.report.counters, self.report.allowances);
        let (found, mut expected) = self.read_counters(&snapshot, Some(account)).await?;
        (self.report.counters, self.report.allowances) = (counters, allowances);
        let mut daily_costs = DailyCosts::default();
        for row in of_account(&snapshot, account).await? {
            if let Ok(record) = ChargedRecord::read(&row) {
                let millions = i128::from(column::<i64>(&row, 6)?);
                daily_costs.add(&record.payer, record.at, millions * MILLION + i128::from(record.pico), Some(account));
            }
        }
        daily_costs.add_to(&mut expected);
        let (found, expected) = (found.of(account), expected.of(account));
        for span in found.keys().chain(expected.keys()).collect::<BTreeSet<_>>() {
            let of = |sums: &BTreeMap<CounterPeriod, Sums>| sums.get(span).copied().unwrap_or_default();
            let (expected, found) = (of(&expected), of(&found));
            let counter = title(account, span);
            if expected.spent != found.spent {
                self.name(format!("{counter}: spent"), usd(expected.spent), usd(found.spent));
            }
            if expected.allotted != found.allotted {
                self.name(format!("{counter}: allotted"), usd(expected.allotted), usd(found.allotted));
            }
        }
        Ok(())
    }

    fn name(&mut self, what: String, expected: Usd, found: Usd) {
        self.report.discrepancies.push(Discrepancy { what, expected, found });
    }
}

/// The divisor that splits picodollars into two summable parts.
const MILLION: i128 = 1_000_000;
const MILLIS_OF_DAY: i64 = 86_400_000;
const TOTAL: &str = "total";
const ARCHIVED: &str = super::counters::ARCHIVED;

/// Returns the number of the newest record on SQLite; later records have higher numbers.
async fn last_row(connection: &impl ConnectionTrait) -> Result<i64, StoreError> {
    if connection.get_database_backend() != DbBackend::Sqlite {
        return Ok(0);
    }
    let rows = read(connection, "SELECT COALESCE(MAX(rowid), 0) FROM usage_records", Vec::new()).await?;
    rows.first().map_or(Ok(0), |row| column(row, 0))
}

/// Reads the name of a counter and its first amount.
fn counter(row: &QueryResult) -> Result<(AccountName, CounterPeriod, i128), StoreError> {
    let account = (column(row, 0)?, column(row, 1)?);
    Ok((account, (column(row, 2)?, column(row, 3)?), i128::from(column::<i64>(row, 4)?)))
}

/// Sums the records of an account; an unknown name has none.
async fn of_account(
    connection: &impl ConnectionTrait,
    (scope, subject): &AccountName,
) -> Result<Vec<QueryResult>, StoreError> {
    let key = subject.rsplit(':').next().and_then(|key| key.parse().ok());
    let (column, value) = match (scope.as_str(), key) {
        ("workspace", _) => match subject.parse() {
            Ok(id) => ("workspace_id", ids::workspace_column(id).into()),
            Err(_) => return Ok(Vec::new()),
        },
        ("key" | "guardrail", Some(key)) => ("api_key", key_column(key).into()),
        _ => return Ok(Vec::new()),
    };
    // The database sums possibly millions of records, in two parts so that no sum overflows.
    let text = format!(
        "SELECT ?, workspace_id, api_key, guardrails, CAST(SUM(cost_pico % {MILLION}) AS bigint), MIN(charged_at), \
         CAST(SUM(cost_pico / {MILLION}) AS bigint) FROM usage_records WHERE {column} = ? \
         GROUP BY workspace_id, api_key, guardrails, charged_at / {MILLIS_OF_DAY}"
    );
    // The column of the id, which a sum does not have.
    let no_id = Value::from(Vec::<u8>::new());
    read(connection, &text, vec![no_id, value]).await
}

fn usd(pico: i128) -> Usd {
    let end = if pico < 0 { i64::MIN } else { i64::MAX };
    Usd::from_pico(i64::try_from(pico).unwrap_or(end))
}

/// Formats a counter, for example `workspace 0199… daily 2026-11-21`.
fn title((scope, subject): &AccountName, (interval, start): &CounterPeriod) -> String {
    let name = format!("{scope} {subject} {interval}");
    match (ResetInterval::from_name(interval), DateTime::from_timestamp_millis(*start)) {
        (Some(_), Some(start)) => format!("{name} {}", start.date_naive()),
        _ => name,
    }
}
