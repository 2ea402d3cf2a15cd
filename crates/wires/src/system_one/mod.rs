//! System One's format and its dialects: `state` and a map of questions in, `answers` and `usage` out. It is the
//! canonical form itself.

mod codec;
pub mod errors;
pub mod provider_request;
pub mod provider_response;

pub use codec::{ResponseWrapper, SystemOne};
