//! Views of container files.

use domain::container::{ContainerId, ContainerPath};
use serde::Serialize;

/// A container file.
#[derive(Serialize)]
pub struct ContainerFileView {
    /// The container.
    pub container_id: String,
    /// The id in the HTTP interface.
    pub file_id: String,
    /// Its path.
    pub path: String,
    /// Its size in bytes.
    pub size_bytes: u64,
}

impl ContainerFileView {
    /// Creates a view.
    pub fn new(container: &ContainerId, path: &ContainerPath, size_bytes: u64) -> Self {
        Self {
            container_id: container.to_string(),
            file_id: path.file_id(),
            path: path.as_str().to_owned(),
            size_bytes,
        }
    }
}
