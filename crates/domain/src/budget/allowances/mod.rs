//! Allowances: the parts of limits that this process has drawn and spends without asking the store.
//!
//! Pure state without clock and I/O. The owner of a [`WorkspaceAllowances`] draws from the store, appends to the
//! journal and reports both here; the methods return amounts to spend and to return. Each workspace has one value and
//! one lock.
//!
//! For every counter `free = amount - held - charged >= 0`. The amount grows by grants alone and shrinks by returns and
//! by folds of charges, so that the store's `spent + allotted` never counts a dollar less than this process may spend.

mod counter;
mod journal_order;
mod workspace;

pub use counter::{CounterId, CounterPeriod};
pub use workspace::{
    AllowanceSettings, ChargeError, CounterCharge, CounterStatus, HoldError, Shortfall, Wish, WorkspaceAllowances,
};

#[cfg(test)]
mod tests;
