//! An HTTP/1.1 connection without a task: the call that uses it drives it, or its pool's watcher while it is idle.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::task::{Context, Waker};
use std::time::Duration;

use http::header::HeaderName;
use http::uri::PathAndQuery;
use http::{HeaderMap, Request, Response, Uri};
use hyper::body::Incoming;
use hyper::client::conn::TrySendError;
use hyper::client::conn::http1::{Builder, Connection, SendRequest};
use tokio::task::coop::unconstrained;
use tokio::time::Instant;

use super::connector::{Io, Link};
use super::meter::Meter;
use super::payload::TrackedPayload;

/// The time between the end of a connection in the pool and its announced end.
const KEEP_ALIVE_MARGIN: Duration = Duration::from_secs(1);

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
    /// The time for which the peer keeps it open between two requests, if announced, less a margin.
    pub(super) keep_alive: Option<Duration>,
    /// The end of its time in the pool.
    pub(super) idle_until: Instant,
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
            keep_alive: None,
            idle_until: Instant::now(),
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
