//! Money that may be spent: limits, the amounts that count against them, and the holds that keep them.
//!
//! Every request that could cost something is bounded before anything is sent, the bound is held in every account
//! that it counts in, and the real cost replaces it afterwards. So the spent and the held amount together never exceed a
//! limit, whatever runs at the same time.

mod admission;
pub mod allowances;
mod bill;
mod draw;
pub mod entries;
mod errors;
mod journal;
mod journaled_ledger;
mod model;
mod period;
mod ports;
mod read_only_ledger;
mod reports;
mod store;

pub use admission::*;
pub use bill::*;
pub use draw::*;
pub use errors::*;
pub use journal::*;
pub use journaled_ledger::{
    ForgetError, ForgetProcesses, ForgetSettings, JournaledLedger, LedgerSettings, RecoverJournals, RecoveryReport,
};
pub use model::*;
pub use period::*;
pub use ports::*;
pub use read_only_ledger::ReadOnlyLedger;
pub use reports::*;
pub use store::*;
