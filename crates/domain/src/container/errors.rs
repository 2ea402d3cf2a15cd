//! What can be wrong with the names of containers and their files.

/// Not `[A-Za-z0-9_-]{1,128}`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("container_id must be 1 to 128 characters of A-Z a-z 0-9 _ -")]
pub struct InvalidContainerId;

/// Why a container file id does not name a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidContainerFileId {
    /// It does not begin with `cfile_`.
    #[error("file_id must begin with cfile_")]
    Prefix,
    /// What follows is not unpadded base64url in its canonical form.
    #[error("file_id must be cfile_ and the unpadded base64url form of the file's path, in canonical encoding")]
    Encoding,
    /// What it encodes is no path that a file may have.
    #[error("file_id encodes a path that is not allowed: {0}")]
    Path(InvalidContainerPath),
}

/// Why a text is not the path of a container file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidContainerPath {
    /// Nothing.
    #[error("it is empty")]
    Empty,
    /// Bytes that are not UTF-8.
    #[error("it is not UTF-8")]
    NotUtf8,
    /// A leading slash.
    #[error("it is absolute")]
    Absolute,
    /// A segment that is empty, `.` or `..`.
    #[error("it has an empty, . or .. segment")]
    Segment,
    /// A control character or a backslash.
    #[error("it has a control character or a backslash")]
    Character,
    /// More than 1,024 bytes, or a segment of more than 255.
    #[error("it is longer than 1024 bytes or has a segment longer than 255")]
    TooLong,
}
