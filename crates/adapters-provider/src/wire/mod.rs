//! What the wires over HTTP have in common: how an answer body is taken apart, and what can be wrong with a request
//! or an answer.

mod answer;
mod codec;
mod object;
mod tokens;
mod uncarried;

pub use answer::{BadAnswer, MalformedAnswer, WireAnswer};
pub use codec::WireCodec;
pub(crate) use object::{Object, as_text, elements, number, string};
pub(crate) use tokens::{UsageNames, usage};
pub use uncarried::Uncarried;
