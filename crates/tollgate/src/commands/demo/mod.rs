//! `tollgate demo`: every operation once, on a temporary instance, over real HTTP.

mod client;
mod exchange;
mod fixtures;
mod run;
mod script;
mod story;

pub use run::run;
