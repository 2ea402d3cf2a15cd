//! The promotions that run in this process.

use std::collections::HashSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::ids::{DocumentId, ProcessId};

/// The documents that this process is promoting.
///
/// A pending document of this process that is not listed here is abandoned: its promotion failed, was dropped, or got no
/// answer from the store. [`super::ReleaseAbandonedPromotions`] releases it.
pub struct RunningPromotions {
    process: Box<dyn Fn() -> Option<ProcessId> + Send + Sync>,
    documents: Mutex<HashSet<DocumentId>>,
}

/// A listed promotion. Dropping it removes it from the list.
pub(super) struct RunningPromotion<'a> {
    list: &'a RunningPromotions,
    id: DocumentId,
}

impl RunningPromotions {
    /// Creates an empty list. `process` returns the id that the store knows this process by, if it has one.
    pub fn new(process: impl Fn() -> Option<ProcessId> + Send + Sync + 'static) -> Self {
        Self { process: Box::new(process), documents: Mutex::default() }
    }

    /// Returns the current id of this process.
    pub(super) fn process(&self) -> Option<ProcessId> {
        (self.process)()
    }

    /// Lists a promotion. Must be called before its document is reserved.
    pub(super) fn begin(&self, id: &DocumentId) -> RunningPromotion<'_> {
        self.documents().insert(id.clone());
        RunningPromotion { list: self, id: id.clone() }
    }

    /// Returns true while the document is being promoted.
    pub(super) fn contains(&self, id: &DocumentId) -> bool {
        self.documents().contains(id)
    }

    fn documents(&self) -> MutexGuard<'_, HashSet<DocumentId>> {
        self.documents.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for RunningPromotion<'_> {
    fn drop(&mut self) {
        self.list.documents().remove(&self.id);
    }
}
