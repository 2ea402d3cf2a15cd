//! The removal of rows that were kept long enough.

mod apply_retention;
mod model;

pub use apply_retention::{ApplyRetention, ApplyRetentionPorts};
pub use model::*;
