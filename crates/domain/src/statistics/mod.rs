//! Statistics of labelled answers: how often a model is right, how far its probabilities can be relied on, and the
//! threshold from which its answers need no person. Pure functions; `docs/evidence.md` explains the figures.
//!
//! A [`Decision`] is the decided value of an answer, its score the [`largest_probability`] of its distribution.
//! [`LabelledAnswers`] are the answers of one group with their labels, all selected alike.

mod binomial;
mod calibration;
mod cascade;
mod comparison;
mod label;
mod labelled;
mod model;
mod threshold;

pub use binomial::*;
pub use calibration::*;
pub use cascade::*;
pub use comparison::*;
pub use label::*;
pub use labelled::*;
pub use model::*;
pub use threshold::*;

#[cfg(test)]
mod tests;

/// Converts a count to a figure.
#[expect(clippy::cast_precision_loss, reason = "counts are far below 2^53")]
fn figure(count: usize) -> f64 {
    count as f64
}
