//! Fuzz targets for every reader of external bytes: requests by every inbound wire, forms, compressed bodies, provider
//! answers by every outbound wire, and the journal, which a damaged disk may have changed.
//!
//! A target checks more than the absence of panics. Each outbound wire must write or reject every accepted request, and
//! each inbound wire must be able to answer it. Every accepted provider answer must be checked or rejected, and then
//! written by each inbound wire with the name of every question.
//!
//! | module | content |
//! |---|---|
//! | [`targets`] | the list of targets |
//! | [`requests`] | bytes to a request, and on to every outbound wire |
//! | [`readers`] | bytes to a provider's answer, and on to every inbound wire |
//! | [`chat`] | the wire to chat models, whose answers are built by the gateway |
//! | [`filters`] | requests through the content filters |
//! | [`answers`] | the properties of an answer by every inbound wire |
//! | [`journal`] | payloads of journal entries |
//! | `segments` | the bytes of journal segments; built with `--cfg fuzzing` alone |
//! | `packed` | forms and compressed bodies; built with `--cfg fuzzing` alone |
//! | [`seeds`] | the initial inputs, from the golden files of the repository |
//! | [`mutation`] | changes to JSON that keep it valid |
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
pub mod seeds;
#[cfg(fuzzing)]
pub mod segments;
pub mod targets;

mod codecs;
mod golden;
mod planted;
mod random;
