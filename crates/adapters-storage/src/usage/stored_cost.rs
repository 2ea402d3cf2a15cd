//! The expected cost of a stored record, computed from a few of its columns.
//!
//! An audit computes it for millions of records; decoding whole records takes three times as long.

use std::borrow::Cow;
use std::collections::HashMap;

use domain::budget::cost_of_tokens;
use domain::error::StoreError;
use domain::money::{Price, Usd};
use domain::pricing::TokenPrices;
use domain::usage::UsageOutcome;
use sea_orm::{QueryResult, TryGetable};
use serde::Deserialize;

use super::ids;
use super::row::share;
use crate::errors::{corrupt, store_error};

/// The columns for [`StoredCosts::read`].
pub(crate) const COST_COLUMNS: &str =
    "input_tokens, output_tokens, prompt_price, completion_price, outcome, attempts, share_index, share_of";

/// Most cached prices.
const MAX_PRICES: usize = 1_024;

/// Computes the costs of stored records. Caches parsed prices, because most records have one of a few.
#[derive(Default)]
pub(crate) struct StoredCosts {
    prices: HashMap<String, Price>,
}

/// The members of a stored attempt that determine its cost. Omitted ones have the value of the record.
#[derive(Deserialize)]
struct CostOfAttempt<'a> {
    #[serde(borrow, rename = "r")]
    outcome: Option<Cow<'a, str>>,
    #[serde(rename = "i")]
    input_tokens: Option<u64>,
    #[serde(rename = "o")]
    output_tokens: Option<u64>,
    #[serde(borrow, rename = "pi")]
    prompt_price: Option<Cow<'a, str>>,
    #[serde(borrow, rename = "po")]
    completion_price: Option<Cow<'a, str>>,
}

impl StoredCosts {
    /// Computes the cost of a row whose columns from `first` on are [`COST_COLUMNS`]; `None` on overflow. `id` is the
    /// column of the record's id, for errors.
    pub(crate) fn read(&mut self, row: &QueryResult, first: usize, id: &[u8]) -> Result<Option<Usd>, StoreError> {
        let unreadable = |column| corrupt(column, ids::display_id(id));
        let tokens = |place, name| u64::try_from(column::<i64>(row, first + place)?).map_err(|_| unreadable(name));
        let input_tokens = tokens(0, "usage_records.input_tokens")?;
        let output_tokens = tokens(1, "usage_records.output_tokens")?;
        let prices = TokenPrices {
            prompt: self.price(&column::<String>(row, first + 2)?, "usage_records.prompt_price", id)?,
            completion: self.price(&column::<String>(row, first + 3)?, "usage_records.completion_price", id)?,
        };
        let outcome: String = column(row, first + 4)?;
        UsageOutcome::from_name(&outcome).ok_or_else(|| unreadable("usage_records.outcome"))?;
        let text: String = column(row, first + 5)?;
        let stored: Vec<CostOfAttempt<'_>> =
            serde_json::from_str(&text).map_err(|_| unreadable("usage_records.attempts"))?;
        let (index, of) = (column::<Option<i64>>(row, first + 6)?, column::<Option<i64>>(row, first + 7)?);
        let share = share(index.unwrap_or(0), of.unwrap_or(1)).ok_or_else(|| unreadable("usage_records.share_of"))?;
        if stored.is_empty() {
            return Ok(cost_of_tokens([(prices, input_tokens, output_tokens)], share));
        }
        let mut attempts = Vec::with_capacity(stored.len());
        for attempt in stored {
            let is_charged = attempt.outcome.as_deref().unwrap_or(&outcome) == UsageOutcome::Completed.as_str();
            let of_record = |tokens: u64| if is_charged { tokens } else { 0 };
            let mut price = |text: Option<Cow<'_, str>>, of_record| match text {
                Some(text) => self.price(&text, "usage_records.attempts", id),
                None => Ok(of_record),
            };
            let prices = TokenPrices {
                prompt: price(attempt.prompt_price, prices.prompt)?,
                completion: price(attempt.completion_price, prices.completion)?,
            };
            let input_tokens = attempt.input_tokens.unwrap_or_else(|| of_record(input_tokens));
            let output_tokens = attempt.output_tokens.unwrap_or_else(|| of_record(output_tokens));
            attempts.push((prices, input_tokens, output_tokens));
        }
        Ok(cost_of_tokens(attempts, share))
    }

    fn price(&mut self, text: &str, column: &str, id: &[u8]) -> Result<Price, StoreError> {
        if let Some(price) = self.prices.get(text) {
            return Ok(*price);
        }
        let price: Price = text.parse().map_err(|_| corrupt(column, ids::display_id(id)))?;
        if self.prices.len() >= MAX_PRICES {
            self.prices.clear();
        }
        self.prices.insert(text.to_owned(), price);
        Ok(price)
    }
}

fn column<T: TryGetable>(row: &QueryResult, place: usize) -> Result<T, StoreError> {
    row.try_get_by_index(place).map_err(store_error)
}
