//! The copy of a whole store into another one, on SQLite or PostgreSQL.
//!
//! Rows are copied table by table in the order of their primary keys. Each batch is written in one transaction with the
//! position after it, so that an interrupted copy continues where it ended. The row of `store_copies` marks the target
//! as unfinished until the copy is verified.

mod marker;
mod row;
mod table;
mod verification;

use std::collections::HashSet;

use chrono::{DateTime, Months, TimeDelta};
use domain::audit::AuditDraft;
use domain::error::StoreError;
use sea_orm::{ConnectionTrait, EntityTrait, QueryOrder, QuerySelect};

use self::marker::{Marker, Position};
use self::row::{Row, decode_key, encode_key};
use self::table::{REPLACEABLE, Table, tables};
use self::verification::{Fingerprint, compare};
use crate::audit::{RowChanges, append};
use crate::budget::count_unended;
use crate::database::Database;
use crate::entities::usage_records;
use crate::errors::store_error;
use crate::schema;
use crate::usage::UsageMonths;

pub use self::marker::{CopyError, UnfinishedCopy};
pub use self::verification::TableContent;

/// More than the time from the id of a record to its charge.
const LONGEST_REQUEST: TimeDelta = TimeDelta::days(1);
/// The most months for which a copy creates partitions; older records are in none.
const MOST_MONTHS: u32 = 120;

/// A copy of all rows of one store into another, empty one.
pub struct StoreCopy {
    source: Database,
    target: Database,
    max_batch_rows: usize,
}

/// The progress of a copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CopyProgress {
    /// The current table.
    pub table: &'static str,
    /// The number of its copied rows.
    pub rows: u64,
    /// The number of its rows.
    pub of: u64,
}

impl StoreCopy {
    /// Creates a copy from one database to another.
    pub fn new(source: Database, target: Database) -> Self {
        Self { source, target, max_batch_rows: usize::MAX }
    }

    /// Limits the rows of a batch.
    #[must_use]
    pub fn with_batch_rows(self, rows: usize) -> Self {
        Self { max_batch_rows: rows.max(1), ..self }
    }

    /// Copies all rows that are not yet copied. An interrupted copy continues after its last batch. Creates the schema
    /// of a target without one.
    ///
    /// # Errors
    /// The source is in use or was changed, the target holds an instance or another copy, or a store failed.
    pub async fn run(&self, mut report: impl FnMut(CopyProgress)) -> Result<(), CopyError> {
        self.check_schemas().await?;
        let source = self.source.report_snapshot().await?;
        let fingerprint = self.check_source(&source).await?;
        let mut position = self.begin(&fingerprint).await?;
        self.create_months(&source).await?;
        let current = position.table.clone();
        // After the last table there is no current one: all tables are skipped.
        for table in tables().into_iter().skip_while(|table| current.as_deref() != Some(table.name)) {
            if position.table.as_deref() != Some(table.name) {
                position = self.advance(&position, Position::start_of(&table)).await?;
            }
            let of = fingerprint.rows_of(table.name);
            position = self
                .copy_table(&source, &table, position, |rows| {
                    report(CopyProgress { table: table.name, rows, of });
                })
                .await?;
        }
        self.advance(&position, Position::END).await?;
        Ok(())
    }

    /// Compares all rows of both stores.
    ///
    /// # Errors
    /// The rows of a table differ, the source was changed, or a store failed.
    pub async fn verify(&self, mut report: impl FnMut(&TableContent)) -> Result<Vec<TableContent>, CopyError> {
        let (source, target) = (self.source.report_snapshot().await?, self.target.report_snapshot().await?);
        let marker = marker::load(&target).await?.ok_or(CopyError::Concurrent)?;
        if Fingerprint::read(&source).await?.digest != marker.fingerprint {
            return Err(CopyError::SourceChanged);
        }
        let mut contents = Vec::new();
        for table in tables() {
            let content = compare(&table, &source, &target).await?;
            report(&content);
            contents.push(content);
        }
        Ok(contents)
    }

    /// Marks the target as complete, with an audit entry in the same transaction.
    ///
    /// # Errors
    /// Rows are missing, or the store failed.
    pub async fn finish(&self, draft: &AuditDraft) -> Result<(), CopyError> {
        let transaction = self.target.begin().await?;
        let marker = marker::load(&transaction).await?;
        if marker.is_none_or(|marker| marker.position != Position::END) {
            return Err(CopyError::Concurrent);
        }
        marker::remove(&transaction).await?;
        append(&transaction, draft, self.target.now(), &RowChanges::default()).await?;
        Ok(transaction.commit().await?)
    }

    /// Checks that both stores have the same migrations, all of them known.
    async fn check_schemas(&self) -> Result<(), CopyError> {
        if schema::applied(self.target.schema().await?).await?.is_empty() {
            self.target.migrate().await?;
        }
        let source = schema::applied(self.source.schema().await?).await?;
        let target = schema::applied(self.target.schema().await?).await?;
        let known: HashSet<String> = self.source.migration_status().await?.into_iter().map(|step| step.name).collect();
        let first = |mut names: Vec<&String>| {
            names.sort();
            names.first().map(|name| (*name).clone())
        };
        if let Some(name) = first(source.union(&target).filter(|name| !known.contains(*name)).collect()) {
            return Err(CopyError::NewerSchema(name));
        }
        for (side, applied) in [("source", &source), ("target", &target)] {
            if let Some(name) = first(known.difference(applied).collect()) {
                return Err(CopyError::Schema { side, name });
            }
        }
        Ok(())
    }

    /// Checks that the source is complete and unused; returns its state.
    async fn check_source(&self, source: &impl ConnectionTrait) -> Result<Fingerprint, CopyError> {
        if marker::load(source).await?.is_some() {
            return Err(CopyError::UnfinishedSource);
        }
        match count_unended(source).await? {
            0 => Fingerprint::read(source).await,
            live => Err(CopyError::LiveProcesses(live)),
        }
    }

    /// Begins a copy into an empty target, or continues the one that it is.
    async fn begin(&self, fingerprint: &Fingerprint) -> Result<Position, CopyError> {
        let source = self.source.id().await?;
        let transaction = self.target.begin().await?;
        if let Some(marker) = marker::load(&transaction).await? {
            if marker.copy.source != source {
                return Err(CopyError::OtherSource(marker.copy.source));
            }
            let is_same = marker.fingerprint == fingerprint.digest;
            return if is_same { Ok(marker.position) } else { Err(CopyError::SourceChanged) };
        }
        if self.target.id().await? == source {
            return Err(CopyError::SameStore);
        }
        clear_empty(&transaction).await?;
        let position = tables().first().map_or(Position::END, Position::start_of);
        let copy = UnfinishedCopy { source, started_at: self.target.now() };
        let marker = Marker { copy, fingerprint: fingerprint.digest.clone(), position: position.clone() };
        marker::insert(&transaction, &marker).await?;
        transaction.commit().await?;
        Ok(position)
    }

    /// Creates the months of the records to copy.
    async fn create_months(&self, source: &impl ConnectionTrait) -> Result<(), CopyError> {
        let charged_at = usage_records::Column::ChargedAt;
        let oldest = usage_records::Entity::find().select_only().column(charged_at).order_by_asc(charged_at);
        // The copy of an unreadable row reports it.
        let Ok(Some(oldest)) = oldest.into_tuple::<i64>().one(source).await else { return Ok(()) };
        let now = self.target.now();
        let oldest = DateTime::from_timestamp_millis(oldest).unwrap_or(now).max(now - Months::new(MOST_MONTHS));
        UsageMonths::new(self.target.clone()).create(oldest - LONGEST_REQUEST, now).await?;
        Ok(())
    }

    async fn advance(&self, from: &Position, to: Position) -> Result<Position, CopyError> {
        if *from == to {
            return Ok(to);
        }
        let transaction = self.target.begin().await?;
        marker::advance(&transaction, from, &to).await?;
        transaction.commit().await?;
        Ok(to)
    }

    async fn copy_table(
        &self,
        source: &impl ConnectionTrait,
        table: &Table,
        mut position: Position,
        mut report: impl FnMut(u64),
    ) -> Result<Position, CopyError> {
        let limit = table.batch_rows.min(self.max_batch_rows);
        loop {
            let after = position.after.as_deref().map(decode_key).transpose()?;
            let rows = table.read_after(source, after.as_deref(), limit).await?;
            let Some(last) = rows.last() else { return Ok(position) };
            let next = position.after(last, rows.len());
            let transaction = self.target.begin().await?;
            marker::advance(&transaction, &position, &next).await?;
            if let Err(error) = table.insert(&transaction, &rows).await {
                drop(transaction);
                return Err(self.find_rejected(table, &rows, store_error(error)).await);
            }
            transaction.commit().await?;
            position = next;
            report(position.rows);
        }
    }

    /// Finds the row of a batch that the target does not accept. Keeps the error of the batch if no single row fails,
    /// or if the store is unavailable.
    async fn find_rejected(&self, table: &Table, rows: &[Row], error: StoreError) -> CopyError {
        if !matches!(error, StoreError::Corrupt(_)) {
            return error.into();
        }
        let Ok(transaction) = self.target.begin().await else { return error.into() };
        for row in rows {
            if transaction.execute_unprepared("SAVEPOINT row").await.is_err() {
                return error.into();
            }
            let inserted = table.insert(&transaction, std::slice::from_ref(row)).await.map_err(store_error);
            if let Err(StoreError::Corrupt(problem)) = inserted {
                return CopyError::Row { table: table.name, row: row.name(), problem };
            }
            if transaction.execute_unprepared("RELEASE SAVEPOINT row").await.is_err() {
                break;
            }
        }
        error.into()
    }
}

/// Removes the rows of a store that holds no instance.
///
/// # Errors
/// [`CopyError::Occupied`] if it holds one.
async fn clear_empty(transaction: &impl ConnectionTrait) -> Result<(), CopyError> {
    let mut tables = tables();
    for table in tables.iter().filter(|table| !REPLACEABLE.contains(&table.name)) {
        if table.count(transaction).await.map_err(store_error)? > 0 {
            return Err(CopyError::Occupied(table.name));
        }
    }
    tables.retain(|table| REPLACEABLE.contains(&table.name));
    for table in tables {
        table.clear(transaction).await.map_err(store_error)?;
    }
    Ok(())
}

impl Position {
    /// The position after all tables.
    const END: Self = Self { table: None, rows: 0, after: None };

    fn start_of(table: &Table) -> Self {
        Self { table: Some(table.name.to_owned()), rows: 0, after: None }
    }

    fn after(&self, last: &Row, rows: usize) -> Self {
        let copied = u64::try_from(rows).unwrap_or(u64::MAX);
        let after = Some(encode_key(last.key()));
        Self { table: self.table.clone(), rows: self.rows.saturating_add(copied), after }
    }
}
