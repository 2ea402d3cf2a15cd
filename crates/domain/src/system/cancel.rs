//! A sign for long work that nobody waits for it any more.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Tells work that its result is not needed any more. Clones are one flag.
#[derive(Debug, Clone, Default)]
pub struct CancelFlag {
    cancelled: Arc<AtomicBool>,
    #[cfg(any(test, feature = "testing"))]
    checks: Option<Arc<Checks>>,
}

impl CancelFlag {
    /// True once the work should end. Cheap: work checks it often.
    pub fn is_cancelled(&self) -> bool {
        #[cfg(any(test, feature = "testing"))]
        if let Some(checks) = &self.checks
            && checks.made.fetch_add(1, Ordering::SeqCst) >= checks.passed
        {
            return true;
        }
        self.cancelled.load(Ordering::Relaxed)
    }

    /// Asks the work to end.
    pub fn cancel(&self) {
        self.cancelled.store(true, Ordering::Relaxed);
    }

    /// A guard that cancels when it is dropped.
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
    /// A flag that is cancelled after so many checks, which it counts: the measure of work done.
    pub fn after_checks(passed: usize) -> Self {
        let checks = Checks { passed, made: std::sync::atomic::AtomicUsize::new(0) };
        Self { checks: Some(Arc::new(checks)), ..Self::default() }
    }

    /// The checks made so far; zero for a flag that does not count.
    pub fn checks(&self) -> usize {
        self.checks.as_ref().map_or(0, |checks| checks.made.load(Ordering::SeqCst))
    }
}
