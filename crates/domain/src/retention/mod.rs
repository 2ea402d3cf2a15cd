//! Retention: the removal of old rows.

mod apply_retention;

pub use apply_retention::*;
