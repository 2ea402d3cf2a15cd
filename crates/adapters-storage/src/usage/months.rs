//! The months of the usage table on PostgreSQL: one partition each, and a default one for all other records.
//!
//! A record's id begins with its time in milliseconds, so a month is a range of ids. Ids in another form, late records
//! and those of a month without a partition go to the default partition: a missing month fails no request.

use std::collections::BTreeSet;

use chrono::{DateTime, Datelike, Months, NaiveDate, NaiveTime, TimeDelta, Utc};
use domain::error::StoreError;
use domain::retention::RetentionPolicy;
use sea_orm::{ConnectionTrait, DbBackend, Statement};

use crate::connections::Transaction;
use crate::database::Database;
use crate::errors::store_error;

const TABLE: &str = "usage_records";
const DEFAULT_PARTITION: &str = "usage_records_other";
/// The months after the current one whose partitions exist.
const AHEAD: u32 = 3;
/// The size of the default partition above which no partition is created: PostgreSQL reads it all, and other writers
/// wait.
const MAX_DEFAULT_BYTES: u64 = 1 << 30;
/// The size above which a partition is not searched for records. One whose records were all removed is smaller once
/// PostgreSQL has vacuumed it.
const MAX_EMPTY_BYTES: u64 = 64 << 20;
/// The longest wait for the lock of the table. Later readers of the table wait behind it.
const LOCK_TIMEOUT: &str = "200";

/// The partitions of the usage table.
pub struct UsageMonths {
    database: Database,
}

/// The months whose partitions were created and dropped, as `2026-11`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ChangedMonths {
    /// The created ones.
    pub created: Vec<String>,
    /// The dropped ones.
    pub dropped: Vec<String>,
}

impl UsageMonths {
    /// Creates the partitions of an open database. SQLite has none.
    pub fn new(database: Database) -> Self {
        Self { database }
    }

    /// Creates the partitions of this and the next months, and drops those of past months that retention emptied.
    /// Several processes may do so at once.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] if the database is unavailable, the table is in use for too long, or the role may not
    /// create tables. What is missing can be done later.
    pub async fn maintain(&self) -> Result<ChangedMonths, StoreError> {
        self.database.read_clock().await?;
        let now = self.database.now();
        let mut changed = self.create(now, now + Months::new(AHEAD)).await?;
        // The shortest retention, because a journal may be folded late.
        let kept = TimeDelta::days(i64::try_from(RetentionPolicy::MIN_USAGE_DAYS).unwrap_or(i64::MAX));
        for month in self.existing().await?.into_iter().filter(|month| month.end() < now - kept) {
            if self.drop_if_empty(month).await? {
                changed.dropped.push(month.to_string());
            }
        }
        Ok(changed)
    }

    /// Creates the missing partitions of all months from one time to another.
    pub(crate) async fn create(&self, from: DateTime<Utc>, to: DateTime<Utc>) -> Result<ChangedMonths, StoreError> {
        let mut changed = ChangedMonths::default();
        if self.database.sqlite().is_some() {
            return Ok(changed);
        }
        let existing = self.existing().await?;
        let months = std::iter::successors(Some(Month::of(from)), |month| Some(month.next()));
        let missing = months.take_while(|month| month.start() <= to).filter(|month| !existing.contains(month));
        for month in missing {
            if self.create_month(month).await? {
                changed.created.push(month.to_string());
            }
        }
        Ok(changed)
    }

    async fn existing(&self) -> Result<BTreeSet<Month>, StoreError> {
        if self.database.sqlite().is_some() {
            return Ok(BTreeSet::new());
        }
        let partitions = "SELECT relname::text FROM pg_inherits JOIN pg_class ON pg_class.oid = inhrelid \
                          WHERE inhparent = 'usage_records'::regclass";
        let rows = self.database.readers()?.query_all_raw(statement(partitions)).await.map_err(store_error)?;
        let mut months = BTreeSet::new();
        for row in rows {
            let name: String = row.try_get_by_index(0).map_err(store_error)?;
            months.extend(Month::from_partition(&name));
        }
        Ok(months)
    }

    /// Returns false if another process was faster, or the default partition has records of the month, which PostgreSQL
    /// does not move, or is too large.
    async fn create_month(&self, month: Month) -> Result<bool, StoreError> {
        let transaction = self.begin().await?;
        let (name, from, to) = (month.partition(), month.first_id(), month.next().first_id());
        let is_taken = format!(
            "SELECT to_regclass('{name}') IS NOT NULL OR pg_relation_size('{DEFAULT_PARTITION}') > {MAX_DEFAULT_BYTES} \
             OR EXISTS (SELECT 1 FROM {DEFAULT_PARTITION} WHERE id >= '\\x{from}'::bytea AND id < '\\x{to}'::bytea)"
        );
        if is_true(&transaction, &is_taken).await? {
            return Ok(false);
        }
        // An attached table needs a weaker lock of its parent than a table that is created as a partition.
        let create = format!(
            "CREATE TABLE {name} (LIKE {TABLE} INCLUDING ALL); \
             ALTER TABLE {TABLE} ATTACH PARTITION {name} FOR VALUES FROM ('\\x{from}') TO ('\\x{to}')"
        );
        transaction.execute_unprepared(&create).await.map_err(store_error)?;
        transaction.commit().await?;
        Ok(true)
    }

    /// Returns false if the month has records, or another process was faster.
    async fn drop_if_empty(&self, month: Month) -> Result<bool, StoreError> {
        let name = month.partition();
        let is_empty = format!(
            "SELECT CASE WHEN pg_relation_size('{name}') > {MAX_EMPTY_BYTES} THEN false \
             ELSE NOT EXISTS (SELECT 1 FROM {name}) END"
        );
        // Read before the lock of writers is taken: usually there are records.
        if !is_true(self.database.readers()?, &is_empty).await? {
            return Ok(false);
        }
        let transaction = self.begin().await?;
        let exists = format!("SELECT to_regclass('{name}') IS NOT NULL");
        if !is_true(&transaction, &exists).await? || !is_true(&transaction, &is_empty).await? {
            return Ok(false);
        }
        transaction.execute_unprepared(&format!("DROP TABLE {name}")).await.map_err(store_error)?;
        transaction.commit().await?;
        Ok(true)
    }

    /// Begins a transaction that excludes all writers of records, and waits briefly for readers.
    async fn begin(&self) -> Result<Transaction, StoreError> {
        let transaction = self.database.begin().await?;
        let limit = format!("SET LOCAL lock_timeout = {LOCK_TIMEOUT}");
        transaction.execute_unprepared(&limit).await.map_err(store_error)?;
        Ok(transaction)
    }
}

async fn is_true(connection: &impl ConnectionTrait, query: &str) -> Result<bool, StoreError> {
    let row = connection.query_one_raw(statement(query)).await.map_err(store_error)?;
    row.map_or(Ok(false), |row| row.try_get_by_index(0)).map_err(store_error)
}

fn statement(text: &str) -> Statement {
    Statement::from_string(DbBackend::Postgres, text)
}

/// A calendar month in UTC, by its first day.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Month(NaiveDate);

impl Month {
    fn of(time: DateTime<Utc>) -> Self {
        let day = time.date_naive();
        Self(day.with_day(1).unwrap_or(day))
    }

    /// Returns the month of a partition; `None` for other tables.
    fn from_partition(name: &str) -> Option<Self> {
        let (year, month) = name.strip_prefix(TABLE)?.strip_prefix('_')?.split_once('_')?;
        let month = Self(NaiveDate::from_ymd_opt(year.parse().ok()?, month.parse().ok()?, 1)?);
        (month.partition() == name).then_some(month)
    }

    fn partition(self) -> String {
        format!("{TABLE}_{:04}_{:02}", self.0.year(), self.0.month())
    }

    fn next(self) -> Self {
        Self(self.0 + Months::new(1))
    }

    fn start(self) -> DateTime<Utc> {
        self.0.and_time(NaiveTime::MIN).and_utc()
    }

    fn end(self) -> DateTime<Utc> {
        self.next().start()
    }

    /// Returns the digits of the time with which the ids of the month begin at the earliest.
    fn first_id(self) -> String {
        format!("{:012x}", self.start().timestamp_millis())
    }
}

impl std::fmt::Display for Month {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{}", self.0.format("%Y-%m"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_of_a_month_are_in_its_range() {
        let month = Month::of("2026-12-31T23:59:59.999Z".parse().unwrap());
        assert_eq!((month.to_string(), month.partition()), ("2026-12".to_owned(), "usage_records_2026_12".to_owned()));
        let ids = |time: &str| {
            let time: DateTime<Utc> = time.parse().unwrap();
            format!("{:012x}70008000000000000001", time.timestamp_millis())
        };
        assert!(ids("2026-12-01T00:00:00Z") > month.first_id());
        assert!(ids("2026-11-30T23:59:59.999Z") < month.first_id());
        assert!(ids("2026-12-31T23:59:59.999Z") < month.next().first_id());
        assert_eq!(month.next().partition(), "usage_records_2027_01");
    }

    #[test]
    fn partitions_are_found_by_their_whole_name() {
        let month = Month::from_partition("usage_records_2026_03").unwrap();
        assert_eq!(
            (month.start(), month.end()),
            ("2026-03-01T00:00:00Z".parse().unwrap(), "2026-04-01T00:00:00Z".parse().unwrap())
        );
        for name in [
            "usage_records_other",
            "usage_records_2026_3",
            "usage_records_2026_13",
            "usage_records_2026_03_x",
            "other_2026_03",
        ] {
            assert_eq!(Month::from_partition(name), None, "{name}");
        }
    }
}
