//! A configured provider: the shared client, its address and its headers. It posts a body, returns JSON, and describes
//! failures.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use chrono::{DateTime, Utc};
use domain::decision::ClientConnection;
use domain::routing::{AttemptFailure, AttemptFailureKind, FailureCause, ProviderSlug};
use domain::system::{Clock, parse_retry_after, parse_retry_after_ms};
use http::header::{ACCEPT, ACCEPT_ENCODING, CONTENT_TYPE, DATE, HeaderName, RETRY_AFTER};
use http::uri::Scheme;
use http::{HeaderMap, HeaderValue, Method, Request, Response, Uri};
use http_client::body::{self, BodyError, RequestBody};
use http_client::{ConnectCause, HttpClient, Loss, Repeat, ResponseBody, Target};
use wires::provider::{ReadError, account};

use crate::payload::{Payload, SentCounter};
use crate::provider_error::{self, close_json};
use crate::redaction::Redactor;
use crate::settings::{Address, ProviderSettings, ProviderSettingsError, headers};

/// A provider over HTTP, independent of its wire. A call is repeated once on another connection, if the provider did not
/// process it or a reused connection ended without an answer: a decision changes nothing at a provider. It asks for no
/// compression, and reads gzip anyway.
pub(crate) struct Connection {
    client: HttpClient,
    /// For waits until a date.
    clock: Arc<dyn Clock>,
    address: Address,
    target: Target,
    headers: HeaderMap,
    /// Masks the keys in the headers.
    redactor: Redactor,
    max_response_bytes: usize,
    slug: ProviderSlug,
}

/// The detail of an answer that was not read because no memory was left.
const NO_MEMORY: &str = "the memory for requests and answers, limits.body_memory_bytes, is used up";
/// The wait after that. Requests are short, and the end of the next one is unknown.
const MEMORY_RETRY_AFTER: Duration = Duration::from_secs(1);
/// The part of an error body that is read.
const MAX_ERROR_BYTES: usize = 64 << 10;
/// Longest wait for an error body. The status counts without it.
const ERROR_BODY_TIMEOUT: Duration = Duration::from_millis(500);

/// The failure of a request that was not built, or not answered.
enum SendError {
    Build(AttemptFailure),
    Call(http_client::Error),
}

impl From<http_client::Error> for SendError {
    fn from(error: http_client::Error) -> Self {
        Self::Call(error)
    }
}

impl Connection {
    /// Builds the connection over this client.
    pub(crate) fn new(
        client: HttpClient,
        clock: Arc<dyn Clock>,
        settings: &ProviderSettings,
    ) -> Result<Self, ProviderSettingsError> {
        Self::at(client, clock, settings, &settings.path)
    }

    /// Builds the connection to another path below the base URL.
    pub(crate) fn at(
        client: HttpClient,
        clock: Arc<dyn Clock>,
        settings: &ProviderSettings,
        path: &str,
    ) -> Result<Self, ProviderSettingsError> {
        let address = Address::new(&settings.base_url, path)?;
        let target = client.target(&address.of("m").ok_or(ProviderSettingsError::Address)?);
        let mut headers = headers(settings)?;
        headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
        headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        let redactor = Redactor::of(headers.iter().chain(target.headers()));
        // A request adds no other header, so its clone does not grow.
        target.add_headers(&mut headers);
        headers.insert(CONTENT_TYPE, Payload::JSON);
        Ok(Self {
            client,
            clock,
            address,
            redactor,
            target,
            headers,
            max_response_bytes: settings.max_response_bytes,
            slug: settings.slug.clone(),
        })
    }

    /// Returns the provider's slug.
    pub(crate) fn slug(&self) -> &ProviderSlug {
        &self.slug
    }

    /// Returns the redactor of the keys that calls carry.
    pub(crate) fn redactor(&self) -> &Redactor {
        &self.redactor
    }

    /// Posts the body that `write` builds to the address of the model and returns the JSON body of a 200. Any other
    /// response is a failure, which `read_error` may refine by the body. The size is bounded, the time is not: drop the
    /// future to cancel the call. `sent` counts the sent bytes in every case. `write` is called again to repeat the
    /// request. The answer takes memory of `client`.
    pub(crate) async fn post(
        &self,
        upstream_model: &str,
        write: impl Fn() -> Result<Payload, AttemptFailure>,
        sent: &SentCounter,
        (client, read_error): (&dyn ClientConnection, Option<ReadError>),
    ) -> Result<Bytes, AttemptFailure> {
        let uri = self.address.of(upstream_model).ok_or_else(|| {
            AttemptFailure::new(AttemptFailureKind::ConnectFailed, "upstream_model does not form a valid URL")
        })?;
        let build = || {
            let payload = write()?;
            let mut headers = self.headers.clone();
            headers.insert(CONTENT_TYPE, payload.media_type().clone());
            let mut request = Request::new(payload.with_counter(sent));
            *request.method_mut() = Method::POST;
            *request.uri_mut() = uri.clone();
            *request.headers_mut() = headers;
            Ok(request)
        };
        let _end = sent.end_on_drop();
        let answer = self.send(build, sent).await?;
        let status = answer.status().as_u16();
        if status != 200 {
            tracing::debug!(status, "provider responded with an error status");
            return Err(self.failure(answer, read_error).await);
        }
        self.read(answer, client).await.map_err(|failure| AttemptFailure { upstream_status: Some(status), ..failure })
    }

    /// Gets the address, which must respond with 200. Its body is not read. The time is not bounded: drop the future to
    /// cancel the call.
    pub(crate) async fn get(&self) -> Result<(), AttemptFailure> {
        let sent = SentCounter::default();
        let build = || {
            let mut request = Request::new(body::full(Bytes::new()));
            *request.uri_mut() = self.any_uri();
            request.headers_mut().clone_from(&self.headers);
            request.headers_mut().remove(CONTENT_TYPE);
            Ok(request)
        };
        let answer = self.send(build, &sent).await?;
        if answer.status() != 200 {
            return Err(self.failure(answer, None).await);
        }
        answer.into_body().retire();
        Ok(())
    }

    /// Opens a connection as a call does, through a proxy and with TLS, and closes it without a request. Returns a
    /// sentence for people, or why there is no connection.
    pub(crate) async fn probe(&self) -> Result<String, String> {
        let uri = self.any_uri();
        let (protocol, default) = if uri.scheme() == Some(&Scheme::HTTPS) { ("TLS", 443) } else { ("TCP", 80) };
        let at = format!("{}:{}", uri.host().unwrap_or_default(), uri.port_u16().unwrap_or(default));
        match self.client.probe(&self.target).await {
            Ok(()) if self.client.is_proxied(&uri) && protocol == "TCP" => {
                Ok(format!("the proxy for {at} accepts connections"))
            }
            Ok(()) if self.client.is_proxied(&uri) => {
                Ok(format!("{at} accepts {protocol} connections through the proxy"))
            }
            Ok(()) => Ok(format!("{at} accepts {protocol} connections")),
            Err(error) => Err(format!("{at}: {}", failure(&error).detail)),
        }
    }

    /// Returns the address of some model.
    fn any_uri(&self) -> Uri {
        self.address.of("m").unwrap_or_default()
    }

    /// Sends the request that `build` builds. `sent` counts the longer sending, and none that was not processed.
    async fn send(
        &self,
        build: impl Fn() -> Result<Request<RequestBody>, AttemptFailure>,
        sent: &SentCounter,
    ) -> Result<Response<ResponseBody>, AttemptFailure> {
        let build = |lost: Option<Loss>| {
            if let Some(loss) = lost {
                sent.end_sending(loss != Loss::NotProcessed);
            }
            build().map_err(SendError::Build)
        };
        self.client.send_built(&self.target, sent.deadline(), Repeat::IfSilent, build).await.map_err(
            |error| match error {
                SendError::Build(failure) => failure,
                SendError::Call(error) => {
                    sent.end_sending(error.may_be_processed());
                    failure(&error)
                }
            },
        )
    }

    /// Classifies a response with another status than 200, by the beginning of its body.
    async fn failure(&self, mut answer: Response<ResponseBody>, read_error: Option<ReadError>) -> AttemptFailure {
        let status = answer.status().as_u16();
        let by_status = AttemptFailure::from_status(status, retry_after(answer.headers(), self.clock.now()));
        let mut beginning = BytesMut::new();
        let reading = body::read_beginning(answer.body_mut(), &mut beginning, MAX_ERROR_BYTES);
        let is_whole = tokio::time::timeout(ERROR_BODY_TIMEOUT, reading).await.unwrap_or(false);
        let (beginning, is_whole) = body::decode_beginning(beginning.freeze(), is_whole, MAX_ERROR_BYTES);
        let body = if is_whole { beginning } else { close_json(&beginning).into() };
        answer.into_body().release();
        let by_status =
            AttemptFailure { provider_error: provider_error::read(status, &body, &self.redactor), ..by_status };
        let by_account = account::refine(by_status, &body);
        if by_account.cause.is_some_and(FailureCause::is_of_account) {
            return by_account;
        }
        let meaning = read_error.and_then(|read_error| read_error(status, &body));
        meaning.map_or_else(|| by_account.clone(), |meaning| meaning.of(&by_account))
    }

    /// Reads JSON of any media type: what parses as an answer is one. A body of another type whose first character is
    /// not that of JSON is not read to its end.
    async fn read(
        &self,
        mut answer: Response<ResponseBody>,
        client: &dyn ClientConnection,
    ) -> Result<Bytes, AttemptFailure> {
        let limit = self.max_response_bytes;
        let is_declared = is_json(answer.headers());
        let is_wanted = |begin: &[u8]| is_declared || body::may_be_json(begin);
        let memory = AnswerMemory { client, taken: AtomicUsize::new(0) };
        let take_memory = |bytes| memory.take(bytes);
        let read = body::read(answer.body_mut(), limit, is_wanted, take_memory).await;
        match read.and_then(|body| body::decode(body, limit, take_memory)) {
            Ok(body) => {
                memory.keep();
                answer.into_body().release();
                tracing::debug!(bytes = body.len(), "provider responded");
                Ok(body)
            }
            Err(error) => {
                // A peer that answers with something else gets no further request. Our own memory is not its fault.
                if error != BodyError::NoMemory {
                    answer.into_body().retire();
                }
                Err(match error {
                    BodyError::TooLong => invalid_response("the provider's answer is too long"),
                    BodyError::Broken => invalid_response("the connection broke within the answer"),
                    BodyError::Unwanted => invalid_response("the provider's answer is not JSON"),
                    BodyError::Compressed => invalid_response("the provider's answer cannot be decompressed"),
                    BodyError::NoMemory => AttemptFailure {
                        retry_after: Some(MEMORY_RETRY_AFTER),
                        ..AttemptFailure::new(AttemptFailureKind::MemoryExhausted, NO_MEMORY)
                    },
                })
            }
        }
    }
}

/// The memory of an answer, which is returned unless the answer is kept.
struct AnswerMemory<'a> {
    client: &'a dyn ClientConnection,
    taken: AtomicUsize,
}

impl AnswerMemory<'_> {
    fn take(&self, bytes: usize) -> bool {
        let is_taken = self.client.take_answer_memory(bytes);
        self.taken.fetch_add(if is_taken { bytes } else { 0 }, Ordering::Relaxed);
        is_taken
    }

    fn keep(&self) {
        self.taken.store(0, Ordering::Relaxed);
    }
}

impl Drop for AnswerMemory<'_> {
    fn drop(&mut self) {
        self.client.return_answer_memory(*self.taken.get_mut());
    }
}

/// Describes a call without an answer.
fn failure(error: &http_client::Error) -> AttemptFailure {
    use http_client::Error;
    let cause = error.connect_cause().and_then(failure_cause);
    match error {
        Error::NoAuthorities => AttemptFailure::of_cause(FailureCause::NoAuthorities),
        Error::Connect { .. } | Error::Handshake(_) => cause.map_or_else(
            || AttemptFailure::new(AttemptFailureKind::ConnectFailed, "the connection could not be made"),
            AttemptFailure::of_cause,
        ),
        Error::TooManyBytes { violation, .. } => {
            invalid_response(&format!("the provider sent more than {} bytes before its answer", violation.limit()))
        }
        Error::NotHttp { .. } => invalid_response("the provider's answer is not HTTP"),
        Error::Lost { .. } => {
            let cause = error.requires_http1().then_some(FailureCause::Http11Required);
            let detail = cause.map_or("the connection broke before the answer", FailureCause::sentence);
            AttemptFailure { cause, ..AttemptFailure::new(AttemptFailureKind::ConnectionLost, detail) }
        }
    }
}

fn failure_cause(cause: ConnectCause) -> Option<FailureCause> {
    Some(match cause {
        ConnectCause::LookUpFailed => return None,
        ConnectCause::NameNotFound => FailureCause::NameNotFound,
        ConnectCause::ConnectionRefused => FailureCause::ConnectionRefused,
        // Providers may have any address.
        ConnectCause::Unreachable | ConnectCause::ForbiddenAddress => FailureCause::Unreachable,
        ConnectCause::TimedOut => FailureCause::ConnectTimedOut,
        ConnectCause::ConnectionEnded => FailureCause::ConnectionEnded,
        ConnectCause::ProxyUnreachable => FailureCause::ProxyUnreachable,
        ConnectCause::ProxyCredentials => FailureCause::ProxyCredentials,
        ConnectCause::ProxyRejected => FailureCause::ProxyRejected,
        ConnectCause::CertificateUntrusted => FailureCause::CertificateUntrusted,
        ConnectCause::CertificateIsAuthority => FailureCause::CertificateIsAuthority,
        ConnectCause::CertificateExpired => FailureCause::CertificateExpired,
        ConnectCause::CertificateName => FailureCause::CertificateName,
        ConnectCause::NoTls => FailureCause::NoTls,
        ConnectCause::TlsFailed => FailureCause::TlsFailed,
    })
}

/// Builds the failure of a response that cannot be used.
fn invalid_response(detail: &str) -> AttemptFailure {
    AttemptFailure::new(AttemptFailureKind::InvalidResponse, detail)
}

/// Reads `retry-after-ms`, else `retry-after`. A date is compared with the response's own `date`, so that clock
/// differences do not matter; without one, with `now`.
fn retry_after(headers: &HeaderMap, now: DateTime<Utc>) -> Option<Duration> {
    let text = |name: HeaderName| headers.get(name).and_then(|value| value.to_str().ok());
    let milliseconds = text(HeaderName::from_static("retry-after-ms")).and_then(parse_retry_after_ms);
    milliseconds.or_else(|| parse_retry_after(text(RETRY_AFTER)?, text(DATE), now))
}

/// Returns true for a JSON media type and for a missing one.
fn is_json(headers: &HeaderMap) -> bool {
    let Some(media_type) = headers.get(CONTENT_TYPE) else { return true };
    let essence = media_type.to_str().unwrap_or_default().split(';').next().unwrap_or_default().trim();
    let begins = |with: &str| essence.get(..with.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(with));
    let ends = |with: &str| {
        let at = essence.len().checked_sub(with.len());
        at.and_then(|at| essence.get(at..)).is_some_and(|end| end.eq_ignore_ascii_case(with))
    };
    essence.eq_ignore_ascii_case("application/json") || (begins("application/") && ends("+json"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_json_checks_essence_of_media_type() {
        let is_accepted = |media_type: &'static str| {
            is_json(&HeaderMap::from_iter([(CONTENT_TYPE, HeaderValue::from_static(media_type))]))
        };
        for json in
            ["application/json", "Application/JSON; charset=utf-8", " application/problem+Json ", "application/+json"]
        {
            assert!(is_accepted(json), "{json}");
        }
        for other in ["", "application", "application/", "text/json", "+json", "text/html", "application/json5", "json"]
        {
            assert!(!is_accepted(other), "{other}");
        }
        assert!(is_json(&HeaderMap::new()));
    }

    #[test]
    fn retry_after_prefers_milliseconds_and_the_date_of_the_response() {
        let now = "1999-12-31T23:59:50Z".parse().unwrap();
        let after = |headers: &[(&'static str, &'static str)]| {
            let headers = headers.iter().map(|(name, value)| (HeaderName::from_static(name), value.parse().unwrap()));
            retry_after(&headers.collect(), now).map(|wait| wait.as_millis())
        };
        let until = ("retry-after", "Fri, 31 Dec 1999 23:59:59 GMT");
        assert_eq!(after(&[("retry-after", "7"), ("retry-after-ms", "1500")]), Some(1_500));
        assert_eq!(after(&[("retry-after", "7"), ("retry-after-ms", "soon")]), Some(7_000));
        assert_eq!(after(&[until, ("date", "Fri, 31 Dec 1999 23:59:29 GMT")]), Some(30_000));
        assert_eq!(after(&[until]), Some(9_000));
        assert_eq!(after(&[]), None);
    }
}
