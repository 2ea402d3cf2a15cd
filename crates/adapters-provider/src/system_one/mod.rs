//! The `system-one` wire: `state` and a map of questions in, `answers` and `usage` out, over HTTP.

mod provider;
pub mod request;
pub mod response;

pub use provider::{SystemOneError, SystemOneProvider, SystemOneSettings};
