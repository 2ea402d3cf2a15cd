//! The names of containers, of their files, and of objects in the blob store.

use std::str::FromStr;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use crate::ids::{DocumentId, WorkspaceId};

/// The canonical id of a container, compared byte for byte. A restarted session (`…-r<nonce>`) is another container.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ContainerId(String);

text_access!(ContainerId);

impl FromStr for ContainerId {
    type Err = InvalidContainerId;

    fn from_str(text: &str) -> Result<Self, InvalidContainerId> {
        let fits = (1..=128).contains(&text.len())
            && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-');
        if fits { Ok(Self(text.to_owned())) } else { Err(InvalidContainerId) }
    }
}

/// The relative path of a file in its container. It is UTF-8 with at most 1,024 bytes and 255 bytes per segment, which
/// common file systems support. No segment is empty, `.` or `..`; control characters and backslashes are forbidden.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ContainerPath(String);

text_access!(ContainerPath);

impl ContainerPath {
    /// Returns the id of this file in the interface.
    pub fn file_id(&self) -> String {
        format!("{FILE_ID_PREFIX}{}", URL_SAFE_NO_PAD.encode(&self.0))
    }

    /// Decodes a container file id. Only the canonical encoding of a path is accepted, so that every file has exactly
    /// one id.
    pub fn from_file_id(file_id: &str) -> Result<Self, InvalidContainerFileId> {
        let encoded = file_id.strip_prefix(FILE_ID_PREFIX).ok_or(InvalidContainerFileId::Prefix)?;
        if encoded.len() > 2_048 {
            return Err(InvalidContainerFileId::Path(InvalidContainerPath::TooLong));
        }
        let bytes = URL_SAFE_NO_PAD.decode(encoded).map_err(|_| InvalidContainerFileId::Encoding)?;
        if URL_SAFE_NO_PAD.encode(&bytes) != encoded {
            return Err(InvalidContainerFileId::Encoding);
        }
        let path = String::from_utf8(bytes).map_err(|_| InvalidContainerFileId::Path(InvalidContainerPath::NotUtf8))?;
        path.parse().map_err(InvalidContainerFileId::Path)
    }
}

const FILE_ID_PREFIX: &str = "cfile_";

impl FromStr for ContainerPath {
    type Err = InvalidContainerPath;

    fn from_str(text: &str) -> Result<Self, InvalidContainerPath> {
        if text.is_empty() {
            return Err(InvalidContainerPath::Empty);
        }
        if text.starts_with('/') {
            return Err(InvalidContainerPath::Absolute);
        }
        if text.chars().any(|c| c.is_control() || c == '\\') {
            return Err(InvalidContainerPath::Character);
        }
        if text.split('/').any(|segment| matches!(segment, "" | "." | "..")) {
            return Err(InvalidContainerPath::Segment);
        }
        if text.len() > 1_024 || text.split('/').any(|segment| segment.len() > 255) {
            return Err(InvalidContainerPath::TooLong);
        }
        Ok(Self(text.to_owned()))
    }
}

/// The name of an object in the blob store: segments joined by slashes, one of them the workspace.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BlobKey(String);

text_access!(BlobKey);

impl BlobKey {
    /// The prefix of all documents.
    pub const DOCUMENTS: &'static str = "documents/";
    /// The prefix of all container files.
    pub const CONTAINERS: &'static str = "containers/";

    /// Returns `containers/<workspace>/<container>/<path>`.
    pub fn container_file(workspace: WorkspaceId, container: &ContainerId, path: &ContainerPath) -> Self {
        Self(format!("{}{}", Self::container_prefix(workspace, container), path.as_str()))
    }

    /// Returns `containers/<workspace>/<container>/`.
    pub fn container_prefix(workspace: WorkspaceId, container: &ContainerId) -> String {
        format!("{}{container}/", Self::containers_prefix(workspace))
    }

    /// Returns `containers/<workspace>/`.
    pub fn containers_prefix(workspace: WorkspaceId) -> String {
        format!("{}{workspace}/", Self::CONTAINERS)
    }

    /// Returns `documents/<workspace>/<document>`.
    pub fn document(workspace: WorkspaceId, document: &DocumentId) -> Self {
        Self(format!("{}{workspace}/{document}", Self::DOCUMENTS))
    }

    /// Creates a key from a name that a blob store listed, without validation. For adapters only.
    pub fn from_listing(name: String) -> Self {
        Self(name)
    }

    /// Returns the workspace and the id of the document if this is the key of one.
    pub fn of_document(&self) -> Option<(WorkspaceId, DocumentId)> {
        let (workspace, document) = self.0.strip_prefix(Self::DOCUMENTS)?.split_once('/')?;
        Some((workspace.parse().ok()?, document.parse().ok()?))
    }
}

/// An id that does not match `[A-Za-z0-9_-]{1,128}`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("container_id must be 1 to 128 characters of A-Z a-z 0-9 _ -")]
pub struct InvalidContainerId;

/// An invalid id of a container file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidContainerFileId {
    /// It does not begin with `cfile_`.
    #[error("file_id must begin with cfile_")]
    Prefix,
    /// The rest is not canonical unpadded base64url.
    #[error("file_id must be cfile_ and the unpadded base64url form of the file's path, in canonical encoding")]
    Encoding,
    /// The encoded path is not allowed.
    #[error("file_id encodes a path that is not allowed: {0}")]
    Path(InvalidContainerPath),
}

/// An invalid path of a container file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidContainerPath {
    /// The path is empty.
    #[error("it is empty")]
    Empty,
    /// The path is not UTF-8.
    #[error("it is not UTF-8")]
    NotUtf8,
    /// The path begins with a slash.
    #[error("it is absolute")]
    Absolute,
    /// A segment is empty, `.` or `..`.
    #[error("it has an empty, . or .. segment")]
    Segment,
    /// The path has a control character or a backslash.
    #[error("it has a control character or a backslash")]
    Character,
    /// The path is longer than 1,024 bytes, or a segment is longer than 255 bytes.
    #[error("it is longer than 1024 bytes or has a segment longer than 255")]
    TooLong,
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rstest::rstest;

    #[test]
    fn file_id_round_trips_known_value() {
        let path: ContainerPath = "out/report.csv".parse().unwrap();
        assert_eq!(path.file_id(), "cfile_b3V0L3JlcG9ydC5jc3Y");
        assert_eq!(ContainerPath::from_file_id("cfile_b3V0L3JlcG9ydC5jc3Y").unwrap(), path);
    }

    fn id_of(raw: &[u8]) -> String {
        format!("cfile_{}", URL_SAFE_NO_PAD.encode(raw))
    }

    #[rstest]
    #[case::empty(b"")]
    #[case::nul(b"a\0b")]
    #[case::newline(b"a\nb")]
    #[case::parent(b"../etc/passwd")]
    #[case::inner_parent(b"a/../../b")]
    #[case::dot(b"./a")]
    #[case::absolute(b"/etc/passwd")]
    #[case::double_slash(b"a//b")]
    #[case::trailing_slash(b"a/")]
    #[case::backslash(b"..\\a")]
    #[case::not_utf8(b"\xff\xfe")]
    #[case::long(&[b'a'; 300])]
    fn from_file_id_rejects_hostile_paths(#[case] raw: &[u8]) {
        assert!(matches!(ContainerPath::from_file_id(&id_of(raw)), Err(InvalidContainerFileId::Path(_))));
    }

    #[rstest]
    #[case::no_prefix("b3V0")]
    #[case::padded("cfile_YQ==")]
    #[case::trailing_bits("cfile_YR")]
    #[case::standard_alphabet("cfile_+/+/")]
    #[case::percent("cfile_%2e%2e")]
    #[case::length("cfile_A")]
    fn from_file_id_rejects_non_canonical_encodings(#[case] id: &str) {
        assert!(ContainerPath::from_file_id(id).is_err());
    }

    #[test]
    fn from_file_id_accepts_unusual_but_valid_paths() {
        for odd in ["%2e%2e/x", "..a", "a..b/...", "späce and*?#1.txt", "~"] {
            assert_eq!(ContainerPath::from_file_id(&id_of(odd.as_bytes())).unwrap().as_str(), odd);
        }
    }

    #[rstest]
    #[case("")]
    #[case("a/b")]
    #[case("..")]
    #[case("a b")]
    #[case("é")]
    fn container_id_rejects_invalid_characters_and_lengths(#[case] id: &str) {
        assert!(id.parse::<ContainerId>().is_err());
        assert!("a".repeat(129).parse::<ContainerId>().is_err());
    }

    proptest! {
        #[test]
        fn file_id_round_trips_decoded_ids(id in "cfile_[A-Za-z0-9_-]{0,60}") {
            if let Ok(path) = ContainerPath::from_file_id(&id) {
                prop_assert_eq!(path.file_id(), id);
            }
        }
    }
}
