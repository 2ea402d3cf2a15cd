//! The HTTP transport of the object store's client: hyper and rustls, with time limits.

use std::error::Error as StdError;
use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use http::Method;
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use object_store::ClientOptions;
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpRequestBody, HttpResponse, HttpResponseBody,
    HttpService,
};
use tokio::time::{Instant, Sleep, sleep};

use crate::dialer::Dialer;
use crate::{S3Error, S3Settings, tls};

/// The time after which an idle connection is closed, below the usual limit of servers.
const POOL_IDLE_TIMEOUT: Duration = Duration::from_secs(15);
/// The factor by which a copy inside the store may take longer than another request: the store reads and writes the
/// whole object before it answers.
const COPY_FACTOR: u32 = 10;
/// The advice for a server that presents a certificate as `openssl req -x509` makes it without options.
const AUTHORITY_AS_SERVER: &str =
    "the server's certificate is an authority (CA:TRUE): create one with basicConstraints=critical,CA:FALSE";
const COPY_SOURCE: &str = "x-amz-copy-source";

/// The client of one store. Clones share its connections.
#[derive(Clone)]
pub(crate) struct Transport {
    client: Client<HttpsConnector<Dialer>, HttpRequestBody>,
    timeout: Duration,
}

impl Transport {
    pub(crate) fn new(settings: &S3Settings) -> Result<Self, S3Error> {
        let tls = tls::load(settings.ca_file.as_deref(), settings.endpoint.starts_with("https://"))?;
        let tcp = Dialer::new(settings.connect_timeout);
        let connector =
            HttpsConnectorBuilder::new().with_tls_config(tls).https_or_http().enable_http1().wrap_connector(tcp);
        let client = Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(POOL_IDLE_TIMEOUT)
            .build(connector);
        Ok(Self { client, timeout: settings.request_timeout })
    }

    fn head_timeout(&self, request: &HttpRequest) -> Duration {
        let is_copy = request.method() == Method::PUT && request.headers().contains_key(COPY_SOURCE);
        if is_copy { self.timeout.saturating_mul(COPY_FACTOR) } else { self.timeout }
    }
}

impl fmt::Debug for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Transport").field("timeout", &self.timeout).finish_non_exhaustive()
    }
}

impl HttpConnector for Transport {
    fn connect(&self, _: &ClientOptions) -> object_store::Result<HttpClient> {
        Ok(HttpClient::new(self.clone()))
    }
}

#[async_trait]
impl HttpService for Transport {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let limit = self.head_timeout(&request);
        let answer = tokio::time::timeout(limit, self.client.request(request)).await;
        let answer = answer.map_err(|_| timed_out(limit))?.map_err(|error| from_call(&error))?;
        let (parts, body) = answer.into_parts();
        let body = LimitedBody { body, limit: self.timeout, timer: Box::pin(sleep(self.timeout)) };
        Ok(HttpResponse::from_parts(parts, HttpResponseBody::new(body)))
    }
}

/// A body whose pauses are limited.
struct LimitedBody {
    body: Incoming,
    limit: Duration,
    timer: Pin<Box<Sleep>>,
}

impl Body for LimitedBody {
    type Data = Bytes;
    type Error = HttpError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, Self::Error>>> {
        let this = &mut *self;
        if let Poll::Ready(frame) = Pin::new(&mut this.body).poll_frame(cx) {
            this.timer.as_mut().reset(Instant::now() + this.limit);
            return Poll::Ready(frame.map(|frame| frame.map_err(|error| broken(&error))));
        }
        ready!(this.timer.as_mut().poll(cx));
        Poll::Ready(Some(Err(timed_out(this.limit))))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// A failed call, without its address.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct CallError(String);

fn timed_out(limit: Duration) -> HttpError {
    let text = format!("no answer within {} ms", limit.as_millis());
    HttpError::new(HttpErrorKind::Timeout, CallError(text))
}

fn from_call(error: &hyper_util::client::legacy::Error) -> HttpError {
    if error.is_connect() {
        return HttpError::new(HttpErrorKind::Connect, CallError(format!("cannot connect: {}", innermost(error))));
    }
    broken(error)
}

fn broken(error: &(dyn StdError + 'static)) -> HttpError {
    let text = format!("the connection broke: {}", innermost(error));
    HttpError::new(HttpErrorKind::Interrupted, CallError(text))
}

/// Returns the first cause, which names the problem; the errors around it name layers of the client.
fn innermost(error: &(dyn StdError + 'static)) -> String {
    let mut cause = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    let text = cause.to_string();
    if text.contains("CaUsedAsEndEntity") { AUTHORITY_AS_SERVER.to_owned() } else { text }
}
