//! The ledger of a process over the fakes: holds, charges, fold, returns and recovery.

mod contract;
