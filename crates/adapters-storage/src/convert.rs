//! Conversion between domain values and columns.

use std::fmt::Display;
use std::str::FromStr;
use std::time::Duration;

use chrono::{DateTime, Utc};
use domain::budget::{ResetInterval, SpendLimit, WorkspaceBudgets};
use domain::error::StoreError;
use domain::ids::ApiKeyId;
use domain::money::Usd;
use domain::secret::ApiKeyHash;
use uuid::Uuid;

use crate::errors::corrupt;

/// Converts to Unix milliseconds.
pub(crate) fn millis(moment: DateTime<Utc>) -> i64 {
    moment.timestamp_millis()
}

pub(crate) fn moment(millis: i64, column: &str, row: impl Display) -> Result<DateTime<Utc>, StoreError> {
    DateTime::from_timestamp_millis(millis).ok_or_else(|| corrupt(column, row))
}

/// Converts to whole microseconds, limited to 292,000 years.
pub(crate) fn micros(duration: Duration) -> i64 {
    i64::try_from(duration.as_micros()).unwrap_or(i64::MAX)
}

pub(crate) fn duration(micros: i64, column: &str, row: impl Display) -> Result<Duration, StoreError> {
    unsigned(micros, column, row).map(Duration::from_micros)
}

/// Converts a count to a column.
pub(crate) fn signed(count: u64, column: &str, row: impl Display) -> Result<i64, StoreError> {
    i64::try_from(count).map_err(|_| corrupt(column, row))
}

pub(crate) fn unsigned(count: i64, column: &str, row: impl Display) -> Result<u64, StoreError> {
    u64::try_from(count).map_err(|_| corrupt(column, row))
}

/// Parses a text column.
pub(crate) fn parse<T: FromStr>(text: &str, column: &str, row: impl Display) -> Result<T, StoreError> {
    text.parse().map_err(|_| corrupt(column, row))
}

pub(crate) fn key_column(id: ApiKeyId) -> Vec<u8> {
    id.uuid().as_bytes().to_vec()
}

pub(crate) fn key_id(bytes: &[u8], column: &str, row: impl Display) -> Result<ApiKeyId, StoreError> {
    Uuid::from_slice(bytes).map(ApiKeyId::from_uuid).map_err(|_| corrupt(column, row))
}

pub(crate) fn hash_column(hash: &ApiKeyHash) -> Vec<u8> {
    hash.bytes().to_vec()
}

pub(crate) fn hash(bytes: &[u8], column: &str, row: impl Display) -> Result<ApiKeyHash, StoreError> {
    bytes.try_into().map(ApiKeyHash::from_bytes).map_err(|_| corrupt(column, row))
}

/// Converts the columns of a limit.
pub(crate) fn spend_limit(
    pico: Option<i64>,
    reset: Option<&str>,
    column: &str,
    row: impl Display,
) -> Result<Option<SpendLimit>, StoreError> {
    let interval = |name| ResetInterval::from_name(name).ok_or_else(|| corrupt(column, row));
    let reset = reset.map(interval).transpose()?;
    Ok(pico.map(|pico| SpendLimit { amount: Usd::from_pico(pico), reset }))
}

/// Converts the columns of the budgets of a workspace, from the shortest period to the longest.
pub(crate) fn to_budgets(picos: [Option<i64>; 4]) -> WorkspaceBudgets {
    let [daily, weekly, monthly, lifetime] = picos.map(|pico| pico.map(Usd::from_pico));
    WorkspaceBudgets { daily, weekly, monthly, lifetime }
}
