//! The bounds on operations in flight and on their bodies, and whom they are counted for.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::Hash;
use std::time::Duration;

use domain::api_key::{InferenceKey, Principal};
use domain::error::ErrorKind;
use domain::ids::{ApiKeyId, WorkspaceId};

use super::error::ApiError;

/// When a caller that was turned away may try again. Operations are short, and nobody knows which ends next.
pub(crate) const RETRY_AFTER: Duration = Duration::from_secs(1);

/// The bounds on operations in flight and on the memory of their bodies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AdmissionSettings {
    /// Most operations in flight; open routes take no place.
    pub max_in_flight: usize,
    /// Most of them for one key.
    pub max_in_flight_per_key: usize,
    /// Most of them for all keys of one workspace.
    pub max_in_flight_per_workspace: usize,
    /// Most bytes that bodies take while they are read, unpacked and answered.
    pub body_memory_bytes: usize,
    /// Most of them for one workspace, or for one management key.
    pub body_memory_bytes_per_workspace: usize,
}

impl Default for AdmissionSettings {
    /// No bounds.
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

/// A bound that turned a request away.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AdmissionBound {
    /// All places are taken.
    InFlight,
    /// The key's share of the places is taken.
    InFlightOfKey,
    /// The workspace's share of the places is taken.
    InFlightOfWorkspace,
    /// The memory for bodies is used up.
    BodyMemory,
    /// The workspace's share of the memory for bodies is used up.
    BodyMemoryOfWorkspace,
}

impl AdmissionBound {
    /// Every bound.
    pub const ALL: [Self; 5] =
        [Self::InFlight, Self::InFlightOfKey, Self::InFlightOfWorkspace, Self::BodyMemory, Self::BodyMemoryOfWorkspace];

    /// Its name in metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::InFlight => "in_flight",
            Self::InFlightOfKey => "in_flight_of_key",
            Self::InFlightOfWorkspace => "in_flight_of_workspace",
            Self::BodyMemory => "body_memory",
            Self::BodyMemoryOfWorkspace => "body_memory_of_workspace",
        }
    }
}

/// The holder of places and of memory for bodies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Owner {
    pub(crate) key: ApiKeyId,
    /// `None` for a management key.
    pub(crate) workspace: Option<WorkspaceId>,
}

impl Owner {
    pub(crate) fn of(caller: &Principal) -> Self {
        Self { key: caller.id(), workspace: caller.inference().ok().map(InferenceKey::workspace_id) }
    }

    /// The holder of a share of memory: the workspace, or a key that has none.
    pub(crate) fn account(self) -> Account {
        self.workspace.map_or(Account::Key(self.key), Account::Workspace)
    }
}

/// See [`Owner::account`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Account {
    Key(ApiKeyId),
    Workspace(WorkspaceId),
}

/// 429 for a caller that has its share.
pub(crate) fn over_share(scope: &'static str, unit: &'static str, limit: usize) -> ApiError {
    ApiError::of(ErrorKind::RateLimited)
        .retry_after(RETRY_AFTER)
        .metadata("scope", scope)
        .metadata("unit", unit)
        .metadata("limit", limit)
}

/// Lowers a count and removes it at zero.
pub(crate) fn subtract<K: Eq + Hash>(counts: &mut HashMap<K, usize>, key: K, amount: usize) {
    if let Entry::Occupied(mut count) = counts.entry(key) {
        *count.get_mut() = count.get().saturating_sub(amount);
        if *count.get() == 0 {
            count.remove();
        }
    }
}
