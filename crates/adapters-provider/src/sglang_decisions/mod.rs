//! The `sglang-decisions` wire: `input` and an array of `choice | score | yes_no` questions, answered by scoring
//! label tokens.

mod codec;
pub mod request;
pub mod response;

pub use codec::SglangDecisions;
