//! Reads files that a path of the command line or of the configuration names.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// The largest file: a wrong path, such as that of a device, must not fill the memory.
const MAX_BYTES: u64 = 64 << 20;

/// The largest file of certificates or of their keys. That of a whole platform has less than 1 MiB.
const MAX_CERTIFICATE_BYTES: u64 = 4 << 20;

/// Checks a file of certificates or of their keys before its reader opens it. A missing file is the reader's error.
///
/// # Errors
/// It is no regular file, or too large.
pub fn check_certificate_file(path: &Path) -> Result<(), String> {
    match std::fs::metadata(path) {
        Ok(file) if !file.is_file() => Err(format!("names {}, which is no regular file", path.display())),
        Ok(file) if file.len() > MAX_CERTIFICATE_BYTES => {
            Err(format!("names {}, which has more than {} MiB", path.display(), MAX_CERTIFICATE_BYTES >> 20))
        }
        _ => Ok(()),
    }
}

/// Reads a file as text, without its byte order mark. It may be a pipe, such as that of a process substitution.
///
/// # Errors
/// The error of the system, more than 64 MiB, or bytes that are not UTF-8.
pub fn read_text(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    File::open(path)?.take(MAX_BYTES + 1).read_to_string(&mut text)?;
    if text.len() as u64 > MAX_BYTES {
        return Err(io::Error::other(format!("it has more than {} MiB", MAX_BYTES >> 20)));
    }
    // Editors of some systems write a byte order mark, which no reader wants.
    Ok(match text.strip_prefix('\u{feff}') {
        Some(rest) => rest.to_owned(),
        None => text,
    })
}

/// Reads a file that the configuration names. Only a regular file can be read again at any time: a pipe would block the
/// server.
///
/// # Errors
/// Those of [`read_text`], or it is no regular file.
pub fn read_regular_text(path: &Path) -> io::Result<String> {
    if std::fs::metadata(path)?.is_file() { read_text(path) } else { Err(io::Error::other("it is no regular file")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(read: io::Result<String>) -> String {
        read.unwrap_err().to_string()
    }

    #[test]
    fn endless_and_large_files_are_rejected() {
        assert_eq!(error(read_text(Path::new("/dev/zero"))), "it has more than 64 MiB");
        let file = tempfile::NamedTempFile::new().unwrap();
        file.as_file().set_len(1 << 40).unwrap();
        assert_eq!(error(read_regular_text(file.path())), "it has more than 64 MiB");
    }

    #[test]
    fn byte_order_mark_is_removed() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), b"\xef\xbb\xbfkey\n").unwrap();
        assert_eq!(read_regular_text(file.path()).unwrap(), "key\n");
    }

    #[test]
    fn only_regular_files_of_bounded_size_hold_certificates() {
        let file = tempfile::NamedTempFile::new().unwrap();
        assert_eq!(check_certificate_file(file.path()), Ok(()));
        assert_eq!(check_certificate_file(Path::new("/does/not/exist")), Ok(()), "its reader reports it");
        file.as_file().set_len(MAX_CERTIFICATE_BYTES + 1).unwrap();
        assert!(check_certificate_file(file.path()).unwrap_err().ends_with("which has more than 4 MiB"));
        let device = check_certificate_file(Path::new("/dev/zero")).unwrap_err();
        assert_eq!(device, "names /dev/zero, which is no regular file");
    }

    #[test]
    fn only_regular_files_are_read_for_the_configuration() {
        let folder = tempfile::tempdir().unwrap();
        let (socket, link) = (folder.path().join("socket"), folder.path().join("link"));
        let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
        for path in ["/dev/zero".as_ref(), folder.path(), &socket] {
            assert_eq!(error(read_regular_text(path)), "it is no regular file", "{}", path.display());
        }
        let pipe = folder.path().join("pipe");
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        assert_eq!(error(read_regular_text(&pipe)), "it is no regular file");
        // Mounted secrets are links.
        std::fs::write(folder.path().join("target"), "text").unwrap();
        std::os::unix::fs::symlink("target", &link).unwrap();
        assert_eq!(read_regular_text(&link).unwrap(), "text");
    }
}
