//! The file and the environment variables as tables of values. Messages name the key and its location, and never repeat
//! a value.

use std::collections::BTreeMap;
use std::path::Path;

use serde::de::DeserializeOwned;
use toml::Value;
use toml::de::{DeTable, DeValue};

use super::Environment;
use super::schema::{self, SectionSchema};
use super::section::{ConfigError, Origin, Section};
use super::values::{self, TableError, deserialize, keys, typed};

/// The prefix of every variable that sets a key: `TOLLGATE__SECTION__KEY` and `TOLLGATE__SECTION__INDEX__KEY`.
const PREFIX: &str = "TOLLGATE__";
/// The prefix of variables that may be misspelt ones.
const PRODUCT: &str = "TOLLGATE_";

/// Values by key, with their origins.
type Values = BTreeMap<String, (Value, Origin)>;
/// The elements of a list whose keys belong to two structs.
type Pairs<T, U> = Vec<(Section<T>, Section<U>)>;

/// A table of a section: the values of the file, and the texts of variables.
#[derive(Default)]
struct Table {
    section: &'static str,
    label: String,
    file: Values,
    variables: BTreeMap<String, (String, Origin)>,
}

impl Table {
    fn new(section: &'static str, index: Option<usize>) -> Self {
        let label = index.map_or_else(|| section.to_owned(), |index| format!("{section}[{index}]"));
        Self { section, label, ..Self::default() }
    }

    /// Returns the values by key; variables replace those of the file.
    fn values(&self) -> impl Iterator<Item = (&str, Value)> {
        let file = self.file.iter().filter(|(key, _)| !self.variables.contains_key(*key));
        let file = file.map(|(key, (value, _))| (key.as_str(), value.clone()));
        let variables = self.variables.iter();
        file.chain(variables.map(|(key, (text, _))| (key.as_str(), Value::from(text.as_str()))))
    }

    /// Deserializes the selected keys. A wrong value in the file is an error even if a variable overrides it.
    fn read<T: DeserializeOwned>(&self, is_selected: impl Fn(&str) -> bool) -> Result<Section<T>, ConfigError> {
        let file = self.file.iter().filter(|(key, _)| is_selected(key));
        let mut table: toml::Table = file.map(|(key, (value, _))| (key.clone(), value.clone())).collect();
        match deserialize::<T>(table.clone()) {
            // A variable may set it.
            Ok(_) | Err(TableError::MissingKey(_)) => {}
            Err(error) => return Err(self.fault(error, |key| self.file.get(key).map(|(_, origin)| origin))),
        }
        let variables = self.variables.iter().filter(|(key, _)| is_selected(key));
        table.extend(variables.map(|(key, (text, _))| (key.clone(), typed::<T>(key, text))));
        let file = self.file.iter().map(|(key, (_, origin))| (key, origin));
        let variables = self.variables.iter().map(|(key, (_, origin))| (key, origin));
        let origins: BTreeMap<String, Origin> =
            file.chain(variables).map(|(key, origin)| (key.clone(), origin.clone())).collect();
        let keys = deserialize(table).map_err(|error| self.fault(error, |key| origins.get(key)))?;
        Ok(Section::new(keys, &self.label, origins))
    }

    /// Adds the location to an error.
    fn fault<'a>(&self, error: TableError, origin: impl Fn(&str) -> Option<&'a Origin>) -> ConfigError {
        let label = &self.label;
        let at = |key: &str| origin(key).map(|origin| format!("{origin}: ")).unwrap_or_default();
        ConfigError::new(match error {
            TableError::UnknownKey(key) => {
                let is_variable = matches!(origin(&key), Some(Origin::Variable(_)));
                format!("{}{}", at(&key), schema::describe_unknown_key(self.section, &key, is_variable))
            }
            TableError::MissingKey(key) => format!("{label}.{key} is required and must not be empty"),
            TableError::WrongType(key, problem) | TableError::InvalidValue(key, problem) => {
                format!("{}{label}.{key} {problem}", at(&key))
            }
        })
    }
}

/// The tables of each section, by index; a section that is not a list has index 0 only.
#[derive(Default)]
pub struct Tree(BTreeMap<&'static str, BTreeMap<usize, Table>>);

impl Tree {
    /// Parses the file, and adds the values of variables.
    pub fn new(path: &Path, text: &str, environment: &Environment) -> Result<Self, ConfigError> {
        let mut tree = Self::default();
        tree.add_file(path, text)?;
        environment.with_prefix(PRODUCT).try_for_each(|(variable, _)| check_underscores(variable))?;
        for (variable, value) in environment.with_prefix(PREFIX) {
            tree.add_variable(variable, value)?;
        }
        Ok(tree)
    }

    fn add_file(&mut self, path: &Path, text: &str) -> Result<(), ConfigError> {
        let at = |offset: usize| {
            let before = text.as_bytes().get(..offset).unwrap_or_default();
            Origin::File { path: path.to_owned(), line: before.split(|byte| *byte == b'\n').count() }
        };
        let document = DeTable::parse(text).map_err(|error| {
            // The parser's message would quote the line, which may contain a secret.
            let origin = at(error.span().map_or(0, |span| span.start));
            ConfigError::new(format!("{origin}: {}", error.message()))
        })?;
        for (name, value) in document.get_ref() {
            let origin = at(name.span().start);
            let section = schema::section(name.get_ref()).ok_or_else(|| unknown_section(&origin, name.get_ref()))?;
            for (index, table) in tables(section, value.get_ref(), &origin)? {
                let found = self.table(section, index);
                for (key, value) in table {
                    let value = (values::value(value.get_ref()), at(key.span().start));
                    found.file.insert(key.get_ref().to_string(), value);
                }
            }
        }
        Ok(())
    }

    fn add_variable(&mut self, variable: &str, value: Option<&str>) -> Result<(), ConfigError> {
        let origin = Origin::Variable(variable.to_owned());
        let lower = variable[PREFIX.len()..].to_ascii_lowercase();
        let mut parts = lower.split("__");
        let name = parts.next().unwrap_or_default();
        let section = schema::section(name).ok_or_else(|| unknown_section(&origin, name))?;
        let index = section.is_list.then(|| parts.next().and_then(|part| part.parse().ok()));
        if index == Some(None) {
            let form = format!("{PREFIX}{}__0__KEY sets a key of its first element", name.to_uppercase());
            return Err(ConfigError::new(format!("{origin}: {name} is a list: {form}")));
        }
        let key = parts.collect::<Vec<_>>().join("__");
        let value = value.ok_or_else(|| ConfigError::new(format!("{origin} is not UTF-8")))?;
        self.table(section, index.flatten()).variables.insert(key, (value.to_owned(), origin));
        Ok(())
    }

    fn table(&mut self, section: &'static SectionSchema, index: Option<usize>) -> &mut Table {
        let tables = self.0.entry(section.name).or_default();
        tables.entry(index.unwrap_or_default()).or_insert_with(|| Table::new(section.name, index))
    }

    /// Returns a section that is not a list. A missing one has no keys.
    pub fn section<T: DeserializeOwned>(&self, name: &'static str) -> Result<Section<T>, ConfigError> {
        match self.0.get(name).and_then(|tables| tables.get(&0)) {
            Some(table) => table.read(|_| true),
            None => Table::new(name, None).read(|_| true),
        }
    }

    /// Returns the elements of a list, in order.
    pub fn list<T: DeserializeOwned>(&self, name: &str) -> Result<Vec<Section<T>>, ConfigError> {
        self.tables(name)?.map(|table| table.read(|_| true)).collect()
    }

    /// Returns the elements of a list whose keys belong to two structs, in order.
    pub fn list_of_pairs<T, U>(&self, name: &str) -> Result<Pairs<T, U>, ConfigError>
    where
        T: DeserializeOwned,
        U: DeserializeOwned,
    {
        let second = keys::<U>();
        let is_second = |key: &str| second.iter().any(|name| name == key);
        let read = |table: &Table| Ok((table.read(|key| !is_second(key))?, table.read(is_second)?));
        self.tables(name)?.map(read).collect()
    }

    fn tables(&self, name: &str) -> Result<impl Iterator<Item = &Table>, ConfigError> {
        let tables = self.0.get(name);
        for (expected, index) in tables.into_iter().flat_map(BTreeMap::keys).enumerate() {
            if expected != *index {
                return Err(ConfigError::new(format!("{name}[{index}] is set but {name}[{expected}] is not")));
            }
        }
        Ok(tables.into_iter().flat_map(BTreeMap::values))
    }

    /// Returns every value with its section and key.
    pub fn values(&self) -> impl Iterator<Item = (&'static str, &str, Value)> {
        self.0.iter().flat_map(|(section, tables)| {
            let values = tables.values().flat_map(Table::values);
            values.map(|(key, value)| (*section, key, value))
        })
    }
}

/// Returns the error for an unknown section.
fn unknown_section(origin: &Origin, name: &str) -> ConfigError {
    ConfigError::new(format!("{origin}: {}", schema::describe_unknown_section(name)))
}

/// Returns the tables of a section of the file.
fn tables<'a>(
    section: &SectionSchema,
    value: &'a DeValue<'a>,
    origin: &Origin,
) -> Result<Vec<(Option<usize>, &'a DeTable<'a>)>, ConfigError> {
    let name = section.name;
    match (value, section.is_list) {
        (DeValue::Table(table), false) => Ok(vec![(None, table)]),
        (DeValue::Array(array), true) => {
            let tables = array.iter().enumerate().map(|(index, element)| match element.get_ref() {
                DeValue::Table(table) => Ok((Some(index), table)),
                _ => Err(ConfigError::new(format!("{origin}: {name} must be [[{name}]] tables"))),
            });
            tables.collect()
        }
        (_, false) => Err(ConfigError::new(format!("{origin}: {name} must be a table: [{name}]"))),
        (_, true) => Err(ConfigError::new(format!("{origin}: {name} must be [[{name}]] tables"))),
    }
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
    let index = if section.is_list { Some(words.next_if(is_index).or(first)?) } else { None };
    let wanted = words.collect::<Vec<_>>().join("_");
    let key = section.keys.iter().find(|key| **key == wanted)?;
    let parts: Vec<&str> = [section.name].into_iter().chain(index).chain([key.as_str()]).collect();
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
