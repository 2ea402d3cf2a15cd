//! The port for HTTP metrics.

use std::time::Duration;

use actix_web::http::Method;
use domain::rate::RateLimited;
use domain::system::Clock;

/// Records HTTP events for metrics. Called on every request: MUST NOT block.
pub trait Recorder: Send + Sync {
    /// Records the start of an in-flight operation.
    fn record_start(&self);

    /// Records the end of an in-flight operation.
    fn record_end(&self);

    /// Records a response, or a client disconnect.
    fn record_answer(&self, answer: &Answer);

    /// Records a rejection by a rate limit.
    fn record_rate_limit(&self, limited: &RateLimited);

    /// Records a rejection by a bound on in-flight operations or body memory.
    fn record_rejection(&self, bound: AdmissionBound);
}

/// The bound that rejected a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AdmissionBound {
    /// The total limit on in-flight operations.
    InFlight,
    /// The key's share of in-flight operations.
    InFlightOfKey,
    /// The workspace's share of in-flight operations.
    InFlightOfWorkspace,
    /// The total body memory.
    BodyMemory,
    /// The workspace's share of the body memory.
    BodyMemoryOfWorkspace,
}

impl AdmissionBound {
    /// Every bound.
    pub const ALL: [Self; 5] =
        [Self::InFlight, Self::InFlightOfKey, Self::InFlightOfWorkspace, Self::BodyMemory, Self::BodyMemoryOfWorkspace];

    /// Returns the metric label.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::InFlight => "in_flight",
            Self::InFlightOfKey => "in_flight_per_key",
            Self::InFlightOfWorkspace => "in_flight_per_workspace",
            Self::BodyMemory => "body_memory",
            Self::BodyMemoryOfWorkspace => "body_memory_per_workspace",
        }
    }
}

/// The outcome of a request. No field contains text of the caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Answer {
    /// The pattern of its route; `None` for an unknown path.
    pub route: Option<&'static str>,
    /// The method; `other` for an uncommon one.
    pub method: &'static str,
    /// The status; 499 if the client disconnected first.
    pub status: u16,
    /// The time from the request head to the response.
    pub took: Duration,
}

/// A recorder that does nothing, for embedding and tests.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoRecorder;

impl Recorder for NoRecorder {
    fn record_start(&self) {}
    fn record_end(&self) {}
    fn record_answer(&self, _: &Answer) {}
    fn record_rate_limit(&self, _: &RateLimited) {}
    fn record_rejection(&self, _: AdmissionBound) {}
}

/// The status of a request whose client disconnected.
const CLIENT_CLOSED_REQUEST: u16 = 499;

/// A request in progress. It is recorded once, even if the server drops it after a disconnect.
pub(crate) struct InFlightRequest<'a> {
    recorder: &'a dyn Recorder,
    clock: &'a dyn Clock,
    pub(crate) began: Duration,
    route: Option<&'static str>,
    method: &'static str,
    status: u16,
    took: Option<Duration>,
}

impl<'a> InFlightRequest<'a> {
    pub(crate) fn begin(
        recorder: &'a dyn Recorder,
        clock: &'a dyn Clock,
        route: Option<&'static str>,
        method: &Method,
    ) -> Self {
        let began = clock.monotonic();
        Self { recorder, clock, began, route, method: method_label(method), status: CLIENT_CLOSED_REQUEST, took: None }
    }

    /// Returns the time since the request began.
    pub(crate) fn took(&self) -> Duration {
        self.clock.monotonic().saturating_sub(self.began)
    }

    /// Records the response status and the duration.
    pub(crate) fn finish(mut self, status: u16, took: Duration) {
        self.status = status;
        self.took = Some(took);
    }
}

impl Drop for InFlightRequest<'_> {
    fn drop(&mut self) {
        let (route, method, status) = (self.route, self.method, self.status);
        let took = self.took.unwrap_or_else(|| self.took());
        self.recorder.record_answer(&Answer { route, method, status, took });
    }
}

/// Returns the method label. A method is text of the caller, so only common ones are named.
fn method_label(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::HEAD => "HEAD",
        Method::POST => "POST",
        Method::PUT => "PUT",
        Method::PATCH => "PATCH",
        Method::DELETE => "DELETE",
        Method::OPTIONS => "OPTIONS",
        _ => "other",
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use domain::testing::FixedClock;

    use super::*;

    #[derive(Default)]
    struct Answers(Mutex<Vec<Answer>>);

    impl Recorder for Answers {
        fn record_start(&self) {}
        fn record_end(&self) {}
        fn record_answer(&self, answer: &Answer) {
            self.0.lock().unwrap().push(*answer);
        }
        fn record_rate_limit(&self, _: &RateLimited) {}
        fn record_rejection(&self, _: AdmissionBound) {}
    }

    #[test]
    fn request_is_recorded_once_when_answered_or_dropped() {
        let (answers, clock) = (Answers::default(), FixedClock::default());
        let begin = |method: &[u8]| {
            let method = Method::from_bytes(method).unwrap();
            InFlightRequest::begin(&answers, &clock, Some("/a"), &method)
        };
        let (answered, dropped) = (begin(b"PATCH"), begin(b"MINE"));
        clock.advance(Duration::from_millis(5));
        let took = answered.took();
        answered.finish(200, took);
        drop(dropped);
        let answer = |method, status| Answer { route: Some("/a"), method, status, took: Duration::from_millis(5) };
        assert_eq!(*answers.0.lock().unwrap(), [answer("PATCH", 200), answer("other", 499)]);
    }
}
