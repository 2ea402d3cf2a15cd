//! Locks and atomic numbers. With `--cfg shuttle` they are those of a model checker, which tries thread interleavings.

#[cfg(shuttle)]
pub(super) use shuttle::sync::atomic::{AtomicBool, AtomicU64};
#[cfg(shuttle)]
pub(super) use shuttle::sync::{Mutex, MutexGuard, RwLock};
#[cfg(not(shuttle))]
pub(super) use std::sync::atomic::{AtomicBool, AtomicU64};
#[cfg(not(shuttle))]
pub(super) use std::sync::{Mutex, MutexGuard, RwLock};
