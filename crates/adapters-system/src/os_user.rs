//! The user and the host of this process, and the permissions of its files.

use std::path::Path;

use rustix::fs::Mode;
use rustix::process::umask;

/// The user database of the operating system. Users of a directory service are not in it.
const PASSWD: &str = "/etc/passwd";

/// The real user of this process, independent of its environment, and the host name.
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

/// Makes every file and folder that this process creates accessible to its user and to no other user, with any inherited
/// mask. Files of libraries, such as those of SQLite, are included.
pub fn create_private_files() {
    umask(Mode::RWXG | Mode::RWXO);
}

impl OsUser {
    /// Returns the user of this process.
    pub fn of_process() -> Self {
        let uid = rustix::process::getuid().as_raw();
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
}
