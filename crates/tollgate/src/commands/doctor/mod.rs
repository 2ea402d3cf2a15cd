//! `tollgate doctor`

mod audit;
mod checks;
mod report;
mod run;
mod secret_files;
mod servers;
mod warnings;

pub use audit::audit;
pub use run::{check_configuration, run};
