//! The formats of requests, answers, errors and catalogue rows: pure functions from values to JSON and back. No HTTP, no
//! runtime and no clock.
//!
//! | module | content |
//! |---|---|
//! | [`system_one`], [`openai`], [`gemini`], [`sglang`], [`chat`] | one folder a vendor: both halves of its format |
//! | [`formats`] | the list of formats: requests, answers, errors and codecs by format |
//! | [`client`] | building blocks of the halves for clients |
//! | [`provider`] | building blocks of the halves for providers |
//! | [`canonical`] | conversion between the canonical form and formats with fewer features |
//! | [`catalogue`] | the JSON of catalogue rows |
#![deny(missing_docs)]

pub mod canonical;
pub mod catalogue;
pub mod chat;
pub mod client;
pub mod formats;
pub mod gemini;
pub mod openai;
pub mod provider;
pub mod sglang;
pub mod system_one;
