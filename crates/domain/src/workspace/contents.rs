//! The contents of a workspace, and its deletion.

use std::fmt;

named_enum! {
    /// A kind of contents that a workspace can be deleted with.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum WorkspaceContent {
        /// API keys.
        Keys = "keys",
        /// Documents and their bytes.
        Documents = "documents",
        /// Guardrails, with their versions.
        Guardrails = "guardrails",
        /// Destinations of traces.
        Destinations = "destinations",
        /// Presets, with their versions.
        Presets = "presets",
        /// Files of containers.
        ContainerFiles = "container_files",
    }
}

/// The contents that keep a workspace from being deleted, by number.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct WorkspaceContents {
    /// Keys that are not deleted.
    pub keys: u64,
    /// Documents, pending ones included.
    pub documents: u64,
    /// Guardrails.
    pub guardrails: u64,
    /// Destinations of traces.
    pub destinations: u64,
    /// Presets.
    pub presets: u64,
    /// Files of containers.
    pub container_files: u64,
}

impl WorkspaceContents {
    /// Returns the contents of other kinds.
    #[must_use]
    pub fn without(self, kinds: &[WorkspaceContent]) -> Self {
        let keep = |kind: WorkspaceContent, count: u64| if kinds.contains(&kind) { 0 } else { count };
        Self {
            keys: keep(WorkspaceContent::Keys, self.keys),
            documents: keep(WorkspaceContent::Documents, self.documents),
            guardrails: keep(WorkspaceContent::Guardrails, self.guardrails),
            destinations: keep(WorkspaceContent::Destinations, self.destinations),
            presets: keep(WorkspaceContent::Presets, self.presets),
            container_files: keep(WorkspaceContent::ContainerFiles, self.container_files),
        }
    }

    /// Returns the number of each kind.
    pub fn counts(self) -> [(WorkspaceContent, u64); 6] {
        [
            (WorkspaceContent::Keys, self.keys),
            (WorkspaceContent::Documents, self.documents),
            (WorkspaceContent::Guardrails, self.guardrails),
            (WorkspaceContent::Destinations, self.destinations),
            (WorkspaceContent::Presets, self.presets),
            (WorkspaceContent::ContainerFiles, self.container_files),
        ]
    }

    /// Returns true if there are none.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

impl fmt::Display for WorkspaceContents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let present = self.counts().into_iter().filter(|(_, count)| *count > 0);
        let present: Vec<String> = present.map(|(kind, count)| format!("{}: {count}", kind.as_str())).collect();
        f.write_str(&present.join(", "))
    }
}

/// The result of [`WorkspaceRepository::delete`](super::WorkspaceRepository::delete).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorkspaceDeletion {
    /// The workspace is deleted.
    Deleted,
    /// The workspace does not exist.
    Unknown,
    /// The workspace differs from the expected one.
    Differs,
    /// It is the default workspace; nothing was changed.
    IsDefault,
    /// It has contents; nothing was changed.
    NotEmpty(WorkspaceContents),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_keeps_contents_that_are_not_named() {
        let contents = WorkspaceContents { keys: 2, documents: 3, destinations: 1, ..WorkspaceContents::default() };
        let remaining = contents.without(&[WorkspaceContent::Keys, WorkspaceContent::Guardrails]);
        assert_eq!(remaining.to_string(), "documents: 3, destinations: 1");
        assert_eq!(contents.without(&[]), contents);
        assert!(contents.without(&WorkspaceContent::ALL).is_empty());
    }
}
