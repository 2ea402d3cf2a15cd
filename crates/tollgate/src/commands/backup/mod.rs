//! `tollgate backup` and `tollgate restore`

mod archive;
mod create;
mod manifest;
mod restore;
mod verify;

pub use create::create;
pub use restore::restore;

/// The name of the database's entry in an archive.
const DATABASE: &str = "database.sqlite";
/// The name of the first entry of an archive.
const MANIFEST: &str = "backup.json";

/// Renames a file durably. Fails if the new name exists.
fn rename_new(from: &std::path::Path, to: &std::path::Path) -> std::io::Result<()> {
    // A hard link fails if the name exists; a rename would replace the file.
    std::fs::hard_link(from, to)?;
    std::fs::remove_file(from)?;
    let folder = to.parent().filter(|folder| !folder.as_os_str().is_empty());
    std::fs::File::open(folder.unwrap_or(std::path::Path::new(".")))?.sync_all()
}
