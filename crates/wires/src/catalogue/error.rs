//! Errors of catalogue rows.

/// An unreadable row, or an unreadable file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RowError {
    /// The text is not JSON.
    #[error("the file is not valid JSON")]
    NotJson,
    /// Neither an array nor an object with an array `data`.
    #[error("the file must be a JSON array of models or an object with such an array under \"data\"")]
    NoRows,
    /// A row is invalid.
    #[error("row {index}{}: {path} {message}", id.as_ref().map(|id| format!(" ({id})")).unwrap_or_default())]
    Row {
        /// The index in the file, from 0.
        index: usize,
        /// The id, if it is readable.
        id: Option<String>,
        /// The JSON path of the invalid member, such as `pricing.prompt`.
        path: String,
        /// The error.
        message: String,
    },
}

impl RowError {
    pub(crate) fn member(path: impl Into<String>, message: impl Into<String>) -> Self {
        Self::Row { index: 0, id: None, path: path.into(), message: message.into() }
    }

    pub(crate) fn of_row(self, at: usize, name: Option<String>) -> Self {
        match self {
            Self::Row { path, message, .. } => Self::Row { index: at, id: name, path, message },
            other => other,
        }
    }
}
