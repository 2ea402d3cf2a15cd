//! Limits on in-flight operations and on the memory of their bodies, in total and for each key and workspace.

use std::collections::hash_map::Entry;
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use domain::api_key::{InferenceKey, Principal};
use domain::error::ErrorKind;
use domain::ids::{ApiKeyId, IdMap, WorkspaceId};
use domain::usage::RejectionReason;

use super::error::ApiError;
use super::recorder::{AdmissionBound, Recorder};

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
    pub(crate) fn enter(self: &Arc<Self>, owner: Owner, memory: BodyLease) -> Result<InFlightPermit, ApiError> {
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
        if owner.is_operator() {
            None
        } else if taken.all >= self.settings.max_in_flight {
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
    /// Counts an answer of that many bytes, which the permit is held for until it is written. The request and the
    /// provider's answer no longer count, unless work of the request continues.
    pub(crate) fn hold_answer(&self, bytes: usize) {
        let mut memory = self.memory();
        if Arc::strong_count(&self.inner) == 1 {
            memory.shrink_to(bytes);
        }
        memory.hold_answer(bytes);
    }

    /// Returns the memory of the operation.
    pub(crate) fn memory(&self) -> MutexGuard<'_, BodyLease> {
        self.inner.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct PermitInner {
    admission: Arc<Admission>,
    owner: Owner,
    memory: Mutex<BodyLease>,
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

/// The `Retry-After` of a rejected request. Operations are short, and the end of the next one is unknown.
pub(crate) const RETRY_AFTER: Duration = Duration::from_secs(1);

/// The bounds on in-flight operations and on the memory of their bodies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AdmissionSettings {
    /// The maximum number of in-flight operations; open routes do not count.
    pub max_in_flight: usize,
    /// The maximum number for one key.
    pub max_in_flight_per_key: usize,
    /// The maximum number for all keys of one workspace.
    pub max_in_flight_per_workspace: usize,
    /// The maximum number of bytes that bodies hold while they are read, decompressed and processed.
    pub body_memory_bytes: usize,
    /// The maximum number of these bytes for one workspace, or for one management key.
    pub body_memory_bytes_per_workspace: usize,
}

impl Default for AdmissionSettings {
    /// Returns settings without bounds.
    fn default() -> Self {
        Self {
            max_in_flight: usize::MAX,
            max_in_flight_per_key: usize::MAX,
            max_in_flight_per_workspace: usize::MAX,
            body_memory_bytes: usize::MAX,
            body_memory_bytes_per_workspace: usize::MAX,
        }
    }
}

/// The owner of in-flight operations and of body memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Owner {
    pub(crate) key: ApiKeyId,
    /// `None` for a management key.
    pub(crate) workspace: Option<WorkspaceId>,
}

impl Owner {
    pub(crate) fn new(caller: &Principal) -> Self {
        // The nil id is that of no key: the operator's.
        let key = caller.id().unwrap_or_else(|| ApiKeyId::from_uuid(uuid::Uuid::nil()));
        Self { key, workspace: caller.inference().ok().map(InferenceKey::workspace_id) }
    }

    /// Returns true for the operator, whose connections are bounded: a loaded server shows its status.
    pub(crate) fn is_operator(self) -> bool {
        self.key.uuid().is_nil()
    }

    /// Returns the account of a memory share: the workspace, or the key if it has no workspace.
    pub(crate) fn account(self) -> Account {
        self.workspace.map_or(Account::Key(self.key), Account::Workspace)
    }
}

/// The account of a memory share; see [`Owner::account`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Account {
    Key(ApiKeyId),
    Workspace(WorkspaceId),
}

/// Returns 429 for a caller that has used up its share.
pub(crate) fn share_exceeded(scope: &'static str, unit: &'static str, limit: usize) -> ApiError {
    ApiError::from_kind(ErrorKind::RateLimited)
        .reason(RejectionReason::ShareExceeded)
        .retry_after(RETRY_AFTER)
        .metadata("scope", scope)
        .metadata("unit", unit)
        .metadata("limit", limit)
}

/// Decreases a count and removes it at zero.
pub(crate) fn subtract<K: Eq + Hash>(counts: &mut IdMap<K, usize>, key: K, amount: usize) {
    if let Entry::Occupied(mut count) = counts.entry(key) {
        *count.get_mut() = count.get().saturating_sub(amount);
        if *count.get() == 0 {
            count.remove();
        }
    }
}

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
        if bytes <= self.bytes {
            return Ok(());
        }
        self.resize_if_permitted(bytes, "ask fewer questions, or send fewer assets")
    }

    /// Holds a further part of a body, with its structures: that of a preset.
    ///
    /// # Errors
    /// The same as [`Self::hold_structures`].
    pub(crate) fn hold_part(&mut self, text_bytes: usize, structure_bytes: usize) -> Result<(), ApiError> {
        let more = text_bytes.saturating_mul(PROCESSING_COPIES).max(text_bytes.saturating_add(structure_bytes));
        self.resize_if_permitted(self.bytes.saturating_add(more), "use a preset with fewer questions")?;
        self.body_bytes = self.body_bytes.saturating_add(text_bytes);
        Ok(())
    }

    /// Holds elements of a list that were read for its response: their text, which their views and the response copy,
    /// and their structures.
    ///
    /// # Errors
    /// The same as [`Self::hold_structures`].
    pub(crate) fn hold_elements(&mut self, text_bytes: usize, structure_bytes: usize) -> Result<(), ApiError> {
        let more = text_bytes.saturating_mul(PROCESSING_COPIES).saturating_add(structure_bytes);
        self.resize_if_permitted(self.bytes.saturating_add(more), "set a smaller limit")
    }

    /// Returns the number of held bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    fn resize_if_permitted(&mut self, bytes: usize, advice: &str) -> Result<(), ApiError> {
        let most = self.memory.share.min(self.memory.limit);
        if bytes > most {
            return Err(ApiError::from_kind(ErrorKind::PayloadTooLarge).message(format!(
                "The request takes {bytes} bytes of memory, and one request may take {most}; {advice}"
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
pub(crate) mod memory_tests;
#[cfg(test)]
mod tests;
