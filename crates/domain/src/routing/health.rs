//! Passive health of endpoints: a pure state machine that receives the reports of attempts. It sends no probe requests.
//!
//! Each endpoint is throttled adaptively, after "Handling overload" in the Google SRE book: over a sliding window it
//! counts the requests that were sent and those that were accepted, and a further request is rejected with the
//! probability `max(0, (requests - K * accepts) / (requests + 1))`. An endpoint that fails half of its requests still
//! gets nearly all of them; one that fails all of them gets a trickle, and at least one request per probe interval.
//!
//! Failures that the content of a request can provoke count for the workspace that met them. They count for all
//! workspaces once a second workspace met some: see [`HealthBoard::admit`].
//!
//! Time is passed in as `now`, a [`Duration`](std::time::Duration) since a fixed point of a clock that never goes back
//! ([`Clock::monotonic`](crate::system::Clock::monotonic)). A `now` older than an earlier one is allowed:
//! threads read the clock before they wait for the lock.

mod board;
mod bound_excess;
mod measurements;
mod observation;
mod policy;
#[cfg(test)]
mod tests;
mod throttle;
mod window;

pub use board::{HealthBoard, HealthView, LatencyPercentiles, PauseDetector, ThroughputPercentiles};
pub use bound_excess::BoundExcess;
pub use observation::{AttemptError, AttemptReport, FailureClass, Observation};
pub use policy::HealthPolicy;
pub use throttle::{Admission, ThrottleView, ThrottledEndpoint, ThrottledEndpoints, rejection_probability};
