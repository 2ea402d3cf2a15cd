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
    pub(crate) client: Option<IpAddr>,
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
