//! An HTTP/2 connection, shared by concurrent calls and driven by a task.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use http::{Request, Response};
use hyper::body::Incoming;
use hyper::client::conn::TrySendError;
use hyper::client::conn::http2::{Builder, SendRequest};
use hyper::rt::Executor;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use tokio::time::Instant;

use super::HttpClientSettings;
use super::connector::Link;
use super::meter::Meter;
use super::payload::TrackedPayload;

/// The longest header section, in bytes of uncompressed names and values.
const MAX_HEADER_LIST: u32 = 16 << 10;

/// One connection.
pub(super) struct Http2Connection {
    sender: SendRequest<TrackedPayload>,
    meter: Meter,
    retired: AtomicBool,
}

/// Returns the builder of connections.
pub(super) fn builder(settings: &HttpClientSettings) -> Builder<TokioExecutor> {
    let mut builder = Builder::new(TokioExecutor::new());
    builder.timer(TokioTimer::new()).adaptive_window(true).max_header_list_size(MAX_HEADER_LIST);
    if let Some(pings) = settings.http2_pings {
        builder.keep_alive_interval(pings.interval).keep_alive_timeout(pings.timeout).keep_alive_while_idle(true);
    }
    builder
}

impl Http2Connection {
    /// Opens a connection over an HTTP/2 link.
    pub(super) async fn open(link: Link, builder: &Builder<TokioExecutor>) -> hyper::Result<Arc<Self>> {
        let (mut sender, driver) = builder.handshake(link.io).await?;
        // The task ends with the last sender and the last call, which receive the errors.
        TokioExecutor::new().execute(async move { drop(driver.await) });
        sender.ready().await?;
        Ok(Arc::new(Self { sender, meter: link.meter, retired: AtomicBool::new(false) }))
    }

    /// Returns true if it can take a request.
    pub(super) fn is_usable(&self) -> bool {
        !self.retired.load(Ordering::Acquire) && self.sender.is_ready()
    }
}

/// A call on a connection. If it is dropped after the deadline and no byte of any answer arrived during the call, it
/// retires the connection, so that the next call opens a new one.
pub(super) struct Http2Call {
    connection: Arc<Http2Connection>,
    pub(super) is_reused: bool,
    deadline: Option<Instant>,
    /// The answer bytes on the meter when the call began.
    bytes_before: u64,
}

impl Http2Call {
    pub(super) fn new(connection: Arc<Http2Connection>, is_reused: bool, deadline: Option<Instant>) -> Self {
        let bytes_before = connection.meter.answer_bytes();
        Self { connection, is_reused, deadline, bytes_before }
    }

    pub(super) fn meter(&self) -> &Meter {
        &self.connection.meter
    }

    /// Sends a request and returns the head of the answer. The error holds the request if nothing of it was sent.
    pub(super) async fn send(
        &mut self,
        request: Request<TrackedPayload>,
    ) -> Result<Response<Incoming>, TrySendError<Request<TrackedPayload>>> {
        let mut sender = self.connection.sender.clone();
        sender.try_send_request(request).await
    }

    /// Closes the connection to later calls. It ends after its current calls.
    pub(super) fn retire(&self) {
        self.connection.retired.store(true, Ordering::Release);
    }
}

impl Drop for Http2Call {
    fn drop(&mut self) {
        let is_late = self.deadline.is_some_and(|deadline| Instant::now() >= deadline);
        if is_late && self.connection.meter.answer_bytes() == self.bytes_before {
            tracing::debug!("provider connection retired: silent until the deadline");
            self.retire();
        }
    }
}
