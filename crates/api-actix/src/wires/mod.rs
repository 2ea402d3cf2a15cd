//! The wire formats of Decisions, one folder each: parsing of requests, writing of answers and errors. Pure functions;
//! [`dispatch`] selects the wire.

pub mod dispatch;
pub mod gemini;
pub mod openai;
pub mod sglang;
pub mod system_one;

mod answered;
mod body;
mod fault;
mod fields;
pub(crate) mod object;
mod path;
mod refusal;

pub use answered::Answered;
pub use body::Body;
pub(crate) use body::text;
pub use fault::BodyFault;
pub use refusal::{Place, Refusal};
