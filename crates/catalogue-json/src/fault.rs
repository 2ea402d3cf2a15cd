//! What can be wrong with a row.

/// A row, or the file around it, that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RowFault {
    /// The text is not JSON.
    #[error("the file is not valid JSON")]
    NotJson,
    /// Neither an array nor an object with an array `data`.
    #[error("the file must be a JSON array of models or an object with such an array under \"data\"")]
    NoRows,
    /// One row is at fault.
    #[error("row {index}{}: {path} {fault}", id.as_ref().map(|id| format!(" ({id})")).unwrap_or_default())]
    Row {
        /// Its place in the file, from 0.
        index: usize,
        /// Its id, where it has a readable one.
        id: Option<String>,
        /// The member at fault, such as `pricing.prompt`.
        path: String,
        /// What is wrong with it.
        fault: String,
    },
}

impl RowFault {
    pub(crate) fn member(path: impl Into<String>, fault: impl Into<String>) -> Self {
        Self::Row { index: 0, id: None, path: path.into(), fault: fault.into() }
    }

    pub(crate) fn of_row(self, at: usize, name: Option<String>) -> Self {
        match self {
            Self::Row { path, fault, .. } => Self::Row { index: at, id: name, path, fault },
            other => other,
        }
    }
}
