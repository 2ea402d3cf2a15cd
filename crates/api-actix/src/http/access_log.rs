//! The access log: one line per request. Other lines of a request have its id.

use std::cell::{Cell, OnceCell};
use std::fmt::Display;
use std::net::IpAddr;
use std::time::Duration;

use chrono::{DateTime, Utc};
use domain::ids::{ApiKeyId, RequestId, WorkspaceId};
use domain::model::ModelId;
use domain::money::Usd;
use domain::usage::RejectionReason;

tokio::task_local! {
    /// The id of the request that a task answers.
    pub(crate) static REQUEST_ID: RequestId;
}

/// Returns the id of the request that the current task answers, for the log lines of that time.
pub fn current_request_id() -> Option<RequestId> {
    REQUEST_ID.try_with(Clone::clone).ok()
}

/// The target of the access log, for filters of the log.
pub const ACCESS_LOG_TARGET: &str = module_path!();

/// Writes the line of a request that was completed at this time. MUST NOT block.
pub type AccessLog = fn(DateTime<Utc>, &[AccessField<'_>]);

/// The name and the value of a field; without a value it is left out.
pub type AccessField<'a> = (&'static str, Option<AccessValue<'a>>);

/// The value of a field.
#[derive(Clone, Copy)]
pub enum AccessValue<'a> {
    /// A number.
    Number(u64),
    /// The text of an id: no format escapes it.
    Id(&'a str),
    /// An id, an address or an amount: no format escapes it.
    Plain(&'a dyn Display),
    /// Text.
    Text(&'a str),
}

/// The length of a logged path in characters.
const MAX_PATH: usize = 128;
/// The length from which a segment of a path may be a secret.
const MAX_SEGMENT: usize = 24;

/// Returns the path of a request without a route for the log: bounded, in visible ASCII, without long segments, which
/// may be misplaced secrets.
pub(crate) fn loggable_path(path: &str) -> String {
    let segment = |text: &str| {
        if text.len() > MAX_SEGMENT || text.starts_with("sk-") {
            return "***".to_owned();
        }
        text.chars().map(|sign| if sign.is_ascii_graphic() && sign != '"' { sign } else { '?' }).collect()
    };
    let mut shown = String::new();
    for (position, text) in path.split('/').enumerate() {
        if position > 0 {
            shown.push('/');
        }
        shown.push_str(&segment(text));
        if shown.len() > MAX_PATH {
            shown.truncate(MAX_PATH);
            shown.push_str("...");
            break;
        }
    }
    shown
}

/// The client address, and the fields of the access log that become known while a request is answered.
#[derive(Debug, Default)]
pub(crate) struct AccessFields {
    /// The client address.
    pub(crate) client: Option<IpAddr>,
    /// The key of the caller. Its label is a part of the secret, so it is not logged.
    pub(crate) api_key: Cell<Option<ApiKeyId>>,
    /// The workspace of an inference key; not logged.
    pub(crate) workspace: Cell<Option<WorkspaceId>>,
    /// The model, the provider and the charge.
    pub(crate) charge: OnceCell<ChargeFields>,
    /// The reason of a rejection.
    pub(crate) reason: Cell<Option<RejectionReason>>,
}

/// The model, the provider and the charge of a Decisions request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ChargeFields {
    /// The model that was called.
    pub(crate) model: Option<ModelId>,
    /// The display names of the providers.
    pub(crate) provider: String,
    /// The charge.
    pub(crate) cost: Usd,
}

/// A request that has its response.
pub(crate) struct Completion<'a> {
    pub(crate) at: DateTime<Utc>,
    pub(crate) request_id: &'a RequestId,
    pub(crate) method: &'a str,
    /// The pattern of the route; a path may contain the caller's file names.
    pub(crate) route: Option<&'static str>,
    pub(crate) path: &'a str,
    pub(crate) status: u16,
    pub(crate) latency: Duration,
}

impl AccessFields {
    /// Writes the access log line.
    pub(crate) fn log_completion(&self, log: AccessLog, completion: &Completion<'_>) {
        if !tracing::enabled!(tracing::Level::INFO) {
            return;
        }
        let Completion { at, request_id, method, route, path, status, latency } = *completion;
        let unknown_path = route.is_none().then(|| loggable_path(path));
        let (api_key, charge) = (self.api_key.get(), self.charge.get());
        let latency_us = u64::try_from(latency.as_micros()).unwrap_or(u64::MAX);
        let fields = [
            ("request.id", Some(AccessValue::Id(request_id.as_str()))),
            ("http.method", Some(AccessValue::Text(method))),
            ("http.route", route.map(AccessValue::Text)),
            ("http.path", unknown_path.as_deref().map(AccessValue::Text)),
            ("client.address", self.client.as_ref().map(plain)),
            ("http.status", Some(AccessValue::Number(status.into()))),
            ("reason", self.reason.get().map(|reason| AccessValue::Text(reason.as_str()))),
            ("api_key.id", api_key.as_ref().map(plain)),
            ("model.id", charge.and_then(|charge| charge.model.as_ref()).map(|model| AccessValue::Id(model.as_str()))),
            ("provider.name", charge.map(|charge| AccessValue::Text(&charge.provider))),
            ("cost_usd", charge.map(|charge| plain(&charge.cost))),
            ("latency_us", Some(AccessValue::Number(latency_us))),
        ];
        log(at, &fields);
    }
}

fn plain(value: &impl Display) -> AccessValue<'_> {
    AccessValue::Plain(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loggable_path_is_bounded_and_without_secrets_and_control_characters() {
        for (path, shown) in [
            ("/v1/chat/completions", "/v1/chat/completions"),
            ("/", "/"),
            ("/v1/modeles", "/v1/modeles"),
            ("/a\n\"b\u{1b}[2J/\u{e9}", "/a??b?[2J/?"),
            ("/v1/sk-short/x", "/v1/***/x"),
            ("/keys/9f86d081884c7d659a2feaa0c55ad015/x", "/keys/***/x"),
        ] {
            assert_eq!(loggable_path(path), shown);
        }
        for long in ["/x".repeat(10_000), "x".repeat(10_000), "/\u{1f600}".repeat(10_000)] {
            let shown = loggable_path(&long);
            assert!(shown.len() <= MAX_PATH + 3 && shown.is_ascii(), "{shown}");
        }
    }
}
