//! Conversion between the canonical form and wires with fewer features: JSON to text, default instructions, and answers
//! in canonical form.

mod answers;
mod text;

pub use answers::{
    Division, Extras, answer_single_outcome, choice, divide, has_single_outcome, in_order, legend, noul, refusal,
    remaining_input, score,
};
pub use text::{compact, default_instructions, instructions, sides, text, texts_of_parts};
