//! The evaluation of models: from labelled answers to a report. Pure functions over the [statistics](crate::statistics).
//!
//! [`Report::new`] collects [`EvaluatedAnswer`]s into groups, whose figures are never pooled, and compares groups on the
//! items that both answered; [`LiveAnswers`] collects those of stored evidence. `docs/evidence.md` explains the figures.

mod cascade;
mod live;
mod model;
mod report;
mod requirement;
mod tally;

pub use cascade::*;
pub use live::*;
pub use model::*;
pub use report::*;
pub use requirement::*;
pub use tally::{Latency, MissingDecision, TalliedAnswer};

#[cfg(test)]
mod tests;
