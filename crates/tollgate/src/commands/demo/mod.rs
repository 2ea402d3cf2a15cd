//! `tollgate demo`: everything once, on a throwaway instance, over real HTTP.

mod client;
mod exchange;
mod fixtures;
mod run;
mod script;
mod story;

pub use run::run;
