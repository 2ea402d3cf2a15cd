//! `tollgate doctor`

mod checks;
mod oddities;
mod reach;
mod report;
mod run;

pub use run::run;
