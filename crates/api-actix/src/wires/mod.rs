//! The forms in which Decisions are asked and answered, one folder a wire: how a request is read, how an answer and
//! how a failure is written. Pure functions; which of them a request meets is told in [`dispatch`].

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
