//! Building blocks of the wires over HTTP: parsing of answers, and errors of requests and answers.

mod answer;
mod beginning;
mod body;
mod codec;
mod object;
mod tokens;
mod typed;
mod unsupported;

pub use answer::{BadAnswer, MalformedAnswer, WireAnswer};
pub(crate) use beginning::close_json;
pub(crate) use body::{body, object};
pub use codec::WireCodec;
pub(crate) use object::{Object, as_text, elements, is_null, number, probability, string};
pub(crate) use tokens::{UsageNames, usage};
pub(crate) use typed::{
    by_question, confidence, distribution, distribution_of_map, level, required_number, required_probability, type_of,
};
pub use unsupported::UnsupportedByWire;
