//! Views of rejected requests.

use domain::usage::{RejectionCount, RejectionSum};
use serde::Serialize;

use super::time;

/// The rejected requests of a key in one hour, with one status and reason.
#[derive(Debug, Serialize)]
pub struct RejectionView {
    /// The start of the hour.
    pub hour: String,
    /// The HTTP status.
    pub status: u16,
    /// The reason.
    pub reason: &'static str,
    /// The number of requests.
    pub requests: u64,
}

impl RejectionView {
    /// The head of a table.
    pub const HEAD: [&'static str; 4] = ["HOUR", "STATUS", "REASON", "REQUESTS"];

    /// Returns the row of a table.
    pub fn line(&self) -> [String; 4] {
        [self.hour.clone(), self.status.to_string(), self.reason.to_owned(), self.requests.to_string()]
    }
}

impl From<&RejectionCount> for RejectionView {
    fn from(count: &RejectionCount) -> Self {
        Self {
            hour: time(count.hour),
            status: count.rejection.status.code(),
            reason: count.rejection.reason.as_str(),
            requests: count.count,
        }
    }
}

/// Sums of rejected requests per status and reason.
#[derive(Debug, Serialize)]
pub struct RejectionSumsView {
    /// The property of the groups: `reason`.
    pub by: &'static str,
    /// The sum of each status and reason.
    pub data: Vec<RejectionSumView>,
    /// The sum of all.
    pub total: RejectionTotalsView,
}

/// The number of rejected requests with one status and reason.
#[derive(Debug, Serialize)]
pub struct RejectionSumView {
    /// The reason.
    pub group: &'static str,
    /// The HTTP status.
    pub status: u16,
    /// The number of requests.
    pub requests: u64,
    /// The start of the newest hour with such a request.
    pub last_hour: String,
}

impl RejectionSumView {
    /// Returns the row of a table.
    pub fn line(&self) -> [String; 4] {
        [self.group.to_owned(), self.status.to_string(), self.requests.to_string(), self.last_hour.clone()]
    }
}

impl From<&RejectionSum> for RejectionSumView {
    fn from(sum: &RejectionSum) -> Self {
        Self {
            group: sum.reason.as_str(),
            status: sum.status.code(),
            requests: sum.count,
            last_hour: time(sum.last_hour),
        }
    }
}

/// The number of all rejected requests.
#[derive(Debug, Serialize)]
pub struct RejectionTotalsView {
    /// The number of requests.
    pub requests: u64,
}
