//! The admission of an attempt, and the list of endpoints that rejected one.

use std::fmt;
use std::time::Duration;

use super::AttemptError;

/// The decision on one attempt at one endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Admission {
    /// The endpoint is not throttled, or this attempt is a due probe: it keeps its position in the order.
    Normal,
    /// The endpoint is throttled and the attempt was admitted by chance: endpoints that are not throttled come first.
    Throttled,
    /// The endpoint is throttled and the attempt was rejected.
    Rejected {
        /// The time until the back-off ends or the next probe is due, at most [`super::HealthPolicy::max_backoff`].
        retry_in: Duration,
        /// The last failure of the workspace at this endpoint, or else of any workspace.
        last_error: Option<AttemptError>,
    },
}

/// An endpoint that rejected an attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ThrottledEndpoint {
    /// The slug of the provider.
    pub provider: String,
    /// The last known failure.
    pub last_error: Option<AttemptError>,
}

/// The endpoints that rejected an attempt, each once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ThrottledEndpoints {
    /// The endpoints, in the order of their rejections.
    pub endpoints: Vec<ThrottledEndpoint>,
    /// The shortest wait of all of them.
    pub retry_in: Duration,
}

/// The most endpoints named in a message.
const MAX_NAMED: usize = 3;

impl ThrottledEndpoints {
    /// Creates a list of one endpoint.
    pub fn new(endpoint: ThrottledEndpoint, retry_in: Duration) -> Self {
        Self { endpoints: vec![endpoint], retry_in }
    }

    /// Adds an endpoint to a list that may not exist yet.
    pub fn add(list: &mut Option<Self>, endpoint: ThrottledEndpoint, retry_in: Duration) {
        match list {
            None => *list = Some(Self::new(endpoint, retry_in)),
            Some(list) => {
                list.retry_in = list.retry_in.min(retry_in);
                if !list.endpoints.contains(&endpoint) {
                    list.endpoints.push(endpoint);
                }
            }
        }
    }
}

impl fmt::Display for ThrottledEndpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} throttled", self.provider)?;
        match self.last_error {
            Some(error) => write!(f, ", last failed with {error}"),
            None => Ok(()),
        }
    }
}

/// `typesafe throttled, last failed with 401; retry in 5 s`
impl fmt::Display for ThrottledEndpoints {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, endpoint) in self.endpoints.iter().take(MAX_NAMED).enumerate() {
            write!(f, "{}{endpoint}", if index == 0 { "" } else { "; " })?;
        }
        if let Some(more @ 1..) = self.endpoints.len().checked_sub(MAX_NAMED) {
            write!(f, "; {more} more")?;
        }
        let seconds = self.retry_in.as_secs().saturating_add(u64::from(self.retry_in.subsec_nanos() > 0)).max(1);
        write!(f, "; retry in {seconds} s")
    }
}
