//! Processes that have a file open or mapped for writing.
//!
//! Linux lists open files and mappings under `/proc`. Processes of other users and of other process namespaces may be
//! hidden, so the other checks of a copy remain necessary.

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rustix::fs::{major, minor};

/// The identity of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FileIdentity {
    pub(crate) device: u64,
    pub(crate) inode: u64,
}

/// Returns true if another visible process has the file open for writing, or has a writable shared mapping of it.
pub(crate) fn has_writer(file: FileIdentity) -> bool {
    let Ok(processes) = fs::read_dir("/proc") else { return false };
    let own = std::process::id().to_string();
    processes.flatten().any(|process| {
        let name = process.file_name();
        let is_process =
            name.to_str().is_some_and(|name| name != own && name.bytes().all(|byte| byte.is_ascii_digit()));
        is_process && (has_open(&process.path(), file) || has_mapped(&process.path(), file))
    })
}

fn has_open(process: &Path, file: FileIdentity) -> bool {
    let Ok(descriptors) = fs::read_dir(process.join("fd")) else { return false };
    descriptors.flatten().any(|descriptor| {
        // Sockets and pipes have no absolute path; most descriptors of a server are of that kind.
        let is_file = fs::read_link(descriptor.path()).is_ok_and(|target| target.is_absolute());
        let is_same = || {
            fs::metadata(descriptor.path()).is_ok_and(|found| (found.dev(), found.ino()) == (file.device, file.inode))
        };
        is_file && is_same() && is_writable(&process.join("fdinfo").join(descriptor.file_name()))
    })
}

/// Reads the access mode: the lowest octal digit of the flags is 0 for read-only.
fn is_writable(fdinfo: &Path) -> bool {
    let Ok(text) = fs::read_to_string(fdinfo) else { return false };
    let flags = text.lines().find_map(|line| line.strip_prefix("flags:"));
    flags.is_some_and(|flags| matches!(flags.trim().bytes().last(), Some(b'1' | b'2' | b'5' | b'6')))
}

fn has_mapped(process: &Path, file: FileIdentity) -> bool {
    let Ok(maps) = File::open(process.join("maps")) else { return false };
    BufReader::new(maps).lines().map_while(Result::ok).any(|line| is_shared_mapping(&line, file))
}

/// Parses a line `from-to rwxs offset major:minor inode path`.
fn is_shared_mapping(line: &str, file: FileIdentity) -> bool {
    let mut columns = line.split_ascii_whitespace().skip(1);
    let (Some(access), _, Some(device), Some(inode)) = (columns.next(), columns.next(), columns.next(), columns.next())
    else {
        return false;
    };
    let own_device = format!("{:02x}:{:02x}", major(file.device), minor(file.device));
    access.as_bytes().get(1) == Some(&b'w')
        && access.ends_with('s')
        && inode.parse() == Ok(file.inode)
        && device == own_device
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    #[test]
    fn shared_writable_mapping_is_recognised() {
        let file = FileIdentity { device: rustix::fs::makedev(0xfe, 3), inode: 4_711 };
        for (line, expected) in [
            ("7f00-7f10 rw-s 00000000 fe:03 4711      /a b", true),
            ("7f00-7f10 -w-s 00000000 fe:03 4711 /a", true),
            ("7f00-7f10 r--s 00000000 fe:03 4711 /a", false),
            ("7f00-7f10 rw-p 00000000 fe:03 4711 /a", false),
            ("7f00-7f10 rw-s 00000000 fe:03 4712 /a", false),
            ("7f00-7f10 rw-s 00000000 fe:04 4711 /a", false),
            ("7f00-7f10 rw-p 00000000 00:00 0", false),
            ("", false),
        ] {
            assert_eq!(is_shared_mapping(line, file), expected, "{line}");
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn process_with_file_open_for_writing_is_found() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        fs::write(&path, b"content").unwrap();
        let found = fs::metadata(&path).unwrap();
        let file = FileIdentity { device: found.dev(), inode: found.ino() };
        assert!(!has_writer(file));
        for (redirection, expected) in [("exec 3<", false), ("exec 3>>", true), ("exec 3<>", true)] {
            let script = format!("{redirection}\"$1\"; echo opened; read line");
            let mut command = Command::new("sh");
            command.args(["-c", &script, "sh"]).arg(&path).stdin(Stdio::piped()).stdout(Stdio::piped());
            let mut child = command.spawn().unwrap();
            let mut line = String::new();
            BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
            assert_eq!(line, "opened\n");
            assert_eq!(has_writer(file), expected, "{redirection}");
            drop(child.stdin.take());
            child.wait().unwrap();
        }
        assert!(!has_writer(file), "it was closed");
    }
}
