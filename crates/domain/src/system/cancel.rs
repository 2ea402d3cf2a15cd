//! A cancel flag for long work.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A flag that cancels work. Clones share the flag.
#[derive(Debug, Clone, Default)]
pub struct CancelFlag {
    cancelled: Arc<AtomicBool>,
    #[cfg(any(test, feature = "testing"))]
    checks: Option<Arc<Checks>>,
}

impl CancelFlag {
    /// Returns true once the work should end. It is cheap enough to be called often.
    pub fn is_cancelled(&self) -> bool {
        #[cfg(any(test, feature = "testing"))]
        if let Some(checks) = &self.checks
            && checks.made.fetch_add(1, Ordering::SeqCst) >= checks.passed
        {
            return true;
        }
        self.cancelled.load(Ordering::Relaxed)
    }

    /// Cancels the work.
    pub fn cancel(&self) {
        self.cancelled.store(true, Ordering::Relaxed);
    }

    /// Returns a guard that cancels the work when it is dropped.
    pub fn cancel_on_drop(&self) -> CancelOnDrop {
        CancelOnDrop(self.clone())
    }
}

/// See [`CancelFlag::cancel_on_drop`].
#[derive(Debug)]
pub struct CancelOnDrop(CancelFlag);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

/// Work that ended early because it was cancelled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the work was cancelled")]
pub struct Cancelled;

#[cfg(any(test, feature = "testing"))]
#[derive(Debug)]
struct Checks {
    passed: usize,
    made: std::sync::atomic::AtomicUsize,
}

#[cfg(any(test, feature = "testing"))]
impl CancelFlag {
    /// Creates a flag that is cancelled after `passed` checks and counts them, as a measure of the work done.
    pub fn after_checks(passed: usize) -> Self {
        let checks = Checks { passed, made: std::sync::atomic::AtomicUsize::new(0) };
        Self { checks: Some(Arc::new(checks)), ..Self::default() }
    }

    /// Returns the number of checks so far; zero for a flag that does not count.
    pub fn checks(&self) -> usize {
        self.checks.as_ref().map_or(0, |checks| checks.made.load(Ordering::SeqCst))
    }
}
