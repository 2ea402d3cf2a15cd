//! The access log: one line per request.

use std::cell::{Cell, OnceCell};
use std::net::IpAddr;
use std::time::Duration;

use domain::ids::{ApiKeyId, RequestId, WorkspaceId};
use domain::model::ModelId;
use domain::money::Usd;
use domain::usage::RejectionReason;
use tracing::Span;

/// The request fields for spans and the access log.
pub(crate) struct RequestLabels<'a> {
    pub(crate) request_id: &'a RequestId,
    pub(crate) method: &'a str,
    /// The pattern of the route; a path may contain the caller's file names.
    pub(crate) route: Option<&'static str>,
    /// The path of a request without a route.
    pub(crate) unknown_path: Option<String>,
    pub(crate) client: Option<IpAddr>,
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

impl RequestLabels<'_> {
    /// Returns the span of the request.
    pub(crate) fn span(&self) -> Span {
        tracing::info_span!(
            "http.request",
            request.id = %self.request_id,
            http.method = self.method,
            http.route = self.route,
            http.path = self.unknown_path.as_deref(),
            client.address = self.client.map(tracing::field::display),
        )
    }

    /// Writes the access log line. The labels are repeated if the request has no span.
    pub(crate) fn log_completion(&self, span: &Span, fields: &AccessFields, status: u16, latency: Duration) {
        let latency_us = u64::try_from(latency.as_micros()).unwrap_or(u64::MAX);
        let api_key = fields.api_key.get().map(tracing::field::display);
        if span.is_none() {
            tracing::info!(
                request.id = %self.request_id,
                http.method = self.method,
                http.route = self.route,
                client.address = self.client.map(tracing::field::display),
                http.status = status,
                api_key.id = api_key,
                latency_us,
                "request completed"
            );
            return;
        }
        let charge = fields.charge.get();
        tracing::info!(
            http.status = status,
            reason = fields.reason.get().map(RejectionReason::as_str),
            api_key.id = api_key,
            model.id = charge.and_then(|charge| charge.model.as_ref()).map(tracing::field::display),
            provider.name = charge.map(|charge| charge.provider.as_str()),
            cost_usd = charge.map(|charge| tracing::field::display(charge.cost)),
            latency_us,
            "request completed"
        );
    }
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
