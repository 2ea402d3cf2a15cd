//! Destinations.

use serde::Serialize;

/// A destination that passed a test.
#[derive(Serialize)]
pub struct TestedDestination {
    /// Its id.
    pub id: String,
    /// Always true; a failed test is an error.
    pub reached: bool,
}

/// The result of a retry of dead letters.
#[derive(Serialize)]
pub struct RetriedView {
    /// The number of retried dead letters.
    pub retried_count: u64,
}
