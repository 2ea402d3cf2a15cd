//! Configuration values with their origins, before interpretation.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use super::ConfigError;
use super::schema::{self, Kind};

/// The origin of a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// In the file, at a line counted from 1.
    File { path: PathBuf, line: usize },
    /// In an environment variable.
    Variable(String),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File { path, line } => write!(f, "{}, line {line}", path.display()),
            Self::Variable(name) => write!(f, "environment variable {name}"),
        }
    }
}

/// A value of the kind that the schema requires.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    Text(String),
    Number(u64),
    Switch(bool),
    Texts(Vec<String>),
}

impl Value {
    /// Returns true if the value has this kind.
    pub fn is(&self, kind: Kind) -> bool {
        matches!(
            (self, kind),
            (Self::Text(_), Kind::Text)
                | (Self::Number(_), Kind::Number)
                | (Self::Switch(_), Kind::Switch)
                | (Self::Texts(_), Kind::Texts)
        )
    }
}

/// A table: its values by key.
#[derive(Debug, Clone, Default)]
pub struct Table {
    /// The name in messages: `server`, `providers[0]`.
    pub label: String,
    values: BTreeMap<&'static str, (Value, Origin)>,
}

impl Table {
    /// Sets a value; replaces an earlier one.
    pub fn put(&mut self, key: &'static str, value: Value, origin: Origin) {
        self.values.insert(key, (value, origin));
    }

    /// Returns true if the key is set.
    pub fn has(&self, key: &str) -> bool {
        self.values.contains_key(key)
    }

    /// Returns the value of a key.
    pub fn value(&self, key: &str) -> Option<&Value> {
        self.values.get(key).map(|(value, _)| value)
    }

    /// Returns true if the value of the key comes from the file.
    pub fn is_in_file(&self, key: &str) -> bool {
        matches!(self.values.get(key), Some((_, Origin::File { .. })))
    }

    /// Returns the string of a key.
    pub fn text(&self, key: &str) -> Option<&str> {
        match self.values.get(key) {
            Some((Value::Text(text), _)) => Some(text),
            _ => None,
        }
    }

    /// Returns the path of a key. A relative path in the file is relative to the folder of the file, one in an
    /// environment variable to the working directory.
    pub fn path(&self, key: &str) -> Option<PathBuf> {
        self.text(key).map(|text| self.resolve(key, Path::new(text)))
    }

    /// Resolves a path that the value of a key contains, as [`Table::path`] does.
    pub fn resolve(&self, key: &str, path: &Path) -> PathBuf {
        match self.values.get(key) {
            Some((_, Origin::File { path: file, .. })) => file.parent().unwrap_or(Path::new("")).join(path),
            _ => path.to_owned(),
        }
    }

    /// Returns the strings of a key; empty if it is not set.
    pub fn texts(&self, key: &str) -> &[String] {
        match self.values.get(key) {
            Some((Value::Texts(texts), _)) => texts,
            _ => &[],
        }
    }

    /// Returns the number of a key.
    pub fn number(&self, key: &str) -> Option<u64> {
        match self.values.get(key) {
            Some((Value::Number(number), _)) => Some(*number),
            _ => None,
        }
    }

    /// Returns the number of a key, or `default`; zero is an error.
    pub fn positive(&self, key: &str, default: u64) -> Result<u64, ConfigError> {
        match self.number(key) {
            Some(0) => Err(self.fault(key, "must be more than 0")),
            Some(number) => Ok(number),
            None => Ok(default),
        }
    }

    /// Returns the boolean of a key.
    pub fn switch(&self, key: &str) -> Option<bool> {
        match self.values.get(key) {
            Some((Value::Switch(on), _)) => Some(*on),
            _ => None,
        }
    }

    /// Returns the string of a mandatory key.
    pub fn required(&self, key: &str) -> Result<&str, ConfigError> {
        self.text(key)
            .filter(|text| !text.is_empty())
            .ok_or_else(|| ConfigError::new(format!("{}.{key} is required and must not be empty", self.label)))
    }

    /// Returns an error about the value of a key, with its origin.
    pub fn fault(&self, key: &str, what: impl fmt::Display) -> ConfigError {
        match self.values.get(key) {
            Some((_, origin)) => ConfigError::new(format!("{origin}: {}.{key} {what}", self.label)),
            None => ConfigError::new(format!("{}.{key} {what}", self.label)),
        }
    }
}

/// All tables.
#[derive(Debug, Default)]
pub struct Entries {
    single: BTreeMap<&'static str, Table>,
    repeated: BTreeMap<&'static str, BTreeMap<usize, Table>>,
}

impl Entries {
    /// Returns the table for a value of `section`; `index` is set for repeated sections only.
    pub fn table(&mut self, section: &'static schema::Section, index: Option<usize>) -> &mut Table {
        let (table, label) = match index {
            Some(index) => (
                self.repeated.entry(section.name).or_default().entry(index).or_default(),
                format!("{}[{index}]", section.name),
            ),
            None => (self.single.entry(section.name).or_default(), section.name.to_owned()),
        };
        table.label = label;
        table
    }

    /// Returns a table that is not repeated; empty if it is missing.
    pub fn single(&self, name: &str) -> Table {
        self.single.get(name).cloned().unwrap_or_else(|| Table { label: name.to_owned(), values: BTreeMap::new() })
    }

    /// Returns the tables of a repeated section, in order.
    pub fn repeated(&self, name: &str) -> Result<Vec<Table>, ConfigError> {
        let Some(tables) = self.repeated.get(name) else { return Ok(Vec::new()) };
        for (expected, index) in tables.keys().enumerate() {
            if expected != *index {
                return Err(ConfigError::new(format!("{name}[{index}] is set but {name}[{expected}] is not")));
            }
        }
        Ok(tables.values().cloned().collect())
    }
}

/// Returns the error for an unknown key.
pub fn unknown_key(origin: &Origin, section: &str, key: &str) -> ConfigError {
    if matches!(key, "api_key" | "api_token" | "token" | "secret" | "password") {
        return ConfigError::new(format!(
            "{origin}: {section}.{key} is not a key: secrets are not allowed in the configuration; name a variable with \
             api_key_env or a file with api_key_file"
        ));
    }
    let nearest = schema::nearest_key(section, key);
    let hint = match origin {
        Origin::File { .. } => nearest,
        Origin::Variable(_) => super::overrides::variable_name(&nearest),
    };
    let key = displayed_name(key);
    ConfigError::new(format!("{origin}: unknown key {section}.{key}; the nearest known one is {hint}"))
}

/// Returns the error for an unknown section.
pub fn unknown_section(origin: &Origin, name: &str) -> ConfigError {
    ConfigError::new(format!(
        "{origin}: unknown section {}; the nearest known one is {}",
        displayed_name(name),
        schema::nearest_section(name)
    ))
}

/// Returns a key or section that looks like one. Anything else may be a misplaced value and is not shown.
fn displayed_name(name: &str) -> &str {
    let is_word = name.len() <= 40 && name.bytes().all(|byte| byte.is_ascii_alphabetic() || b"_-".contains(&byte));
    if is_word { name } else { "(not repeated)" }
}

/// Describes a kind of value for messages.
pub fn expected(kind: Kind) -> &'static str {
    match kind {
        Kind::Text => "must be a string",
        Kind::Number => "must be a whole number, zero or more",
        Kind::Switch => "must be true or false",
        Kind::Texts => "must be an array of strings",
    }
}
