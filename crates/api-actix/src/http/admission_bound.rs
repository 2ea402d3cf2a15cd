//! The bounds on in-flight operations and on body memory, and the owners that they are counted for.

use std::collections::hash_map::Entry;
use std::hash::Hash;
use std::time::Duration;

use domain::api_key::{InferenceKey, Principal};
use domain::error::ErrorKind;
use domain::ids::{ApiKeyId, IdMap, WorkspaceId};
use domain::usage::RejectionReason;

use super::error::ApiError;

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

/// The bound that rejected a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AdmissionBound {
    /// The total limit on in-flight operations.
    InFlight,
    /// The key's share of in-flight operations.
    InFlightOfKey,
    /// The workspace's share of in-flight operations.
    InFlightOfWorkspace,
    /// The total body memory.
    BodyMemory,
    /// The workspace's share of the body memory.
    BodyMemoryOfWorkspace,
}

impl AdmissionBound {
    /// Every bound.
    pub const ALL: [Self; 5] =
        [Self::InFlight, Self::InFlightOfKey, Self::InFlightOfWorkspace, Self::BodyMemory, Self::BodyMemoryOfWorkspace];

    /// Returns the metric label.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::InFlight => "in_flight",
            Self::InFlightOfKey => "in_flight_per_key",
            Self::InFlightOfWorkspace => "in_flight_per_workspace",
            Self::BodyMemory => "body_memory",
            Self::BodyMemoryOfWorkspace => "body_memory_per_workspace",
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
        Self { key: caller.id(), workspace: caller.inference().ok().map(InferenceKey::workspace_id) }
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
