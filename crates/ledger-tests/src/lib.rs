//! Tests of the ledger with the real store and the real journal; see `tests/`. No other crate below the binary depends
//! on both.
