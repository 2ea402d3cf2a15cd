//! `tollgate doctor`

mod audit;
mod checks;
mod oddities;
mod reach;
mod report;
mod run;
mod secret_files;

pub use audit::audit;
pub use run::run;
