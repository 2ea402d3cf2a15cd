//! Errors of models.

use super::ModelId;
use crate::authority::Restricted;
use crate::change::PreconditionFailed;
use crate::error::{ErrorKind, StoreError};

/// The text is not a list of output modalities. Holds the invalid element, cut to 64 characters.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "Invalid output_modalities value: \"{0}\". Valid values are: text, image, embeddings, audio, video, rerank, decisions, speech, transcription, all"
)]
pub struct InvalidModalityFilter(pub String);

/// An error of reading a model.
#[derive(Debug, thiserror::Error)]
pub enum GetModelError {
    /// The model does not exist.
    #[error("model not found")]
    NotFound,
}

impl GetModelError {
    /// Returns the meaning of the error.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::NotFound => ErrorKind::NotFound,
        }
    }
}

/// An error of looking up a model that can be called.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FindCallableModelError {
    /// No model has this name.
    #[error("Model not found{}", or_nearest(.nearest))]
    Unknown {
        /// Ids of callable models with a similar spelling.
        nearest: Vec<String>,
    },
    /// The model exists and cannot be called.
    #[error("this model cannot be called: it has no endpoint that answers Decisions requests{}", or_nearest(.nearest))]
    NotCallable {
        /// Ids of callable models, the most similar first.
        nearest: Vec<String>,
    },
}

impl FindCallableModelError {
    /// Returns the meaning of the error.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Unknown { .. } | Self::NotCallable { .. } => ErrorKind::NotFound,
        }
    }
}

/// The number of similar names in the error for an unknown model.
pub(crate) const NEAREST: usize = 3;

/// Returns the end of a sentence that names callable models; empty without any.
pub(crate) fn or_nearest(nearest: &[String]) -> String {
    if nearest.is_empty() { String::new() } else { format!("; nearest callable models: {}", nearest.join(", ")) }
}

/// A violation of a set of catalogue rows.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CatalogueViolation {
    /// Two rows have one id.
    #[error("{0} is among the rows more than once")]
    DuplicateId(ModelId),
    /// The target of an alias does not exist.
    #[error("{alias} is an alias of {target}, which is not in the catalogue")]
    DanglingAlias {
        /// The alias row.
        alias: ModelId,
        /// The target of the alias.
        target: ModelId,
    },
    /// An alias is circular.
    #[error("{0} is an alias of itself")]
    AliasCycle(ModelId),
    /// An alias targets a sandbox model.
    #[error("{0} is an alias of a sandbox model; a sandbox model cannot replace another model")]
    AliasOfSandbox(ModelId),
    /// There are no rows.
    #[error("there are no rows")]
    Empty,
}

/// An error of an import, which changed nothing.
#[derive(Debug, thiserror::Error)]
pub enum ImportCatalogueError {
    /// The caller lacks the right.
    #[error(transparent)]
    Restricted(#[from] Restricted),
    /// The rows are invalid.
    #[error(transparent)]
    Fault(#[from] CatalogueViolation),
    /// The catalogue has another version than the caller accepts.
    #[error(transparent)]
    PreconditionFailed(#[from] PreconditionFailed),
    /// A replacement names no version.
    #[error("A replacement removes rows: send If-Match with the version of a dry run")]
    VersionRequired,
    /// Other imports changed the catalogue each time.
    #[error("the catalogue was changed by other imports meanwhile: send the import again")]
    Contended,
    /// The store failed.
    #[error("the catalogue store failed")]
    Store(#[from] StoreError),
}

impl ImportCatalogueError {
    /// Returns the meaning of the error.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Restricted(error) => error.kind(),
            Self::Fault(_) => ErrorKind::InvalidRequest,
            Self::PreconditionFailed(failed) => failed.kind(),
            Self::VersionRequired => ErrorKind::PreconditionRequired,
            Self::Contended => ErrorKind::Conflict,
            Self::Store(error) => error.kind(),
        }
    }
}
