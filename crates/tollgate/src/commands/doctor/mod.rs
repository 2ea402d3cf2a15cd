//! `tollgate doctor`

mod checks;
mod reach;
mod report;
mod run;

pub use run::run;
