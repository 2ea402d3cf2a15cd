//! `tollgate ask`

mod answers;
mod body;
mod client;
mod run;

pub use run::run;
