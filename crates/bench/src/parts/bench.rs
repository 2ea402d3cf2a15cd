//! The definitions that all parts share.

use std::io::Write as _;
use std::path::PathBuf;
use std::time::Duration;

use crate::gateway::Gateway;
use crate::process::Helper;
use crate::seed::SeededKey;

/// The state that all parts share.
pub struct Bench {
    pub(super) tollgate: PathBuf,
    pub(super) gateway: Gateway,
    pub(super) upstream: Helper,
    /// The keys created in the benchmark's workspace.
    pub(super) keys: Vec<SeededKey>,
    pub(super) rounds: usize,
    pub(super) duration: Duration,
    pub(super) quick: bool,
    pub(super) large: bool,
    pub(super) replica_keys: usize,
    pub(super) records: usize,
}

/// Prints progress to the terminal.
pub(super) fn print_progress(what: &str) {
    let _ = writeln!(std::io::stderr(), "measuring: {what}");
}

pub(super) fn mib(kib: u64) -> f64 {
    crate::statistics::figure(kib) / 1024.0
}
