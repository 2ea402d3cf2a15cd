//! Passive health of endpoints: what the attempts of callers tell, kept as a pure state machine. Nothing is called
//! only to see whether it answers.
//!
//! Each endpoint has a breaker. *Closed* lets every attempt through. It *opens* after too many failures, at once where
//! our credentials are turned down, and for as long as a provider asked for with `Retry-After`. When an opening is
//! over the breaker is *half-open*: one attempt at a time goes through as a probe; its success closes the breaker, its
//! failure opens it for twice as long.
//!
//! Attempts that began before the breaker opened are *late* when they report. Their latency counts. On the breaker
//! they have no say, except that a provider's `Retry-After` is always kept to.
//!
//! Time is passed in as `now`, a [`Duration`](std::time::Duration) since a fixed moment, of a clock that never goes
//! back ([`Clock::monotonic`](crate::system::Clock::monotonic)). A `now` older than one passed before does no harm:
//! threads read the clock before they wait for each other.

mod board;
mod breaker;
mod decay;
mod endpoint_health;
mod histogram;
mod observation;
mod policy;
#[cfg(test)]
mod tests;

pub use board::HealthBoard;
pub use breaker::{Admission, BreakerState, Permit};
pub use endpoint_health::{EndpointHealth, HealthView, LatencyPercentiles, ThroughputPercentiles};
pub use observation::Observation;
pub use policy::HealthPolicy;
