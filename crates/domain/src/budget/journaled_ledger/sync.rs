//! Locks and atomic numbers. Built with `--cfg shuttle` they are those of a model checker, which tries orders of threads.

#[cfg(shuttle)]
pub(super) use shuttle::sync::atomic::{AtomicBool, AtomicU64};
#[cfg(shuttle)]
pub(super) use shuttle::sync::{Mutex, MutexGuard, RwLock};
#[cfg(not(shuttle))]
pub(super) use std::sync::atomic::{AtomicBool, AtomicU64};
#[cfg(not(shuttle))]
pub(super) use std::sync::{Mutex, MutexGuard, RwLock};
