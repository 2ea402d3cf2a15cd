//! Limits on in-flight operations, with a share for each key and workspace.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use domain::error::ErrorKind;
use domain::ids::{ApiKeyId, IdMap, WorkspaceId};
use domain::usage::RejectionReason;

use super::admission_bound::{AdmissionBound, AdmissionSettings, Owner, share_exceeded, subtract};
use super::body_memory::BodyLease;
use super::error::ApiError;
use super::recorder::Recorder;

/// Counts in-flight operations and enforces their limits.
pub(crate) struct Admission {
    settings: AdmissionSettings,
    taken: Mutex<Counts>,
    recorder: Arc<dyn Recorder>,
}

#[derive(Debug, Default)]
struct Counts {
    all: usize,
    keys: IdMap<ApiKeyId, usize>,
    workspaces: IdMap<WorkspaceId, usize>,
}

/// The largest shares of in-flight operations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InFlightCounts {
    /// The operations of the key with the most.
    pub largest_key: usize,
    /// The operations of the workspace with the most.
    pub largest_workspace: usize,
}

impl Admission {
    pub(crate) fn new(settings: AdmissionSettings, recorder: Arc<dyn Recorder>) -> Self {
        Self { settings, taken: Mutex::default(), recorder }
    }

    /// Rejects a request of any caller if the total limit is reached, before any work is done for it.
    ///
    /// # Errors
    /// 503 if the limit is reached.
    pub(crate) fn check_total(&self) -> Result<(), ApiError> {
        let is_full = self.lock().all >= self.settings.max_in_flight;
        if is_full { Err(self.reject(AdmissionBound::InFlight)) } else { Ok(()) }
    }

    /// Rejects a request that could not be admitted now, before its body is read.
    ///
    /// # Errors
    /// 429 if the caller's share is used up, 503 if the total limit is reached.
    pub(crate) fn check(&self, owner: Owner) -> Result<(), ApiError> {
        let exceeded = self.exceeded(&self.lock(), owner);
        exceeded.map_or(Ok(()), |bound| Err(self.reject(bound)))
    }

    /// Admits an operation until the last clone of the permit is dropped. `memory` is held for the same time.
    ///
    /// # Errors
    /// The same as [`Self::check`].
    pub(crate) fn enter(self: &Arc<Self>, owner: Owner, memory: Option<BodyLease>) -> Result<InFlightPermit, ApiError> {
        let mut taken = self.lock();
        if let Some(bound) = self.exceeded(&taken, owner) {
            drop(taken);
            return Err(self.reject(bound));
        }
        taken.all += 1;
        *taken.keys.entry(owner.key).or_default() += 1;
        if let Some(workspace) = owner.workspace {
            *taken.workspaces.entry(workspace).or_default() += 1;
        }
        drop(taken);
        self.recorder.record_start();
        let memory = Mutex::new(memory);
        Ok(InFlightPermit { inner: Arc::new(PermitInner { admission: Arc::clone(self), owner, memory }) })
    }

    /// Returns the largest shares in use.
    pub(crate) fn counts(&self) -> InFlightCounts {
        let taken = self.lock();
        InFlightCounts {
            largest_key: taken.keys.values().copied().max().unwrap_or_default(),
            largest_workspace: taken.workspaces.values().copied().max().unwrap_or_default(),
        }
    }

    fn exceeded(&self, taken: &Counts, owner: Owner) -> Option<AdmissionBound> {
        let of_key = taken.keys.get(&owner.key).copied().unwrap_or_default();
        let of_workspace = owner.workspace.and_then(|id| taken.workspaces.get(&id).copied()).unwrap_or_default();
        if taken.all >= self.settings.max_in_flight {
            Some(AdmissionBound::InFlight)
        } else if of_key >= self.settings.max_in_flight_per_key {
            Some(AdmissionBound::InFlightOfKey)
        } else if owner.workspace.is_some() && of_workspace >= self.settings.max_in_flight_per_workspace {
            Some(AdmissionBound::InFlightOfWorkspace)
        } else {
            None
        }
    }

    fn reject(&self, bound: AdmissionBound) -> ApiError {
        self.recorder.record_rejection(bound);
        let (scope, limit) = match bound {
            AdmissionBound::InFlightOfKey => ("key", self.settings.max_in_flight_per_key),
            AdmissionBound::InFlightOfWorkspace => ("workspace", self.settings.max_in_flight_per_workspace),
            _ => return ApiError::from_kind(ErrorKind::Unavailable).reason(RejectionReason::Overloaded),
        };
        share_exceeded(scope, "requests_in_flight", limit).message(format!(
            "Rate limit exceeded: this {scope} has {limit} requests in flight, which is its share; wait for one to end"
        ))
    }

    fn lock(&self) -> MutexGuard<'_, Counts> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A permit for one in-flight operation; see [`Admission::enter`].
#[derive(Clone)]
pub(crate) struct InFlightPermit {
    inner: Arc<PermitInner>,
}

impl InFlightPermit {
    /// Holds the memory of structures that are larger than their text; see [`BodyLease::hold_structures`].
    ///
    /// # Errors
    /// 413, 429 or 503.
    pub(crate) fn hold_structures(&self, bytes: usize) -> Result<(), ApiError> {
        self.memory().as_mut().map_or(Ok(()), |memory| memory.hold_structures(bytes))
    }

    /// Holds the memory of that many further bytes of a provider's answer, and of what is made of them. Returns false if
    /// the limits do not allow it.
    pub(crate) fn hold_arriving_answer(&self, bytes: usize) -> bool {
        self.memory().as_mut().is_none_or(|memory| memory.hold_arriving_answer(bytes))
    }

    /// Returns the memory of that many bytes of an answer that is not used.
    pub(crate) fn return_arriving_answer(&self, bytes: usize) {
        if let Some(memory) = &mut *self.memory() {
            memory.return_arriving_answer(bytes);
        }
    }

    /// Counts an answer of that many bytes, which the permit is held for until it is written. The request and the
    /// provider's answer no longer count, unless work of the request continues.
    pub(crate) fn hold_answer(&self, bytes: usize) {
        let is_last = Arc::strong_count(&self.inner) == 1;
        if let Some(memory) = &mut *self.memory() {
            if is_last {
                memory.shrink_to(bytes);
            }
            memory.hold_answer(bytes);
        }
    }

    fn memory(&self) -> MutexGuard<'_, Option<BodyLease>> {
        self.inner.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct PermitInner {
    admission: Arc<Admission>,
    owner: Owner,
    memory: Mutex<Option<BodyLease>>,
}

impl Drop for PermitInner {
    fn drop(&mut self) {
        let mut taken = self.admission.lock();
        taken.all = taken.all.saturating_sub(1);
        subtract(&mut taken.keys, self.owner.key, 1);
        if let Some(workspace) = self.owner.workspace {
            subtract(&mut taken.workspaces, workspace, 1);
        }
        drop(taken);
        self.admission.recorder.record_end();
    }
}

#[cfg(test)]
mod tests;
