//! The ledger over a SQLite file and journals in a folder: the cases of the fakes, and more of them.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod contract;
mod machine;
