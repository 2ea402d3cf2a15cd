//! `tollgate eval …`: asks models about labelled items, and reports how far their answers can be relied on.

mod dataset;
mod html;
mod live;
mod report;
mod results;
mod run;
mod sentences;
mod tables;

pub use run::run;

#[cfg(test)]
mod tests;
