//! The port for HTTP metrics.

use std::time::Duration;

use actix_web::http::Method;
use domain::rate::RateLimited;
use domain::system::Clock;

use super::admission_bound::AdmissionBound;

/// Records HTTP events for metrics. Called on every request: MUST NOT block.
pub trait Recorder: Send + Sync {
    /// Records the start of an in-flight operation.
    fn entered(&self);

    /// Records the end of an in-flight operation.
    fn left(&self);

    /// Records a response, or a client disconnect.
    fn answered(&self, answer: &Answer);

    /// Records a rejection by a rate limit.
    fn rate_limited(&self, limited: &RateLimited);

    /// Records a rejection by a bound on in-flight operations or body memory.
    fn rejected(&self, bound: AdmissionBound);
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
    fn entered(&self) {}
    fn left(&self) {}
    fn answered(&self, _: &Answer) {}
    fn rate_limited(&self, _: &RateLimited) {}
    fn rejected(&self, _: AdmissionBound) {}
}

/// The status of a request whose client disconnected.
const CALLER_LEFT: u16 = 499;

/// A request in progress. It is recorded once, even if the server drops it after a disconnect.
pub(crate) struct UnderWay<'a> {
    recorder: &'a dyn Recorder,
    clock: &'a dyn Clock,
    began: Duration,
    route: Option<&'static str>,
    method: &'static str,
    status: u16,
    took: Option<Duration>,
}

impl<'a> UnderWay<'a> {
    pub(crate) fn begin(
        recorder: &'a dyn Recorder,
        clock: &'a dyn Clock,
        route: Option<&'static str>,
        method: &Method,
    ) -> Self {
        let began = clock.monotonic();
        Self { recorder, clock, began, route, method: name_of(method), status: CALLER_LEFT, took: None }
    }

    /// Returns the time since the request began.
    pub(crate) fn took(&self) -> Duration {
        self.clock.monotonic().saturating_sub(self.began)
    }

    /// Records the response status and the duration.
    pub(crate) fn answered(mut self, status: u16, took: Duration) {
        self.status = status;
        self.took = Some(took);
    }
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        let (route, method, status) = (self.route, self.method, self.status);
        let took = self.took.unwrap_or_else(|| self.took());
        self.recorder.answered(&Answer { route, method, status, took });
    }
}

/// Returns the method label. A method is text of the caller, so only common ones are named.
fn name_of(method: &Method) -> &'static str {
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
        fn entered(&self) {}
        fn left(&self) {}
        fn answered(&self, answer: &Answer) {
            self.0.lock().unwrap().push(*answer);
        }
        fn rate_limited(&self, _: &RateLimited) {}
        fn rejected(&self, _: AdmissionBound) {}
    }

    #[test]
    fn request_is_recorded_once_when_answered_or_dropped() {
        let (answers, clock) = (Answers::default(), FixedClock::default());
        let begin = |method: &[u8]| {
            let method = Method::from_bytes(method).unwrap();
            UnderWay::begin(&answers, &clock, Some("/a"), &method)
        };
        let (answered, dropped) = (begin(b"PATCH"), begin(b"MINE"));
        clock.advance(Duration::from_millis(5));
        let took = answered.took();
        answered.answered(200, took);
        drop(dropped);
        let answer = |method, status| Answer { route: Some("/a"), method, status, took: Duration::from_millis(5) };
        assert_eq!(*answers.0.lock().unwrap(), [answer("PATCH", 200), answer("other", 499)]);
    }
}
