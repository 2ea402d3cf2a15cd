//! The ledger with a SQLite file and journals in a folder: the contract tests of the fakes and further ones.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod contract;
mod machine;
