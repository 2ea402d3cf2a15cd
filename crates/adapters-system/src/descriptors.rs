//! File descriptors of this process.

use rustix::io::Errno;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

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

#[cfg(test)]
mod tests {
    use super::*;

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
}
