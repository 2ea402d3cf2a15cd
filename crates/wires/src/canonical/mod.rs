//! Conversion between the canonical form and wires with fewer features: JSON to text, default instructions, and answers
//! in canonical form.

mod answers;
mod instructions;
mod single_outcome;
mod text;

pub use answers::{Extras, choice, in_order, legend, noul, refusal, score};
pub use instructions::{default_instructions, instructions, sides};
pub use single_outcome::{Division, answer_single_outcome, divide, has_single_outcome, remaining_input};
pub use text::{compact, is_blank, text, texts_of_parts};
