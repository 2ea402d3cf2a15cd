//! The folder of an installation.

use std::path::Path;

use anyhow::Result;

/// The file with the list of packages that a folder was filled from.
const FILLED: &str = "filled-for";

/// Returns true if the folder was filled from exactly this list of packages.
pub fn is_filled_for(folder: &Path, wanted: &[u8]) -> bool {
    std::fs::read(folder.join(FILLED)).is_ok_and(|had| had == wanted)
}

/// Records the list that the folder was filled from; the last step of an installation.
pub fn mark_filled_for(folder: &Path, wanted: &[u8]) -> Result<()> {
    Ok(std::fs::write(folder.join(FILLED), wanted)?)
}

/// Empties the folder of an outdated or incomplete installation.
pub fn clear(folder: &Path) -> Result<()> {
    if folder.exists() {
        std::fs::remove_dir_all(folder)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folder_is_filled_for_its_list_only_once_marked() {
        let folder = tempfile::tempdir().unwrap();
        assert!(!is_filled_for(folder.path(), b"a==1"));
        mark_filled_for(folder.path(), b"a==1").unwrap();
        assert!(is_filled_for(folder.path(), b"a==1"));
        assert!(!is_filled_for(folder.path(), b"a==2"));
        clear(folder.path()).unwrap();
        assert!(!is_filled_for(folder.path(), b"a==1"));
        clear(folder.path()).unwrap();
    }
}
