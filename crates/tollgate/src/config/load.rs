//! The loading of the configuration from a file and the environment.

use std::path::{Path, PathBuf};

use super::files::read_text;
use super::tree::Tree;
use super::{Config, ConfigError, Environment, build, overrides};

/// The file that is read by default, if it exists.
pub const DEFAULT_FILE: &str = "tollgate.toml";

/// Reads the file at `path`, or [`DEFAULT_FILE`] if it exists, and the overrides.
///
/// # Errors
/// The first error, with its origin. A file at `path` must exist.
pub fn load(path: Option<&Path>, environment: &Environment) -> Result<Config, ConfigError> {
    let path = match path {
        Some(path) => Some(path.to_owned()),
        None => Some(PathBuf::from(DEFAULT_FILE)).filter(|path| path.exists()),
    };
    let Some(path) = path else { return load_text(None, "", environment) };
    let text = read_text(&path).map_err(|error| {
        ConfigError::new(format!("the configuration file {} cannot be read: {error}", path.display()))
    })?;
    // Editors of Windows write a byte order mark.
    load_text(Some(&path), text.trim_start_matches('\u{feff}'), environment)
}

/// Loads the configuration from a text.
///
/// # Errors
/// The first error, with its origin.
pub fn load_text(path: Option<&Path>, text: &str, environment: &Environment) -> Result<Config, ConfigError> {
    let mut tree = Tree::parse(path.unwrap_or(Path::new(DEFAULT_FILE)), text)?;
    overrides::apply(environment, &mut tree)?;
    build::build(path, &tree, environment)
}
