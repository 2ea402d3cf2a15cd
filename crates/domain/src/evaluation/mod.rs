//! The evaluation of models: from labelled answers to a report. Pure functions over the [statistics](crate::statistics).
//!
//! [`Report::new`] collects [`EvaluatedAnswer`]s into groups, whose figures are never pooled, and compares groups on the
//! items that both answered. `docs/evidence.md` explains the figures.

mod cascade;
mod model;
mod report;
mod requirement;

pub use cascade::*;
pub use model::*;
pub use report::*;
pub use requirement::*;

#[cfg(test)]
mod tests;
