//! The user, the host and the file descriptors of this process, and the free space of a file system.

use std::path::{Path, PathBuf};

use domain::error::StoreError;
use rustix::fs::{Mode, statvfs};
use rustix::io::Errno;
use rustix::process::{Pid, Resource, Rlimit, Signal, getrlimit, kill_process, setrlimit, umask};

/// The user database of the operating system. Users of a directory service are not in it.
const PASSWD: &str = "/etc/passwd";

/// A user of the operating system, independent of the environment, and the host name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OsUser {
    /// The user's name; `#` and the user id if the database has no name.
    pub name: String,
    /// The host name.
    pub host: String,
}

/// Returns the number of the user that owns the files which this process creates.
pub fn effective_user_id() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// Asks the server with this process id to reload its configuration.
///
/// # Errors
/// The process does not exist, or belongs to another user.
pub fn request_reload(process: u32) -> std::io::Result<()> {
    let id = i32::try_from(process).ok().and_then(Pid::from_raw).ok_or(Errno::SRCH)?;
    Ok(kill_process(id, Signal::HUP)?)
}

/// Makes every file and folder that this process creates accessible to its user and to no other user, with any inherited
/// mask. Files of libraries, such as those of SQLite, are included.
pub fn create_private_files() {
    umask(Mode::RWXG | Mode::RWXO);
}

impl OsUser {
    /// Returns the real user of this process.
    pub fn of_process() -> Self {
        Self::of_id(rustix::process::getuid().as_raw())
    }

    /// Returns the user of an id.
    pub fn of_id(uid: u32) -> Self {
        let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
        Self { name: name_of(uid, Path::new(PASSWD)), host }
    }
}

fn name_of(uid: u32, passwd: &Path) -> String {
    let database = std::fs::read(passwd).unwrap_or_default();
    let found = String::from_utf8_lossy(&database).lines().find_map(|line| {
        let mut fields = line.split(':');
        let (name, number) = (fields.next()?, fields.nth(1)?);
        (number.parse() == Ok(uid) && !name.is_empty()).then(|| name.to_owned())
    });
    found.unwrap_or_else(|| format!("#{uid}"))
}

/// The folder with the open descriptors of the process, on every supported Unix.
const OPEN: &str = "/dev/fd";

/// The limit of open file descriptors. `u64::MAX` is no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DescriptorLimit {
    /// The current limit.
    pub soft: u64,
    /// The limit that the process may raise the soft one to.
    pub hard: u64,
}

impl DescriptorLimit {
    /// Returns the limit of this process.
    pub fn of_process() -> Self {
        let limit = getrlimit(Resource::Nofile);
        Self { soft: limit.current.unwrap_or(u64::MAX), hard: limit.maximum.unwrap_or(u64::MAX) }
    }

    /// Raises the soft limit of this process to the hard one, and returns the resulting limits. They stay unchanged if
    /// the system denies it.
    pub fn raise() -> Self {
        let limit = getrlimit(Resource::Nofile);
        if limit.current != limit.maximum {
            // Some systems have a limit below "unlimited" that only shows here.
            let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum });
        }
        Self::of_process()
    }
}

/// Returns the number of open descriptors of this process. Returns the limit if no descriptor is left for counting, and
/// `None` if the system does not show them.
pub fn open_descriptors() -> Option<u64> {
    match std::fs::read_dir(OPEN) {
        // The descriptor of the folder itself is among them.
        Ok(entries) => u64::try_from(entries.count().saturating_sub(1)).ok(),
        Err(error) if error.raw_os_error() == Some(Errno::MFILE.raw_os_error()) => {
            Some(DescriptorLimit::of_process().soft)
        }
        Err(_) => None,
    }
}

/// Reads the free space of the file system that contains a path.
#[derive(Debug, Clone)]
pub struct LocalDiskSpace {
    path: PathBuf,
}

impl LocalDiskSpace {
    /// Creates a reader for a path, which is looked up at each reading.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into() }
    }

    /// Returns the bytes that this process can allocate, without space that is reserved for other users.
    ///
    /// # Errors
    /// The folder is missing, or its file system does not answer.
    pub fn free_bytes(&self) -> Result<u64, StoreError> {
        let status = statvfs(&self.path).map_err(|error| StoreError::unavailable(std::io::Error::from(error)))?;
        Ok(status.f_bavail.saturating_mul(status.f_frsize))
    }
}

#[cfg(test)]
mod tests {

    use super::*;

    #[test]
    fn name_of_user_id_is_read_from_passwd() {
        let file = std::env::temp_dir().join(format!("passwd-of-a-test-{}", std::process::id()));
        let database =
            "root:x:0:0:root:/root:/bin/sh\n# a comment\n:x:7:7::/:\nalice:x:1000:1000:Alice,,,:/home/alice:/bin/zsh\n";
        std::fs::write(&file, database).unwrap();
        let named = [0, 7, 1000, 1001].map(|uid| name_of(uid, &file));
        std::fs::remove_file(&file).unwrap();
        assert_eq!(named, ["root", "#7", "alice", "#1001"]);
        assert_eq!(name_of(5, Path::new("/nowhere/passwd")), "#5");
    }

    #[test]
    fn of_process_returns_user_and_host() {
        let user = OsUser::of_process();
        assert!(!user.name.is_empty() && !user.host.is_empty(), "{user:?}");
    }

    #[test]
    fn open_descriptors_counts_opened_files() {
        let before = open_descriptors().unwrap();
        let files: Vec<_> = (0..20).map(|_| std::fs::File::open("/dev/null").unwrap()).collect();
        let during = open_descriptors().unwrap();
        // Other tests of this process open and close files, too.
        assert!(during >= before + 10, "{before} {during}");
        drop(files);
        assert!(during <= DescriptorLimit::of_process().soft);
    }

    #[test]
    fn raise_sets_soft_limit_to_hard_limit() {
        let before = DescriptorLimit::of_process();
        let after = DescriptorLimit::raise();
        assert_eq!(after.hard, before.hard);
        assert!(after.soft >= before.soft);
    }

    #[test]
    fn free_bytes_returns_free_space_and_an_error_for_missing_folder() {
        assert!(LocalDiskSpace::new("/").free_bytes().is_ok_and(|bytes| bytes > 0));
        assert!(LocalDiskSpace::new("/no/such/folder").free_bytes().is_err());
    }
}
