//! Conversion between the canonical form and wires with fewer features: JSON to text, default instructions, and answers
//! in canonical form.

mod alone;
mod answers;
mod instructions;
mod text;

pub(crate) use alone::left_to_ask;
pub use alone::{Division, answer_alone, divide, has_single_outcome};
pub use answers::{Extras, choice, in_order, legend, noul, refusal, score};
pub use instructions::{default_instructions, instructions, sides};
pub use text::{compact, is_blank, text, texts_of_parts};
