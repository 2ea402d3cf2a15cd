//! The delivery of messages.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use chrono::{DateTime, Utc};
use domain::observability::{Delivery, DeliveryError, DeliveryErrorKind, Destination, MessageSender};
use domain::system::{Clock, parse_retry_after};
use domain::text::hex;
use hmac::{Hmac, KeyInit, Mac};
use http::header::{CONTENT_TYPE, DATE, HeaderName, HeaderValue, RETRY_AFTER, USER_AGENT};
use http::{HeaderMap, Method, Request, StatusCode, Uri};
use http_client::{ConnectCause, Error, Http2, HttpClient, HttpClientSettings};
use sha2::Sha256;

use crate::{BroadcastError, BroadcastSettings, otlp};

const DELIVERY: HeaderName = HeaderName::from_static("x-tollgate-delivery");
const TIMESTAMP: HeaderName = HeaderName::from_static("x-tollgate-timestamp");
const SIGNATURE: HeaderName = HeaderName::from_static("x-tollgate-signature");
const TEST: HeaderName = HeaderName::from_static("x-test-connection");
/// Most bytes of a response that are read before the connection is closed.
const MOST_ANSWER_BYTES: usize = 64 * 1024;
/// The time after which an idle connection closes.
const POOL_IDLE_TIMEOUT: Duration = Duration::from_secs(30);
/// Longest time to read a response whose status has already counted.
const DRAIN_TIMEOUT: Duration = Duration::from_millis(500);
/// The advice for a destination that presents a certificate as `openssl req -x509` makes it without options.
const AUTHORITY_AS_SERVER: &str =
    "its certificate is an authority (CA:TRUE): create one with basicConstraints=critical,CA:FALSE";

/// Posts deliveries. It never retries and follows no redirects. Only the status and `retry-after` of a response count.
pub struct HttpMessageSender {
    client: HttpClient,
    /// The client of the operator's collector.
    operator_client: HttpClient,
    clock: Arc<dyn Clock>,
    timeout: Duration,
}

impl HttpMessageSender {
    /// Builds the client; connections are opened by deliveries.
    ///
    /// # Errors
    /// The settings are invalid, or a file of theirs cannot be used.
    pub fn new(settings: &BroadcastSettings, clock: Arc<dyn Clock>) -> Result<Self, BroadcastError> {
        let usual = HttpClientSettings {
            // The limit of a delivery includes it.
            connect_timeout: Duration::MAX,
            http2: Http2::Off,
            pool_idle_timeout: POOL_IDLE_TIMEOUT,
            pool_max_idle_per_host: 1,
            public_addresses_only: !settings.allow_private_addresses,
            ..HttpClientSettings::default()
        };
        let client = HttpClient::new(&usual)?;
        let (extra_ca_file, client_identity) =
            (settings.operator_ca_file.clone(), settings.operator_client_identity.clone());
        let operator_client = if extra_ca_file.is_some() || client_identity.is_some() {
            HttpClient::new(&HttpClientSettings { extra_ca_file, client_identity, ..usual })?
        } else {
            client.clone()
        };
        Ok(Self { client, operator_client, clock, timeout: settings.timeout })
    }

    fn request(&self, to: &Destination, delivery: &Delivery) -> Result<Request<Bytes>, DeliveryError> {
        let target: Uri = to.target().parse().map_err(|_| address("its URL cannot be used"))?;
        let body = Bytes::copy_from_slice(otlp::merged(&delivery.traces).text().as_bytes());
        let headers = self.headers(to, delivery, &body)?;
        let mut request = Request::new(body);
        *request.method_mut() = Method::POST;
        *request.uri_mut() = target;
        *request.headers_mut() = headers;
        Ok(request)
    }

    fn headers(&self, to: &Destination, delivery: &Delivery, body: &[u8]) -> Result<HeaderMap, DeliveryError> {
        let unusable = || address("one of its headers cannot be sent");
        let mut headers = HeaderMap::new();
        for (name, value) in &to.headers {
            let name: HeaderName = name.parse().map_err(|_| unusable())?;
            let mut value = HeaderValue::from_str(value.expose()).map_err(|_| unusable())?;
            value.set_sensitive(true);
            headers.insert(name, value);
        }
        // Added after the destination's headers, which cannot replace them.
        let ids: Vec<String> = delivery.ids.iter().map(ToString::to_string).collect();
        let timestamp = self.clock.now().timestamp().to_string();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        // The client adds its own.
        headers.remove(USER_AGENT);
        headers.insert(DELIVERY, HeaderValue::from_str(&ids.join(",")).map_err(|_| unusable())?);
        if let Some(secret) = &to.signing_secret {
            let signed = signature(secret.expose(), &timestamp, body);
            headers.insert(SIGNATURE, HeaderValue::from_str(&signed).map_err(|_| unusable())?);
        }
        headers.insert(TIMESTAMP, HeaderValue::from_str(&timestamp).map_err(|_| unusable())?);
        if delivery.is_test {
            headers.insert(TEST, HeaderValue::from_static("true"));
        }
        Ok(headers)
    }
}

#[async_trait]
impl MessageSender for HttpMessageSender {
    async fn send(&self, to: &Destination, delivery: &Delivery) -> Result<(), DeliveryError> {
        let request = self.request(to, delivery)?;
        let call = async {
            let client = if to.id == Destination::OPERATORS { &self.operator_client } else { &self.client };
            let answer = client.send(request).await.map_err(|error| from_call(&error))?;
            let (status, asked) = (answer.status(), retry_after(answer.headers(), self.clock.now()));
            judged(status, asked, delivery.is_test)?;
            Ok(answer.into_body())
        };
        let in_time = tokio::time::timeout(self.timeout, call).await;
        let late = |_| Err(receiver(format!("it did not answer within {} ms", self.timeout.as_millis())));
        let answer = in_time.unwrap_or_else(late)?;
        // The body does not matter, and neither does its absence. Read to its end, its connection is reused.
        drop(tokio::time::timeout(DRAIN_TIMEOUT, answer.drain(MOST_ANSWER_BYTES)).await);
        Ok(())
    }
}

fn judged(status: StatusCode, asked: Option<Duration>, is_test: bool) -> Result<(), DeliveryError> {
    if status.is_success() || (is_test && status == StatusCode::BAD_REQUEST) {
        return Ok(());
    }
    if status.is_redirection() {
        let reason = format!("it answered with a redirect (status {}), which is not followed", status.as_u16());
        return Err(receiver(reason));
    }
    let reason = format!("it answered with status {}", status.as_u16());
    let about_the_body = matches!(
        status,
        StatusCode::BAD_REQUEST
            | StatusCode::PAYLOAD_TOO_LARGE
            | StatusCode::UNSUPPORTED_MEDIA_TYPE
            | StatusCode::UNPROCESSABLE_ENTITY
    );
    let kind = if about_the_body { DeliveryErrorKind::Body } else { DeliveryErrorKind::Receiver };
    Err(DeliveryError { reason, kind, retry_after: asked })
}

/// Reads seconds or a date, at most a day.
fn retry_after(headers: &HeaderMap, now: DateTime<Utc>) -> Option<Duration> {
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
    parse_retry_after(text(RETRY_AFTER)?, text(DATE), now)
}

fn receiver(reason: impl Into<String>) -> DeliveryError {
    DeliveryError { reason: reason.into(), kind: DeliveryErrorKind::Receiver, retry_after: None }
}

fn address(reason: &str) -> DeliveryError {
    DeliveryError { reason: reason.to_owned(), kind: DeliveryErrorKind::Address, retry_after: None }
}

/// Describes a transport error without text of the destination.
fn from_call(error: &Error) -> DeliveryError {
    receiver(match error.connect_cause() {
        Some(ConnectCause::ForbiddenAddress) => {
            return address("its address is not public; egress.allow_private_addresses would allow it");
        }
        Some(ConnectCause::NameNotFound | ConnectCause::LookUpFailed) => "its name cannot be resolved",
        Some(ConnectCause::ConnectionRefused) => "it refused the connection",
        Some(ConnectCause::CertificateIsAuthority) => AUTHORITY_AS_SERVER,
        _ if error.is_tls() => "no TLS connection could be made with it",
        _ if error.is_connect() => "it could not be reached",
        _ => "the connection broke before its answer",
    })
}

/// Returns the value of `x-tollgate-signature`: `v1=` and the HMAC-SHA256 in lower-case hex, with the secret as key, of
/// the timestamp in `x-tollgate-timestamp`, a full stop, and the body.
pub fn signature(secret: &str, timestamp: &str, body: &[u8]) -> String {
    // HMAC accepts keys of any length.
    let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(secret.as_bytes()) else { return "v1=".to_owned() };
    mac.update(timestamp.as_bytes());
    mac.update(b".");
    mac.update(body);
    format!("v1={}", hex(&mac.finalize().into_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signature_matches_openssl() {
        // printf '1790000000.{}' | openssl dgst -sha256 -hmac 0123456789abcdef
        assert_eq!(signature("0123456789abcdef", "1790000000", b"{}"), EXPECTED);
        for other in [
            signature("0123456789abcdeg", "1790000000", b"{}"),
            signature("0123456789abcdef", "1790000001", b"{}"),
            signature("0123456789abcdef", "1790000000", b"{ }"),
        ] {
            assert_ne!(other, EXPECTED);
        }
    }

    const EXPECTED: &str = "v1=3d02334942fff50e279f641c1b104ff5f49380d94ff307bb92b1e03f5aee6ff0";
}
