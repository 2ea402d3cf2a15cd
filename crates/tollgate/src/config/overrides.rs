//! Environment variables `TOLLGATE__SECTION__KEY` and `TOLLGATE__SECTION__INDEX__KEY`, which override the file's
//! values.

use super::entries::{Entries, Origin, Value, expected, unknown_key, unknown_section};
use super::schema::{self, Kind};
use super::{ConfigError, Environment};

/// The prefix of every override.
const PREFIX: &str = "TOLLGATE__";
/// The prefix of variables that may be misspelt overrides.
const PRODUCT: &str = "TOLLGATE_";

/// Returns the variable that overrides `section.key`; for a repeated section, the one of its first element.
pub fn variable_name(dotted: &str) -> String {
    let (section, key) = dotted.split_once('.').unwrap_or((dotted, ""));
    let index = if schema::section(section).is_some_and(|section| section.repeated) { "0__" } else { "" };
    format!("{PREFIX}{}__{index}{}", section.to_uppercase(), key.to_uppercase())
}

/// Returns the override that a variable with wrong underscores was meant to be; `None` for the variables of others, such
/// as `TOLLGATE_HOME`, and for correct ones.
fn intended(variable: &str) -> Option<String> {
    let lower = variable.strip_prefix(PRODUCT)?.to_ascii_lowercase();
    let mut words = lower.split('_').filter(|word| !word.is_empty()).peekable();
    let section = schema::section(words.next()?)?;
    let is_index = |word: &&str| word.bytes().all(|byte| byte.is_ascii_digit());
    // The error for a list without a position is the reader's.
    let first = (!variable.starts_with(PREFIX)).then_some("0");
    let index = if section.repeated { Some(words.next_if(is_index).or(first)?) } else { None };
    let wanted = words.collect::<Vec<_>>().join("_");
    let (key, _) = section.keys.iter().find(|(key, _)| *key == wanted)?;
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

/// Applies every override.
pub fn apply(environment: &Environment, entries: &mut Entries) -> Result<(), ConfigError> {
    environment.with_prefix(PRODUCT).try_for_each(|(variable, _)| check_underscores(variable))?;
    for (variable, value) in environment.with_prefix(PREFIX) {
        let origin = Origin::Variable(variable.to_owned());
        let lower = variable[PREFIX.len()..].to_ascii_lowercase();
        let mut parts = lower.split("__");
        let name = parts.next().unwrap_or_default();
        let section = schema::section(name).ok_or_else(|| unknown_section(&origin, name))?;
        let index = if section.repeated { Some(index(&origin, section.name, parts.next())?) } else { None };
        let key = parts.collect::<Vec<_>>().join("__");
        let Some(&(key, kind)) = section.keys.iter().find(|(known, _)| *known == key) else {
            return Err(unknown_key(&origin, section.name, &key));
        };
        let value = value.ok_or_else(|| ConfigError::new(format!("{origin} is not UTF-8")))?;
        let target = entries.table(section, index);
        match parse(value, kind) {
            Some(value) => target.put(key, value, origin),
            None => return Err(ConfigError::new(format!("{origin}: {}.{key} {}", target.label, expected(kind)))),
        }
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

/// Parses a TOML scalar of a kind; text may also be unquoted.
fn parse(value: &str, kind: Kind) -> Option<Value> {
    match kind {
        Kind::Text => Some(Value::Text(quoted(value).unwrap_or_else(|| value.to_owned()))),
        Kind::Number => value.trim().replace('_', "").parse().ok().map(Value::Number),
        Kind::Switch => value.trim().parse().ok().map(Value::Switch),
        Kind::Texts => texts(value).map(Value::Texts),
    }
}

/// Parses a quoted TOML string.
fn quoted(value: &str) -> Option<String> {
    if !value.starts_with(['"', '\'']) {
        return None;
    }
    match toml::de::DeValue::parse(value).ok()?.into_inner() {
        toml::de::DeValue::String(text) => Some(text.into_owned()),
        _ => None,
    }
}

/// Parses a TOML array of strings, or a comma-separated list.
fn texts(value: &str) -> Option<Vec<String>> {
    if !value.trim_start().starts_with('[') {
        return Some(value.split(',').map(str::trim).filter(|text| !text.is_empty()).map(str::to_owned).collect());
    }
    let toml::de::DeValue::Array(array) = toml::de::DeValue::parse(value.trim()).ok()?.into_inner() else {
        return None;
    };
    array
        .into_iter()
        .map(|element| match element.into_inner() {
            toml::de::DeValue::String(text) => Some(text.into_owned()),
            _ => None,
        })
        .collect()
}
