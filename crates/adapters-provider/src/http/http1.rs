//! An HTTP/1.1 connection without a task: the call that uses it drives it, or its pool's watcher while it is idle.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::task::{Context, Waker};

use http::uri::PathAndQuery;
use http::{Request, Response, Uri};
use hyper::body::Incoming;
use hyper::client::conn::TrySendError;
use hyper::client::conn::http1::{Builder, Connection, SendRequest};
use tokio::task::coop::unconstrained;
use tokio::time::Instant;

use super::connector::{Io, Link};
use super::meter::Meter;
use super::payload::TrackedPayload;

/// One connection, for one call at a time. Dropping it closes it.
pub(super) struct Http1Connection {
    sender: SendRequest<TrackedPayload>,
    /// `None` once the connection has ended.
    driver: Option<Connection<Io, TrackedPayload>>,
    pub(super) meter: Meter,
    /// True if a proxy forwards the requests, which then contain the whole target.
    forwarded: bool,
    /// True once an answer has come over it.
    pub(super) is_reused: bool,
    /// The time of its last answer.
    pub(super) idle_since: Instant,
}

impl Http1Connection {
    /// Opens a connection over an HTTP/1.1 link.
    pub(super) async fn open(link: Link) -> hyper::Result<Box<Self>> {
        let (sender, driver) = Builder::new().handshake(link.io).await?;
        Ok(Box::new(Self {
            sender,
            driver: Some(driver),
            meter: link.meter,
            forwarded: link.forwarded,
            is_reused: false,
            idle_since: Instant::now(),
        }))
    }

    /// Returns the request target: the path, or the whole address for a proxy.
    pub(super) fn request_target(&self, uri: &Uri) -> Uri {
        if self.forwarded {
            return uri.clone();
        }
        uri.path_and_query().cloned().unwrap_or_else(|| PathAndQuery::from_static("/")).into()
    }

    /// Reads and writes as much as possible, and registers the waker for more.
    pub(super) fn drive(&mut self, cx: &mut Context<'_>) {
        if let Some(driver) = &mut self.driver
            && Pin::new(driver).poll(cx).is_ready()
        {
            // The call receives errors; on an idle connection they are irrelevant.
            self.driver = None;
        }
    }

    /// Returns true if it can take a request.
    pub(super) fn is_usable(&self) -> bool {
        self.driver.is_some() && self.sender.is_ready()
    }

    /// Sends a request and returns the head of the answer; the body needs [`Self::drive`]. The error holds the request
    /// if nothing of it was sent.
    pub(super) async fn send(
        &mut self,
        request: Request<TrackedPayload>,
    ) -> Result<Response<Incoming>, TrySendError<Request<TrackedPayload>>> {
        // Only the driver advances the answer, so only the driver must wake this task.
        let mut answer = pin!(unconstrained(self.sender.try_send_request(request)));
        poll_fn(|cx| {
            self.drive(cx);
            answer.as_mut().poll(&mut Context::from_waker(Waker::noop()))
        })
        .await
    }
}
