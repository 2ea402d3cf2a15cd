//! Environment variables `TOLLGATE__SECTION__KEY` and `TOLLGATE__SECTION__INDEX__KEY`, which override the file's
//! values.

use super::deserialize::Value;
use super::schema;
use super::section::Origin;
use super::tree::{Tree, unknown_section};
use super::{ConfigError, Environment};

/// The prefix of every override.
const PREFIX: &str = "TOLLGATE__";
/// The prefix of variables that may be misspelt overrides.
const PRODUCT: &str = "TOLLGATE_";

/// Returns the override that a variable with wrong underscores was meant to be; `None` for the variables of others, such
/// as `TOLLGATE_HOME`, and for correct ones.
fn intended(variable: &str) -> Option<String> {
    let lower = variable.strip_prefix(PRODUCT)?.to_ascii_lowercase();
    let mut words = lower.split('_').filter(|word| !word.is_empty()).peekable();
    let section = schema::section(words.next()?)?;
    let is_index = |word: &&str| word.bytes().all(|byte| byte.is_ascii_digit());
    // The error for a list without a position is the reader's.
    let first = (!variable.starts_with(PREFIX)).then_some("0");
    let index = if section.is_list { Some(words.next_if(is_index).or(first)?) } else { None };
    let wanted = words.collect::<Vec<_>>().join("_");
    let key = section.keys.iter().find(|key| **key == wanted)?;
    let parts: Vec<&str> = [section.name].into_iter().chain(index).chain([*key]).collect();
    let intended = format!("{PREFIX}{}", parts.join("__").to_uppercase());
    (!intended.eq_ignore_ascii_case(variable)).then_some(intended)
}

/// Rejects a variable that would be an override with the right underscores. It would have no effect.
fn check_underscores(variable: &str) -> Result<(), ConfigError> {
    match intended(variable) {
        None => Ok(()),
        Some(intended) => Err(ConfigError::new(format!(
            "environment variable {variable} is not a setting: use {intended}, with two underscores between the parts"
        ))),
    }
}

/// Puts the values of all variables in place of the file's.
pub fn apply(environment: &Environment, tree: &mut Tree) -> Result<(), ConfigError> {
    environment.with_prefix(PRODUCT).try_for_each(|(variable, _)| check_underscores(variable))?;
    for (variable, value) in environment.with_prefix(PREFIX) {
        let origin = Origin::Variable(variable.to_owned());
        let lower = variable[PREFIX.len()..].to_ascii_lowercase();
        let mut parts = lower.split("__");
        let name = parts.next().unwrap_or_default();
        let section = schema::section(name).ok_or_else(|| unknown_section(&origin, name))?;
        let index = if section.is_list { Some(index(&origin, name, parts.next())?) } else { None };
        let key = parts.collect::<Vec<_>>().join("__");
        let value = value.ok_or_else(|| ConfigError::new(format!("{origin} is not UTF-8")))?;
        tree.set((section, index), &key, Value::Variable(value.to_owned()), origin);
    }
    Ok(())
}

fn index(origin: &Origin, section: &str, part: Option<&str>) -> Result<usize, ConfigError> {
    part.and_then(|part| part.parse().ok()).ok_or_else(|| {
        ConfigError::new(format!(
            "{origin}: {section} is a list: {PREFIX}{}__0__KEY sets a key of its first element",
            section.to_uppercase()
        ))
    })
}
