//! Retention: the removal of old rows.

mod apply_retention;
mod model;

pub use apply_retention::{ApplyRetention, ApplyRetentionPorts};
pub use model::*;
