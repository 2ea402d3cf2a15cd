//! Errors of presets.

use super::Preset;
use crate::authority::Restricted;
use crate::change::PreconditionFailed;
use crate::error::{ErrorKind, StoreError};
use crate::text::nearest_names;
use crate::workspace::{ChooseWorkspaceError, InvalidWorkspaceSlug};

/// The error of reading or changing a preset. Nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum PresetError {
    /// The caller lacks the right.
    #[error(transparent)]
    Restricted(#[from] Restricted),
    /// The slug of a new preset is invalid.
    #[error(transparent)]
    InvalidSlug(#[from] InvalidWorkspaceSlug),
    /// The name is empty, too long or has control characters.
    #[error("a preset name has 1 to 200 characters, not all of them blank, and no control characters")]
    InvalidName,
    /// The change names no member.
    #[error("No update fields provided")]
    NothingToChange,
    /// No model with this name answers Decisions requests.
    #[error("{name:?} is not a model that answers Decisions requests{}", nearest_names(.nearest))]
    UnknownModel {
        /// The name.
        name: String,
        /// Ids of such models with a similar spelling.
        nearest: Vec<String>,
    },
    /// The preset has no version with this id.
    #[error("must be the id of a version of this preset")]
    UnknownDesignation,
    /// The preset or its version does not exist.
    #[error("preset not found")]
    NotFound,
    /// No workspace can be chosen.
    #[error(transparent)]
    Workspace(ChooseWorkspaceError),
    /// The preset has another version than the caller accepts.
    #[error(transparent)]
    PreconditionFailed(#[from] PreconditionFailed),
    /// The preset has the most versions.
    #[error("a preset has at most {} versions; create another preset", Preset::MAX_VERSIONS)]
    TooManyVersions,
    /// The workspace has the most presets.
    #[error("a workspace has at most {} presets; add a version to one of them", Preset::MAX_IN_WORKSPACE)]
    TooManyPresets,
    /// Every attempt to write collided with a concurrent change.
    #[error("the preset was changed concurrently; try again")]
    Conflict,
    /// The store failed.
    #[error("the preset store failed")]
    Store(#[from] StoreError),
}

impl PresetError {
    /// Returns the error kind.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Restricted(error) => error.kind(),
            Self::InvalidSlug(_)
            | Self::InvalidName
            | Self::NothingToChange
            | Self::UnknownModel { .. }
            | Self::UnknownDesignation
            | Self::Workspace(ChooseWorkspaceError::Required) => ErrorKind::InvalidRequest,
            Self::NotFound | Self::Workspace(ChooseWorkspaceError::Unknown) => ErrorKind::NotFound,
            Self::PreconditionFailed(error) => error.kind(),
            Self::TooManyVersions | Self::TooManyPresets | Self::Conflict => ErrorKind::Conflict,
            Self::Workspace(ChooseWorkspaceError::Store(error)) | Self::Store(error) => error.kind(),
        }
    }
}

impl From<ChooseWorkspaceError> for PresetError {
    fn from(error: ChooseWorkspaceError) -> Self {
        match error {
            ChooseWorkspaceError::Store(error) => Self::Store(error),
            other => Self::Workspace(other),
        }
    }
}
