//! What can go wrong with models.

use super::ModelId;
use crate::error::{ErrorKind, StoreError};

/// Not a model name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a model id is author/slug with an optional :variant, made of letters, digits and - . _ ~")]
pub struct InvalidModelId;

/// Not a list of output modalities; holds the element at fault, cut to 64 characters.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "Invalid output_modalities value: \"{0}\". Valid values are: text, image, embeddings, audio, video, rerank, decisions, speech, transcription, all"
)]
pub struct InvalidModalityFilter(pub String);

/// Why a model was not shown.
#[derive(Debug, thiserror::Error)]
pub enum GetModelError {
    /// No row answers to that name.
    #[error("there is no such model")]
    NotFound,
}

impl GetModelError {
    /// Its meaning.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::NotFound => ErrorKind::NotFound,
        }
    }
}

/// Why models were not listed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ListModelsError {
    /// The filter is at fault.
    #[error(transparent)]
    Filter(#[from] InvalidModalityFilter),
    /// A page is too long, or holds nothing.
    #[error("limit must be 1 to {}", super::Page::MAX_LIMIT)]
    Limit,
}

impl ListModelsError {
    /// Its meaning.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Filter(_) | Self::Limit => ErrorKind::InvalidRequest,
        }
    }
}

/// What is wrong with a set of catalogue rows.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CatalogueFault {
    /// Two rows have one id.
    #[error("{0} stands in the file more than once")]
    DuplicateId(ModelId),
    /// An alias leads to nothing.
    #[error("{alias} is an alias of {target}, which the catalogue would not hold")]
    DanglingAlias {
        /// The alias row.
        alias: ModelId,
        /// What it names.
        target: ModelId,
    },
    /// An alias leads back to itself.
    #[error("{0} is an alias that leads back to itself")]
    AliasCycle(ModelId),
    /// An alias would pass the sandbox off as a model.
    #[error("{0} is an alias of a sandbox model; the sandbox never stands in for another model")]
    AliasOfSandbox(ModelId),
    /// There is no row at all.
    #[error("the file holds no rows")]
    Empty,
}

/// Why a catalogue was not imported. Nothing was changed then.
#[derive(Debug, thiserror::Error)]
pub enum ImportCatalogueError {
    /// The rows are at fault.
    #[error(transparent)]
    Fault(#[from] CatalogueFault),
    /// The store failed.
    #[error("the catalogue store failed")]
    Store(#[from] StoreError),
}

impl ImportCatalogueError {
    /// Its meaning.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Fault(_) => ErrorKind::InvalidRequest,
            Self::Store(error) => error.kind(),
        }
    }
}
