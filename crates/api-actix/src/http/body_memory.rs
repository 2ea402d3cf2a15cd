//! The memory held by request bodies, with a total limit and a share for each workspace.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use domain::error::ErrorKind;
use domain::ids::IdMap;
use domain::usage::RejectionReason;

use super::admission_bound::{Account, AdmissionBound, AdmissionSettings, RETRY_AFTER, share_exceeded, subtract};
use super::error::ApiError;
use super::recorder::Recorder;

/// The memory that a request may take for each byte of its body once the body has arrived: the body, its parsed parts,
/// and the scan and the copy of content filters; and for each byte of a provider's answer: the answer as received,
/// decompressed, parsed and written. The tests of memory measure it.
pub const PROCESSING_COPIES: usize = 4;

/// Counts the bytes of bodies that are read, decompressed or processed, of providers' answers as they arrive, and of the
/// answers that wait to be written.
pub(crate) struct BodyMemory {
    limit: usize,
    share: usize,
    held: Mutex<HeldBytes>,
    recorder: Arc<dyn Recorder>,
}

#[derive(Debug, Default)]
struct HeldBytes {
    all: usize,
    accounts: IdMap<Account, usize>,
}

impl BodyMemory {
    pub(crate) fn new(settings: AdmissionSettings, recorder: Arc<dyn Recorder>) -> Self {
        let AdmissionSettings { body_memory_bytes: limit, body_memory_bytes_per_workspace: share, .. } = settings;
        Self { limit, share, held: Mutex::default(), recorder }
    }

    /// Opens a lease that holds no bytes yet.
    pub(crate) fn lease(self: &Arc<Self>, account: Account) -> BodyLease {
        BodyLease { memory: Arc::clone(self), account, body_bytes: 0, bytes: 0 }
    }

    /// Returns the bytes held by all bodies.
    pub(crate) fn held(&self) -> usize {
        self.lock().all
    }

    fn reject(&self, bound: AdmissionBound) -> ApiError {
        self.recorder.record_rejection(bound);
        if bound == AdmissionBound::BodyMemory {
            return ApiError::from_kind(ErrorKind::Unavailable)
                .reason(RejectionReason::Overloaded)
                .message("The gateway's memory for request bodies is used up; try again when other requests have ended")
                .retry_after(RETRY_AFTER);
        }
        let limit = self.share;
        share_exceeded("workspace", "body_bytes", limit).message(format!(
            "Rate limit exceeded: the bodies of this workspace's requests in flight take its share of {limit} bytes; \
             wait for one to end"
        ))
    }

    fn lock(&self) -> MutexGuard<'_, HeldBytes> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The bytes held by one body, until the lease is dropped.
pub(crate) struct BodyLease {
    memory: Arc<BodyMemory>,
    account: Account,
    /// The length of the whole body, once it has arrived.
    body_bytes: usize,
    bytes: usize,
}

impl std::fmt::Debug for BodyLease {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BodyLease").field("bytes", &self.bytes).finish_non_exhaustive()
    }
}

impl BodyLease {
    /// Sets the number of held bytes.
    ///
    /// # Errors
    /// 429 if the account's share is used up, 503 if the total is. The lease then keeps its previous size.
    pub(crate) fn resize(&mut self, bytes: usize) -> Result<(), ApiError> {
        if let Some(more) = bytes.checked_sub(self.bytes).filter(|more| *more > 0) {
            self.grow(more).map_err(|bound| self.memory.reject(bound))?;
        } else {
            self.shrink(self.bytes - bytes);
        }
        self.bytes = bytes;
        Ok(())
    }

    /// Holds what the request of a whole body may take; see [`PROCESSING_COPIES`].
    ///
    /// # Errors
    /// The same as [`Self::resize`].
    pub(crate) fn resize_for_processing(&mut self, body_bytes: usize) -> Result<(), ApiError> {
        self.body_bytes = body_bytes;
        self.resize(body_bytes.saturating_mul(PROCESSING_COPIES))
    }

    /// Holds the body and structures of that many bytes instead, if these take more than [`PROCESSING_COPIES`].
    ///
    /// # Errors
    /// 413 if the limits never allow that many, otherwise the same as [`Self::resize`].
    pub(crate) fn hold_structures(&mut self, structure_bytes: usize) -> Result<(), ApiError> {
        let bytes = self.body_bytes.saturating_add(structure_bytes);
        let most = self.memory.share.min(self.memory.limit);
        if bytes <= self.bytes {
            return Ok(());
        }
        if bytes > most {
            return Err(ApiError::from_kind(ErrorKind::PayloadTooLarge).message(format!(
                "The request takes {bytes} bytes of memory, and one request may take {most}; ask fewer questions, or \
                 send fewer assets"
            )));
        }
        self.resize(bytes)
    }

    /// Holds that many further bytes of a provider's answer, and what is made of them; see [`PROCESSING_COPIES`]. Returns
    /// false if the limits do not allow it. The request was admitted, so this is no rejection.
    pub(crate) fn hold_arriving_answer(&mut self, bytes: usize) -> bool {
        let more = bytes.saturating_mul(PROCESSING_COPIES);
        let is_held = self.grow(more).is_ok();
        self.bytes = self.bytes.saturating_add(if is_held { more } else { 0 });
        is_held
    }

    /// Returns what [`Self::hold_arriving_answer`] held for that many bytes.
    pub(crate) fn return_arriving_answer(&mut self, bytes: usize) {
        let left = self.bytes.saturating_sub(bytes.saturating_mul(PROCESSING_COPIES));
        self.shrink_to(left.max(self.body_bytes));
    }

    /// Holds at most this many bytes.
    pub(crate) fn shrink_to(&mut self, bytes: usize) {
        self.shrink(self.bytes.saturating_sub(bytes));
        self.bytes = self.bytes.min(bytes);
    }

    /// Holds at least this many bytes, even above the limits: an answer exists already. Later requests are then
    /// rejected until it is written.
    pub(crate) fn hold_answer(&mut self, bytes: usize) {
        let Some(more) = bytes.checked_sub(self.bytes) else { return };
        let mut held = self.memory.lock();
        held.all = held.all.saturating_add(more);
        let of_account = held.accounts.entry(self.account).or_default();
        *of_account = of_account.saturating_add(more);
        self.bytes = bytes;
    }

    fn grow(&self, more: usize) -> Result<(), AdmissionBound> {
        let memory = &*self.memory;
        let mut held = memory.lock();
        let of_account = held.accounts.get(&self.account).copied().unwrap_or_default();
        let bound = if memory.limit.saturating_sub(held.all) < more {
            AdmissionBound::BodyMemory
        } else if memory.share.saturating_sub(of_account) < more {
            AdmissionBound::BodyMemoryOfWorkspace
        } else {
            held.all += more;
            held.accounts.insert(self.account, of_account + more);
            return Ok(());
        };
        Err(bound)
    }

    fn shrink(&self, less: usize) {
        if less > 0 {
            let mut held = self.memory.lock();
            held.all = held.all.saturating_sub(less);
            subtract(&mut held.accounts, self.account, less);
        }
    }
}

impl Drop for BodyLease {
    fn drop(&mut self) {
        self.shrink(self.bytes);
    }
}

#[cfg(test)]
pub(crate) mod tests;
