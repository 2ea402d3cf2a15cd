//! Allowances: the parts of limits that this process has drawn and spends without asking the store.
//!
//! Pure state without clock and I/O. The owner of a [`WorkspaceAllowances`] draws from the store, appends to the
//! journal and reports both here; the methods return amounts to spend and to return. Each workspace has one value and
//! one lock.
//!
//! For every counter `free = amount - held - charged >= 0`. The amount grows by grants alone and shrinks by returns and
//! by folds of charges, so that the store's `spent + allotted` never counts a dollar less than this process may spend.
//!
//! A charge above its hold takes free amounts first. The rest is an excess: it raises `spent` when it is folded. Until
//! then no hold is granted in its counters, neither from amounts that other requests free nor from grants that the store
//! decides without it. So the charges of a process exceed its draws only by the excesses of the requests that were in
//! flight at the same time.

mod counter;
mod workspace;

pub use counter::{CounterId, CounterPeriod};
pub use workspace::{
    AllowanceSettings, ChargeError, CounterCharge, CounterStatus, HoldError, Shortfall, Wish, WorkspaceAllowances,
};

#[cfg(test)]
mod tests;
