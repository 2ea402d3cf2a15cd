//! File descriptors of this process.

use rustix::io::Errno;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// The open descriptors of the process, on every Unix that this service knows.
const OPEN: &str = "/dev/fd";

/// How many file descriptors a process may have. `u64::MAX` is no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DescriptorLimit {
    /// The limit in force.
    pub soft: u64,
    /// The limit that the process may raise it to.
    pub hard: u64,
}

impl DescriptorLimit {
    /// The limit of this process.
    pub fn of_process() -> Self {
        let limit = getrlimit(Resource::Nofile);
        Self { soft: limit.current.unwrap_or(u64::MAX), hard: limit.maximum.unwrap_or(u64::MAX) }
    }

    /// Raises the soft limit of this process to the hard one; returns the limits afterwards. Where the system does not
    /// let it, they are what they were.
    pub fn raise() -> Self {
        let limit = getrlimit(Resource::Nofile);
        if limit.current != limit.maximum {
            // Some systems have a bound below "unlimited" that only shows here.
            let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum });
        }
        Self::of_process()
    }
}

/// The number of descriptors that this process has open; the limit where there is none left to count them with; `None`
/// where the system does not show them.
pub fn open_descriptors() -> Option<u64> {
    match std::fs::read_dir(OPEN) {
        // The one that reads the folder is among them.
        Ok(entries) => u64::try_from(entries.count().saturating_sub(1)).ok(),
        Err(error) if error.raw_os_error() == Some(Errno::MFILE.raw_os_error()) => {
            Some(DescriptorLimit::of_process().soft)
        }
        Err(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn open_descriptors_counts_opened_files() {
        let before = open_descriptors().unwrap();
        let files: Vec<_> = (0..20).map(|_| std::fs::File::open("/dev/null").unwrap()).collect();
        let during = open_descriptors().unwrap();
        // Other tests of this process open and close files as well.
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
}
