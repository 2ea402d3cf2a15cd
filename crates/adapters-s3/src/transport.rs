//! The HTTP transport of the object store's client: our own, with time limits.

use std::error::Error as StdError;
use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use http::Method;
use http_body::{Body, Frame, SizeHint};
use http_body_util::BodyExt as _;
use http_client::{ConnectCause, Error, Http2, HttpClientSettings, Loss, Repeat, before_deadline};
use object_store::ClientOptions;
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpResponse, HttpResponseBody, HttpService,
};
use tokio::time::{Instant, Sleep, sleep};

use crate::{S3Error, S3Settings};

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
    client: http_client::HttpClient,
    timeout: Duration,
}

impl Transport {
    pub(crate) fn new(settings: &S3Settings) -> Result<Self, S3Error> {
        let client = http_client::HttpClient::new(&HttpClientSettings {
            connect_timeout: settings.connect_timeout,
            extra_ca_file: settings.ca_file.clone(),
            http2: Http2::Off,
            pool_idle_timeout: POOL_IDLE_TIMEOUT,
            ..HttpClientSettings::default()
        })?;
        if settings.endpoint.starts_with("https://") && !client.has_trusted_authorities() {
            return Err(S3Error::NoAuthorities);
        }
        Ok(Self { client, timeout: settings.request_timeout })
    }

    fn head_timeout(&self, request: &HttpRequest) -> Duration {
        let is_copy = request.method() == Method::PUT && request.headers().contains_key(COPY_SOURCE);
        if is_copy { self.timeout.saturating_mul(COPY_FACTOR) } else { self.timeout }
    }

    fn unanswered(&self, error: &Error) -> HttpError {
        let reason = match error.connect_cause() {
            Some(ConnectCause::CertificateIsAuthority) => AUTHORITY_AS_SERVER.to_owned(),
            Some(ConnectCause::TimedOut) => {
                format!("no connection within {} ms", self.client.settings().connect_timeout.as_millis())
            }
            _ => innermost(error),
        };
        if error.is_connect() {
            HttpError::new(HttpErrorKind::Connect, CallError(format!("cannot connect: {reason}")))
        } else {
            broken(&reason)
        }
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
        let target = self.client.target(request.uri());
        let build = |_: Option<Loss>| Ok::<_, Error>(request.clone().map(|body| body.map_err(Into::into).boxed()));
        // The library repeats what may be repeated.
        let sending = self.client.send_built(&target, None, Repeat::IfNotProcessed, build);
        let answer = before_deadline(limit, sending).await.ok_or_else(|| timed_out(limit))?;
        let answer = answer.map_err(|error| self.unanswered(&error))?;
        Ok(answer.map(|body| HttpResponseBody::new(LimitedBody::new(body, self.timeout))))
    }
}

/// A body whose pauses are limited. A reader that does not ask for the next piece is no pause of the service.
struct LimitedBody<B> {
    body: B,
    limit: Duration,
    timer: Pin<Box<Sleep>>,
    is_waiting: bool,
}

impl<B> LimitedBody<B> {
    fn new(body: B, limit: Duration) -> Self {
        Self { body, limit, timer: Box::pin(sleep(limit)), is_waiting: false }
    }
}

impl<B: Body<Data = Bytes, Error: StdError + 'static> + Unpin> Body for LimitedBody<B> {
    type Data = Bytes;
    type Error = HttpError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, Self::Error>>> {
        let this = &mut *self;
        if let Poll::Ready(frame) = Pin::new(&mut this.body).poll_frame(cx) {
            this.is_waiting = false;
            return Poll::Ready(frame.map(|frame| frame.map_err(|error| broken(&innermost(&error)))));
        }
        if !this.is_waiting {
            this.timer.as_mut().reset(Instant::now() + this.limit);
            this.is_waiting = true;
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

fn broken(reason: &str) -> HttpError {
    HttpError::new(HttpErrorKind::Interrupted, CallError(format!("the connection broke: {reason}")))
}

/// Returns the first cause, which names the problem; the errors around it name layers of the client.
fn innermost(error: &(dyn StdError + 'static)) -> String {
    let mut cause = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    cause.to_string()
}

#[cfg(test)]
mod tests {
    use domain::secret::SecretString;
    use tokio::net::{TcpSocket, TcpStream};

    use super::*;
    use crate::S3Credentials;

    #[tokio::test]
    async fn connection_has_a_time_limit() {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let full = socket.listen(0).unwrap();
        let address = full.local_addr().unwrap();
        let _queued = TcpStream::connect(address).await.unwrap();
        let settings = S3Settings {
            bucket: "b".to_owned(),
            prefix: String::new(),
            endpoint: format!("http://{address}"),
            region: "r".to_owned(),
            path_style: true,
            credentials: S3Credentials::AccessKey {
                id: SecretString::new("i"),
                secret: SecretString::new("s"),
                session_token: None,
            },
            ca_file: None,
            connect_timeout: Duration::from_millis(30),
            request_timeout: Duration::from_mins(1),
        };
        let request = http::Request::get(settings.endpoint.as_str()).body(Vec::new().into()).unwrap();
        let error = Transport::new(&settings).unwrap().call(request).await.err().unwrap();
        assert!(error.to_string().contains("cannot connect: no connection within 30 ms"), "{error}");
    }

    /// A body whose every piece takes that long.
    fn slow_body(piece: Duration) -> impl Body<Data = Bytes, Error = std::io::Error> + Unpin {
        let pieces = futures_util::stream::unfold((), move |()| async move {
            sleep(piece).await;
            Some((Ok(Frame::data(Bytes::from_static(b"x"))), ()))
        });
        http_body_util::StreamBody::new(Box::pin(pieces))
    }

    #[tokio::test(start_paused = true)]
    async fn pause_of_the_reader_is_no_pause_of_the_service() {
        let limit = Duration::from_secs(10);
        let mut body = LimitedBody::new(slow_body(Duration::from_secs(9)), limit);
        for _ in 0..3 {
            assert!(body.frame().await.unwrap().is_ok());
            sleep(limit * 6).await;
        }
        let mut body = LimitedBody::new(slow_body(Duration::from_secs(11)), limit);
        assert!(body.frame().await.unwrap().unwrap_err().to_string().contains("no answer within 10000 ms"));
    }
}
