//! Building blocks of the halves for providers: request bodies, readers of answers and of errors.

pub mod account;
mod answer;
mod errors;
mod request;

pub use answer::{
    BadAnswer, MalformedAnswer, Object, WireAnswer, as_text, elements, is_null, number, probability, string,
};
pub(crate) use answer::{
    UsageNames, by_question, confidence, distribution, distribution_of_map, level, read_answers, read_choice,
    read_score, required_number, required_probability, type_of, usage,
};
pub use errors::{CodeAndMessage, ErrorMeaning, ReadError, read_error_body};
pub use request::{Defaults, ModelLocation, Piece, RequestBody, UnsupportedByWire, VendorCodec, WireCodec};
pub(crate) use request::{Limits, body, object};
