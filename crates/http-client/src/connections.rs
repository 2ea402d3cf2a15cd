//! Connections. One of HTTP/1.1 has no task: the call that uses it drives it, or its pool's watcher while it is idle. One
//! of HTTP/2 is shared by concurrent calls and driven by a task.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Waker};
use std::time::Duration;

use http::header::HeaderName;
use http::uri::PathAndQuery;
use http::{HeaderMap, Request, Response, Uri};
use hyper::body::Incoming;
use hyper::client::conn::TrySendError;
use hyper::client::conn::{http1, http2};
use hyper::rt::Executor;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use tokio::task::coop::unconstrained;
use tokio::time::Instant;

use crate::HttpClientSettings;
use crate::body::RequestBody;
use crate::connector::{Io, Link};
use crate::meter::Meter;

/// The time between the end of a connection in the pool and its announced end.
const KEEP_ALIVE_MARGIN: Duration = Duration::from_secs(1);

/// A connection of HTTP/1.1, for one call at a time. Dropping it closes it.
pub(crate) struct Http1Connection {
    sender: http1::SendRequest<RequestBody>,
    /// `None` once the connection has ended.
    driver: Option<http1::Connection<Io, RequestBody>>,
    pub(crate) meter: Meter,
    /// True if a proxy forwards the requests, which then contain the whole target.
    forwarded: bool,
    /// True once an answer has come over it.
    pub(crate) is_reused: bool,
    /// The time for which the peer keeps it open between two requests, if announced, less a margin.
    pub(crate) keep_alive: Option<Duration>,
    /// The end of its time in the pool.
    pub(crate) idle_until: Instant,
}

impl Http1Connection {
    /// Opens a connection over an HTTP/1.1 link.
    pub(crate) async fn open(link: Link) -> hyper::Result<Box<Self>> {
        let (sender, driver) = http1::Builder::new().handshake(link.io).await?;
        Ok(Box::new(Self {
            sender,
            driver: Some(driver),
            meter: link.meter,
            forwarded: link.forwarded,
            is_reused: false,
            keep_alive: None,
            idle_until: Instant::now(),
        }))
    }

    /// Returns the request target: the path, or the whole address for a proxy.
    pub(crate) fn request_target(&self, uri: &Uri) -> Uri {
        if self.forwarded {
            return uri.clone();
        }
        uri.path_and_query().cloned().unwrap_or_else(|| PathAndQuery::from_static("/")).into()
    }

    /// Reads and writes as much as possible, and registers the waker for more.
    pub(crate) fn drive(&mut self, cx: &mut Context<'_>) {
        if let Some(driver) = &mut self.driver
            && Pin::new(driver).poll(cx).is_ready()
        {
            // The call receives errors; on an idle connection they are irrelevant.
            self.driver = None;
        }
    }

    /// Returns true if it can take a request.
    pub(crate) fn is_usable(&self) -> bool {
        self.driver.is_some() && self.sender.is_ready()
    }

    /// Sends a request and returns the head of the answer; the body needs [`Self::drive`]. The error holds the request
    /// if nothing of it was sent.
    pub(crate) async fn send(
        &mut self,
        request: Request<RequestBody>,
    ) -> Result<Response<Incoming>, TrySendError<Request<RequestBody>>> {
        // Only the driver advances the answer, so only the driver must wake this task.
        let mut answer = pin!(unconstrained(self.sender.try_send_request(request)));
        let answer = poll_fn(|cx| {
            self.drive(cx);
            answer.as_mut().poll(&mut Context::from_waker(Waker::noop()))
        })
        .await;
        if let Ok(response) = &answer {
            self.keep_alive = keep_alive(response.headers());
        }
        answer
    }
}

/// Reads `keep-alive: timeout=5`, the seconds after which the peer closes an idle connection. Less a second, or half of
/// it, for the way to the peer.
fn keep_alive(headers: &HeaderMap) -> Option<Duration> {
    let values = headers.get_all(HeaderName::from_static("keep-alive")).into_iter();
    let mut parameters = values.filter_map(|value| value.to_str().ok()).flat_map(|value| value.split(','));
    let seconds = parameters.find_map(|parameter| {
        let (name, seconds) = parameter.split_once('=')?;
        name.trim().eq_ignore_ascii_case("timeout").then(|| seconds.trim().trim_matches('"'))
    })?;
    let announced = Duration::from_secs(seconds.parse::<u32>().ok()?.into());
    Some(announced.saturating_sub(KEEP_ALIVE_MARGIN.min(announced / 2)))
}

/// The longest header section, in bytes of uncompressed names and values.
const MAX_HEADER_LIST: u32 = 16 << 10;

/// A connection of HTTP/2.
pub(crate) struct Http2Connection {
    sender: http2::SendRequest<RequestBody>,
    meter: Meter,
    retired: AtomicBool,
}

/// Returns the builder of connections.
pub(crate) fn http2_builder(settings: &HttpClientSettings) -> http2::Builder<TokioExecutor> {
    let mut builder = http2::Builder::new(TokioExecutor::new());
    builder.timer(TokioTimer::new()).adaptive_window(true).max_header_list_size(MAX_HEADER_LIST);
    if let Some(pings) = settings.http2_pings {
        builder.keep_alive_interval(pings.interval).keep_alive_timeout(pings.timeout).keep_alive_while_idle(true);
    }
    builder
}

impl Http2Connection {
    /// Opens a connection over an HTTP/2 link.
    pub(crate) async fn open(link: Link, builder: &http2::Builder<TokioExecutor>) -> hyper::Result<Arc<Self>> {
        let (mut sender, driver) = builder.handshake(link.io).await?;
        // The task ends with the last sender and the last call, which receive the errors.
        TokioExecutor::new().execute(async move { drop(driver.await) });
        sender.ready().await?;
        Ok(Arc::new(Self { sender, meter: link.meter, retired: AtomicBool::new(false) }))
    }

    /// Returns true if it can take a request.
    pub(crate) fn is_usable(&self) -> bool {
        !self.retired.load(Ordering::Acquire) && self.sender.is_ready()
    }
}

/// A call on a connection. If it is dropped after the deadline and no byte of any answer arrived during the call, it
/// retires the connection, so that the next call opens a new one.
pub(crate) struct Http2Call {
    connection: Arc<Http2Connection>,
    pub(crate) is_reused: bool,
    deadline: Option<Instant>,
    /// The answer bytes on the meter when the call began.
    bytes_before: u64,
}

impl Http2Call {
    pub(crate) fn new(connection: Arc<Http2Connection>, is_reused: bool, deadline: Option<Instant>) -> Self {
        let bytes_before = connection.meter.answer_bytes();
        Self { connection, is_reused, deadline, bytes_before }
    }

    pub(crate) fn meter(&self) -> &Meter {
        &self.connection.meter
    }

    /// Sends a request and returns the head of the answer. The error holds the request if nothing of it was sent.
    pub(crate) async fn send(
        &mut self,
        request: Request<RequestBody>,
    ) -> Result<Response<Incoming>, TrySendError<Request<RequestBody>>> {
        let mut sender = self.connection.sender.clone();
        sender.try_send_request(request).await
    }

    /// Closes the connection to later calls. It ends after its current calls.
    pub(crate) fn retire(&self) {
        self.connection.retired.store(true, Ordering::Release);
    }
}

impl Drop for Http2Call {
    fn drop(&mut self) {
        let is_late = self.deadline.is_some_and(|deadline| Instant::now() >= deadline);
        if is_late && self.connection.meter.answer_bytes() == self.bytes_before {
            tracing::debug!("connection retired: silent until the deadline");
            self.retire();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keep_alive_is_shorter_than_announced() {
        for (value, expected) in [
            ("timeout=5", Some(4_000)),
            ("max=100, Timeout = \"60\"", Some(59_000)),
            ("timeout=1", Some(500)),
            ("timeout=0", Some(0)),
            ("max=100", None),
            ("timeout=soon", None),
            ("timeout", None),
        ] {
            let headers = HeaderMap::from_iter([(HeaderName::from_static("keep-alive"), value.parse().unwrap())]);
            assert_eq!(keep_alive(&headers), expected.map(Duration::from_millis), "{value}");
        }
        assert_eq!(keep_alive(&HeaderMap::new()), None);
    }
}
