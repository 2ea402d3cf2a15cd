//! The user that servers run as: PostgreSQL refuses to run as root.

use std::os::unix::fs::{MetadataExt, chown};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

/// The user and group of "nobody" where no user `postgres` exists.
const NOBODY: (u32, u32) = (65_534, 65_534);

/// The user of a server.
#[derive(Clone, Copy)]
pub(crate) enum User {
    /// The user of the test process.
    Same,
    /// Another user and group.
    Other(u32, u32),
}

impl User {
    /// Returns an unprivileged user.
    pub(crate) fn unprivileged() -> std::io::Result<Self> {
        if std::fs::metadata("/proc/self")?.uid() != 0 {
            return Ok(Self::Same);
        }
        let users = std::fs::read_to_string("/etc/passwd")?;
        let (user, group) = users.lines().find_map(postgres_user).unwrap_or(NOBODY);
        Ok(Self::Other(user, group))
    }

    /// Gives a folder to the user.
    pub(crate) fn own(self, folder: &Path) -> std::io::Result<()> {
        match self {
            Self::Same => Ok(()),
            Self::Other(user, group) => chown(folder, Some(user), Some(group)),
        }
    }

    /// Makes a command run as the user.
    pub(crate) fn run(self, command: &mut Command) -> &mut Command {
        match self {
            Self::Same => command,
            Self::Other(user, group) => command.gid(group).uid(user),
        }
    }
}

/// Parses the line of the user `postgres`.
fn postgres_user(line: &str) -> Option<(u32, u32)> {
    let mut fields = line.split(':');
    (fields.next()? == "postgres").then_some(())?;
    let (user, group) = (fields.nth(1)?, fields.next()?);
    Some((user.parse().ok()?, group.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn postgres_user_is_read_from_its_line() {
        assert_eq!(postgres_user("postgres:x:104:110:admin,,,:/var/lib/postgresql:/bin/bash"), Some((104, 110)));
        assert_eq!(postgres_user("root:x:0:0:root:/root:/bin/bash"), None);
    }
}
