//! Destinations of traces.

use serde::Serialize;

/// A destination that answered a test.
#[derive(Serialize)]
pub struct TestedDestination {
    /// Its id.
    pub id: String,
    /// Always true; a test that fails is an error.
    pub reached: bool,
}

/// Dead letters that are due again.
#[derive(Serialize)]
pub struct Revived {
    /// How many.
    pub revived_count: u64,
}
