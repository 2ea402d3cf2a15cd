//! Building blocks of the halves for providers: request bodies, readers of answers and of errors.

pub mod account;
mod answer;
mod body;
mod codec;
mod error_body;
mod error_meaning;
mod limits;
mod object;
mod settings;
mod tokens;
mod typed;
mod unsupported;

pub use answer::{BadAnswer, MalformedAnswer, WireAnswer};
pub use body::{Piece, RequestBody};
pub(crate) use body::{body, object};
pub use codec::WireCodec;
pub use error_body::{CodeAndMessage, read_error_body};
pub use error_meaning::{ErrorMeaning, ReadError};
pub(crate) use limits::Limits;
pub use object::{Object, as_text, elements, is_null, number, probability, string};
pub use settings::{Defaults, ModelLocation};
pub(crate) use tokens::{UsageNames, usage};
pub(crate) use typed::{
    by_question, confidence, distribution, distribution_of_map, level, required_number, required_probability, type_of,
};
pub use unsupported::UnsupportedByWire;
