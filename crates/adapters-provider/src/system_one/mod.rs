//! The `system-one` wire and its dialects: `state` and a map of questions in, `answers` and `usage` out.

mod codec;
pub mod errors;
pub mod request;
pub mod response;

pub use codec::SystemOne;
