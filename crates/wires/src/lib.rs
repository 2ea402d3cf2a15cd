//! The formats of requests, answers, errors and catalogue rows: pure functions from values to JSON and back. No HTTP, no
//! runtime and no clock.

pub mod catalogue;
