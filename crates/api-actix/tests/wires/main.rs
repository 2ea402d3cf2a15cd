//! The formats behind the detection of bodies, and their schemas in the served document.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

#[path = "../../../wires/tests/client/support.rs"]
mod answers;
mod golden;
mod properties;
mod support;
