//! The folders of the repository.

use std::path::{Path, PathBuf};

/// Returns the root of the repository.
pub fn root() -> &'static Path {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().and_then(Path::parent).unwrap_or(here)
}

/// Returns Cargo's target folder, which `CARGO_TARGET_DIR` may override.
#[expect(clippy::disallowed_methods, reason = "a task of the build, not the service: it asks as cargo asks")]
pub fn target() -> PathBuf {
    match std::env::var_os("CARGO_TARGET_DIR") {
        Some(moved) => root().join(moved),
        None => root().join("target"),
    }
}

/// Returns the path of a program in a folder, with the ending of this platform.
pub fn program(folder: &Path, name: &str) -> PathBuf {
    folder.join(format!("{name}{}", std::env::consts::EXE_SUFFIX))
}
