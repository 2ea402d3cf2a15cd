//! The audit view of a key: all changeable fields, without the secret.

use super::ApiKey;
use crate::json::Json;

pub(super) fn view(key: &ApiKey) -> Json {
    let text =
        |value: Option<String>| value.map_or_else(|| "null".to_owned(), |text| Json::string(&text).text().to_owned());
    let number = |value: Option<u32>| value.map_or_else(|| "null".to_owned(), |number| number.to_string());
    let limit = key.limit;
    Json::object([
        ("name", Json::string(key.name.as_str()).text()),
        ("hash", Json::string(&key.hash.to_string()).text()),
        ("workspace_id", &text(key.scope.workspace_id().map(|id| id.to_string()))),
        ("limit_usd", &limit.map_or_else(|| "null".to_owned(), |limit| limit.amount.to_string())),
        ("limit_reset", &text(limit.and_then(|limit| limit.reset).map(|reset| reset.as_str().to_owned()))),
        ("requests_per_minute", &number(key.rates.requests_per_minute)),
        ("tokens_per_minute", &number(key.rates.tokens_per_minute)),
        ("expires_at", &text(key.expires_at.map(|at| at.to_rfc3339()))),
    ])
}

pub(super) fn before_and_after(before: &ApiKey, after: &ApiKey) -> Json {
    Json::object([("before", view(before).text()), ("after", view(after).text())])
}
