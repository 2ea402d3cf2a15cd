//! Spend limits, the amounts that count against them, and holds.
//!
//! The upper bound of a request's cost is held in all its accounts before anything is sent, and the real cost replaces
//! it afterwards. The spent and the held amount together therefore never exceed a limit, also under concurrent
//! requests.

mod admission;
mod alerts;
pub mod allowances;
mod bill;
mod draw;
pub mod entries;
mod journal;
mod journaled_ledger;
mod model;
mod ports;
mod store;

pub use admission::*;
pub use alerts::*;
pub use bill::*;
pub use draw::*;
pub use journal::*;
pub use journaled_ledger::{
    ForgetError, ForgetProcesses, ForgetSettings, JournaledLedger, LedgerSettings, RecoverJournals, RecoveryReport,
    RenewingLedger, RenewingLedgerPorts,
};
pub use model::*;
pub use ports::*;
pub use store::*;
