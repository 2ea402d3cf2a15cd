//! The permissions of the files that this process creates.

use rustix::fs::Mode;
use rustix::process::umask;

/// Makes every file and folder that this process creates accessible to its user and to no other user, with any inherited
/// mask. Files of libraries, such as those of SQLite, are included.
pub fn create_private_files() {
    umask(Mode::RWXG | Mode::RWXO);
}
