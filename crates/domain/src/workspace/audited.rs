//! The audit view of a workspace.

use crate::budget::WorkspaceBudgets;
use crate::json::Json;
use crate::money::Usd;
use crate::rate::RateLimits;

pub(super) fn usd(amount: Option<Usd>) -> String {
    amount.map_or_else(|| "null".to_owned(), |amount| amount.to_string())
}

pub(super) fn budgets(budgets: &WorkspaceBudgets) -> Json {
    Json::object([
        ("daily_usd", usd(budgets.daily).as_str()),
        ("weekly_usd", &usd(budgets.weekly)),
        ("monthly_usd", &usd(budgets.monthly)),
        ("lifetime_usd", &usd(budgets.lifetime)),
    ])
}

pub(super) fn rates(rates: RateLimits) -> Json {
    let number = |rate: Option<u32>| rate.map_or_else(|| "null".to_owned(), |rate| rate.to_string());
    Json::object([
        ("requests_per_minute", number(rates.requests_per_minute).as_str()),
        ("tokens_per_minute", &number(rates.tokens_per_minute)),
    ])
}

pub(super) fn before_and_after(before: &Json, after: &Json) -> Json {
    Json::object([("before", before.text()), ("after", after.text())])
}
