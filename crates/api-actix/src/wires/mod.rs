//! The wire formats of Decisions, one folder each: parsing of requests, writing of answers and errors. Pure functions;
//! [`dispatch`] selects the wire.

pub mod dispatch;
pub mod gemini;
pub mod openai;
pub mod sglang;
pub mod system_one;

mod body;
mod body_error;
mod decision_response;
pub(crate) mod error_response;
mod fields;
pub(crate) mod object;
mod path;

pub use body::Body;
pub(crate) use body::text;
pub use body_error::BodyError;
pub use decision_response::DecisionResponse;
pub use error_response::{ErrorLocation, ErrorResponse};
