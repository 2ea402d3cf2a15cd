//! From a path and the environment to a configuration.

use std::path::{Path, PathBuf};

use super::entries::Entries;
use super::{Config, ConfigError, Environment, build, file, overrides};

/// The file that is read where none is named and it is there.
pub const DEFAULT_FILE: &str = "tollgate.toml";

/// Reads the file that `path` names, or [`DEFAULT_FILE`] where it is there, and the overrides.
///
/// # Errors
/// The first fault, with its place. A file that is named must be there.
pub fn load(path: Option<&Path>, environment: &Environment) -> Result<Config, ConfigError> {
    let path = match path {
        Some(path) => Some(path.to_owned()),
        None => Some(PathBuf::from(DEFAULT_FILE)).filter(|path| path.exists()),
    };
    let Some(path) = path else { return load_text(None, "", environment) };
    let text = std::fs::read_to_string(&path).map_err(|error| {
        ConfigError::new(format!("the configuration file {} cannot be read: {error}", path.display()))
    })?;
    load_text(Some(&path), &text, environment)
}

/// The same from a text.
///
/// # Errors
/// As [`load`].
pub fn load_text(path: Option<&Path>, text: &str, environment: &Environment) -> Result<Config, ConfigError> {
    let mut entries = Entries::default();
    let shown = path.unwrap_or(Path::new(DEFAULT_FILE)).display().to_string();
    file::read(&shown, text, &mut entries)?;
    overrides::apply(environment, &mut entries)?;
    build::build(path, &entries, environment)
}
