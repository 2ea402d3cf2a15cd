//! Responses to requests whose head cannot be read; they reach no route.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use actix_web::HttpResponse;
use actix_web::http::header::{HeaderName, HeaderValue};

use http_server::{HeadError, RejectHead};

use super::envelope;
use super::error::ApiError;
use super::format::ErrorFormat;
use super::log_limit::LogLimit;
use super::recorder::Answer;
use crate::gateway::Gateway;

/// Writes the error response, counts it and logs it at debug level: anyone can send such requests.
pub(crate) struct HeadRejection {
    gateway: Arc<Gateway>,
    log_limit: LogLimit,
}

impl HeadRejection {
    pub(crate) fn new(gateway: Arc<Gateway>) -> Self {
        Self { gateway, log_limit: LogLimit::default() }
    }

    pub(crate) fn into_callback(self) -> RejectHead {
        Arc::new(move |fault, peer| self.respond(fault, peer))
    }

    fn respond(&self, fault: HeadError, peer: Option<SocketAddr>) -> HttpResponse {
        let services = &self.gateway.services;
        let request_id = services.ids.request_id();
        let error = ApiError::head(fault);
        let mut response = envelope::respond(&error, &request_id, None, ErrorFormat::Contract, None);
        if let Ok(value) = HeaderValue::from_str(request_id.as_str()) {
            response.headers_mut().insert(HeaderName::from_static("x-request-id"), value);
        }
        let status = response.status().as_u16();
        services.recorder.record_answer(&Answer { route: None, method: "other", status, took: Duration::ZERO });
        if tracing::enabled!(tracing::Level::DEBUG)
            && let Some(suppressed) = self.log_limit.permit()
        {
            let address = peer.map(|peer| tracing::field::display(peer.ip().to_canonical()));
            tracing::debug!(
                request.id = %request_id,
                client.address = address,
                http.status = status,
                error = %fault,
                suppressed,
                "request rejected before routing"
            );
        }
        response
    }
}
