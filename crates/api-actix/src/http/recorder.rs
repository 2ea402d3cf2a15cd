//! What the edge tells whoever counts.

use std::time::Duration;

use actix_web::http::Method;
use domain::rate::RateLimited;
use domain::system::Clock;

use super::admission_bound::AdmissionBound;

/// Counts what happens at the edge, for the operator. Is called on every request: MUST NOT block.
pub trait Recorder: Send + Sync {
    /// An operation took a place among those in flight.
    fn entered(&self);

    /// It gave the place back.
    fn left(&self);

    /// A request was answered, or given up by its caller.
    fn answered(&self, answer: &Answer);

    /// A caller was over one of its rates.
    fn rate_limited(&self, limited: &RateLimited);

    /// A request was turned away by a bound on operations in flight or on the memory of bodies.
    fn rejected(&self, bound: AdmissionBound);
}

/// How a request ended. Nothing of it is the caller's own text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Answer {
    /// The pattern of its route; `None` where the path means nothing.
    pub route: Option<&'static str>,
    /// Its method; `other` where it is none of the usual ones.
    pub method: &'static str,
    /// The status; 499 where the caller left before.
    pub status: u16,
    /// From its head to its answer.
    pub took: Duration,
}

/// Counts nothing: for embedding and for tests.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoRecorder;

impl Recorder for NoRecorder {
    fn entered(&self) {}
    fn left(&self) {}
    fn answered(&self, _: &Answer) {}
    fn rate_limited(&self, _: &RateLimited) {}
    fn rejected(&self, _: AdmissionBound) {}
}

/// The status of a request that nobody waited for any more.
const CALLER_LEFT: u16 = 499;

/// One request under way: it is recorded once, also where the server drops it because its caller left.
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

    /// From its beginning until now.
    pub(crate) fn took(&self) -> Duration {
        self.clock.monotonic().saturating_sub(self.began)
    }

    /// What it is answered with, and after how long.
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

/// A method is the caller's own text, so only the usual ones are told by name.
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
    fn a_request_is_recorded_once_whether_it_is_answered_or_dropped() {
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
