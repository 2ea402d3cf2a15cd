//! Sums usage and counts rejected requests.

use std::sync::Arc;

use chrono::{DateTime, Days, NaiveDate, NaiveTime, Utc};

use super::{MAX_READ_RECORDS, ReadUsageError, UsageNames, UsageReader};
use crate::budget::LedgerReader;
use crate::error::StoreError;
use crate::naming::ResourceName;
use crate::system::Clock;
use crate::usage::{
    RejectionFilter, RejectionStore, RejectionSum, UsageFilter, UsageGroup, UsageRepository, UsageSum, UsageSumQuery,
    UsageTotals,
};

/// The days of sums without a range, with today.
pub const DEFAULT_USAGE_DAYS: u64 = 30;
/// The most days of sums by end user, which are summed from records.
const MAX_USER_DAYS: i64 = 31;
/// The most rows of sums, except of exports, which read them in parts.
pub const MAX_SUM_ROWS: usize = 100_000;

/// The ports of [`SumUsage`].
pub struct SumUsagePorts {
    /// Sums and records.
    pub usage: Arc<dyn UsageRepository>,
    /// Counts of rejected requests.
    pub rejections: Arc<dyn RejectionStore>,
    /// The keys and workspaces that a caller may name.
    pub names: UsageNames,
    /// Stores the charges of this process.
    pub ledger: Arc<dyn LedgerReader>,
    /// The current day.
    pub clock: Arc<dyn Clock>,
}

/// The wanted sums. Without a range they are of the last 30 days with today.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SumUsageRequest {
    /// The groups.
    pub groups: Vec<UsageGroup>,
    /// The first day.
    pub since: Option<NaiveDate>,
    /// The day after the last one.
    pub until: Option<NaiveDate>,
    /// A name of a key.
    pub key: Option<ResourceName>,
    /// A name of a workspace.
    pub workspace: Option<ResourceName>,
    /// A model.
    pub model: Option<String>,
    /// A provider.
    pub provider: Option<String>,
    /// An end user.
    pub user: Option<String>,
}

/// Sums and their total.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UsageSums {
    /// The rows, in the order of the groups.
    pub rows: Vec<UsageSum>,
    /// The exact sum of the rows.
    pub total: UsageTotals,
}

/// Sums usage, and counts rejected requests.
pub struct SumUsage {
    ports: SumUsagePorts,
}

impl SumUsage {
    /// Wires the ports.
    pub fn new(ports: SumUsagePorts) -> Self {
        Self { ports }
    }

    /// Sums the usage that the reader may read.
    ///
    /// # Errors
    /// An inference key asks for another key or workspace; a name is unknown or ambiguous; the range is empty, or too long for
    /// end users; too many records or rows; a store failed.
    pub async fn execute(&self, reader: &UsageReader, request: SumUsageRequest) -> Result<UsageSums, ReadUsageError> {
        let query = self.begin(reader, request).await?;
        let rows = self.ports.usage.sum(&query, MAX_SUM_ROWS as u64 + 1).await?;
        if rows.len() > MAX_SUM_ROWS {
            return Err(ReadUsageError::TooManyRows { max: MAX_SUM_ROWS });
        }
        let total = rows.iter().try_fold(UsageTotals::default(), |total, row| total.checked_add(row.totals))?;
        Ok(UsageSums { rows, total })
    }

    /// Returns the query of the usage that the reader may read, for [`Self::read_next`], and stores the charges of this
    /// process.
    ///
    /// # Errors
    /// As [`Self::execute`], without a bound of the rows.
    pub async fn begin(&self, reader: &UsageReader, request: SumUsageRequest) -> Result<UsageSumQuery, ReadUsageError> {
        let SumUsageRequest { groups, since, until, key, workspace, model, provider, user } = request;
        let (api_key, workspaces) = self.ports.names.select(reader, key.as_ref(), workspace.as_ref()).await?;
        let (since, until) = self.range(since, until)?;
        let query = UsageSumQuery { groups, since, until, workspaces, api_key, model, provider, user, after: None };
        self.ports.ledger.store_pending().await?;
        self.check_records(&query).await?;
        Ok(query)
    }

    /// Returns up to `limit` next rows of a query; none at the end.
    ///
    /// # Errors
    /// The store failed.
    pub async fn read_next(&self, query: &mut UsageSumQuery, limit: u64) -> Result<Vec<UsageSum>, StoreError> {
        let rows = self.ports.usage.sum(query, limit).await?;
        query.after = rows.last().cloned().map(Box::new).or(query.after.take());
        Ok(rows)
    }

    /// Counts the rejected requests that the reader may read, by status and reason, of the hours of a range; without a
    /// range of the last 30 days with today.
    ///
    /// # Errors
    /// As [`Self::execute`].
    pub async fn count_rejections(
        &self,
        reader: &UsageReader,
        (since, until): (Option<DateTime<Utc>>, Option<DateTime<Utc>>),
        key: Option<&ResourceName>,
        workspace: Option<&ResourceName>,
    ) -> Result<Vec<RejectionSum>, ReadUsageError> {
        let (api_key, workspaces) = self.ports.names.select(reader, key, workspace).await?;
        let start = |day: NaiveDate| day.and_time(NaiveTime::MIN).and_utc();
        let until = until.unwrap_or_else(|| start(self.tomorrow()));
        let since = since.unwrap_or_else(|| until - Days::new(DEFAULT_USAGE_DAYS));
        if since >= until {
            return Err(ReadUsageError::EmptyRange);
        }
        let filter = RejectionFilter { workspaces, api_key, since: Some(since), until: Some(until) };
        Ok(self.ports.rejections.sum(&filter).await?)
    }

    fn tomorrow(&self) -> NaiveDate {
        let today = self.ports.clock.now().date_naive();
        today.succ_opt().unwrap_or(today)
    }

    fn range(
        &self,
        since: Option<NaiveDate>,
        until: Option<NaiveDate>,
    ) -> Result<(NaiveDate, NaiveDate), ReadUsageError> {
        let until = until.unwrap_or_else(|| self.tomorrow());
        let since = since.or_else(|| until.checked_sub_days(Days::new(DEFAULT_USAGE_DAYS))).unwrap_or(until);
        if since < until { Ok((since, until)) } else { Err(ReadUsageError::EmptyRange) }
    }

    /// Checks the bounds of sums from records.
    async fn check_records(&self, query: &UsageSumQuery) -> Result<(), ReadUsageError> {
        if !query.needs_records() {
            return Ok(());
        }
        let days = (query.until - query.since).num_days();
        if days > MAX_USER_DAYS {
            return Err(ReadUsageError::TooManyDays { days, max: MAX_USER_DAYS });
        }
        let start = |day: NaiveDate| Some(day.and_time(NaiveTime::MIN).and_utc());
        let (workspaces, api_key) = (query.workspaces.clone(), query.api_key);
        let (since, until) = (start(query.since), start(query.until));
        let filter = UsageFilter { workspaces, api_key, since, until, ..UsageFilter::default() };
        if self.ports.usage.count_read(&filter, MAX_READ_RECORDS + 1).await? > MAX_READ_RECORDS {
            return Err(ReadUsageError::TooManyRecords);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
