//! Tests of the ledger over the real store and the real journal; see `tests/`. No other crate below the binary may see
//! both.
