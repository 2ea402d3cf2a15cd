//! Errors in the ids and paths of containers and their files.

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
