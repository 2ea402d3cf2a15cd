//! `tollgate demo`: every operation once, on a temporary instance, over real HTTP.

mod exchange;
mod run;
mod script;

pub use run::run;
