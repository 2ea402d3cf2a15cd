//! Fuzz targets for everything that reads bytes from outside: requests by every inbound wire, forms, packed bodies,
//! the answers of providers by every outbound wire, and the journal, which a damaged disk may have changed.
//!
//! A target claims more than that nothing panics. What is read as a request must be written by each outbound wire or
//! refused by it, and must be answerable by each inbound one; what is read as an answer must be checked or refused,
//! and then be written by each inbound wire with every name that was asked.
//!
//! | module | what |
//! |---|---|
//! | [`targets`] | the list of targets |
//! | [`requests`] | bytes to a request, and on to every outbound wire |
//! | [`readers`] | bytes to an answer of a provider, and on to every inbound wire |
//! | [`chat`] | the wire to chat models, whose answers are made here |
//! | [`filters`] | requests through the content filters |
//! | [`answers`] | what holds of an answer by every inbound wire |
//! | [`journal`] | payloads of journal entries |
//! | `segments` | the bytes of journal segments; built with `--cfg fuzzing` alone |
//! | `packed` | forms and packed bodies; built with `--cfg fuzzing` alone |
//! | [`seeds`] | what the search begins with, from the golden files of the repository |
//! | [`mutation`] | changes to JSON that leave it JSON |
//! | [`search`] | the search by mutation alone, which needs no C++ compiler |
//!
//! `cargo xtask fuzz` builds and runs it.
#![deny(missing_docs)]

pub mod answers;
pub mod chat;
pub mod filters;
pub mod journal;
pub mod mutation;
#[cfg(fuzzing)]
pub mod packed;
pub mod readers;
pub mod requests;
pub mod search;
pub mod seeds;
#[cfg(fuzzing)]
pub mod segments;
pub mod targets;

mod codecs;
mod golden;
mod planted;
mod random;
