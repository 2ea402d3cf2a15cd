//! `tollgate backup` and `tollgate restore`

mod archive;
mod create;
mod manifest;
mod restore;
mod verify;

pub use create::create;
pub use restore::restore;

/// The entry of the database in an archive.
const DATABASE: &str = "database.sqlite";
/// The first entry of an archive.
const MANIFEST: &str = "backup.json";

/// Renames a file within a file system, durably. Fails where the new name exists.
fn rename_new(from: &std::path::Path, to: &std::path::Path) -> std::io::Result<()> {
    // A link fails where the name exists, which a rename does not.
    std::fs::hard_link(from, to)?;
    std::fs::remove_file(from)?;
    let folder = to.parent().filter(|folder| !folder.as_os_str().is_empty());
    std::fs::File::open(folder.unwrap_or(std::path::Path::new(".")))?.sync_all()
}
