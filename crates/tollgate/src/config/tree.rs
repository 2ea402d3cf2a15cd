//! All values of the configuration by section and key, with their origins.

use std::collections::BTreeMap;
use std::path::Path;

use serde::de::DeserializeOwned;
use toml::de::{DeTable, DeValue};

use super::ConfigError;
use super::deserialize::{TableError, Value, deserialize, keys};
use super::schema::{self, SectionSchema};
use super::section::{Origin, Section};

/// Values by key, with their origins.
type Values = BTreeMap<String, (Value, Origin)>;
/// The elements of a list whose keys belong to two structs.
type Pairs<T, U> = Vec<(Section<T>, Section<U>)>;

/// A table of the file, and its values with those of variables in place.
struct Table {
    section: &'static str,
    label: String,
    file: Values,
    values: Values,
}

impl Table {
    fn new(section: &'static str, label: String) -> Self {
        Self { section, label, file: Values::new(), values: Values::new() }
    }

    /// Deserializes the selected keys. A wrong value in the file is an error even if a variable overrides it.
    fn read<T: DeserializeOwned>(&self, is_selected: impl Fn(&str) -> bool) -> Result<Section<T>, ConfigError> {
        let read = |values: &Values| {
            let values = values.iter().map(|(key, (value, _))| (key.as_str(), value));
            deserialize::<T>(values.filter(|(key, _)| is_selected(key)).collect())
        };
        match read(&self.file) {
            // A variable may set it.
            Ok(_) | Err(TableError::MissingKey(_)) => {}
            Err(error) => return Err(self.fault(error, &self.file)),
        }
        let keys = read(&self.values).map_err(|error| self.fault(error, &self.values))?;
        let origins = self.values.iter().map(|(key, (_, origin))| (key.clone(), origin.clone()));
        Ok(Section::new(keys, &self.label, origins.collect()))
    }

    /// Adds the location to an error.
    fn fault(&self, error: TableError, values: &Values) -> ConfigError {
        let origin = |key: &str| values.get(key).map(|(_, origin)| format!("{origin}: ")).unwrap_or_default();
        let label = &self.label;
        ConfigError::new(match error {
            TableError::UnknownKey { key, .. } => {
                let is_variable = matches!(values.get(&key), Some((_, Origin::Variable(_))));
                format!("{}{}", origin(&key), schema::describe_unknown_key(self.section, &key, is_variable))
            }
            TableError::MissingKey(key) => format!("{label}.{key} is required and must not be empty"),
            TableError::InvalidValue { key, problem } => format!("{}{label}.{key} {problem}", origin(&key)),
        })
    }
}

/// The tables of each section, by index; a section that is not a list has index 0 only.
#[derive(Default)]
pub struct Tree(BTreeMap<&'static str, BTreeMap<usize, Table>>);

impl Tree {
    /// Parses the file.
    pub fn parse(path: &Path, text: &str) -> Result<Self, ConfigError> {
        let at = |offset: usize| {
            let before = text.as_bytes().get(..offset).unwrap_or_default();
            Origin::File { path: path.to_owned(), line: before.split(|byte| *byte == b'\n').count() }
        };
        let document = DeTable::parse(text).map_err(|error| {
            // The parser's message would quote the line, which may contain a secret.
            let origin = at(error.span().map_or(0, |span| span.start));
            ConfigError::new(format!("{origin}: {}", error.message()))
        })?;
        let mut tree = Self::default();
        for (name, value) in document.get_ref() {
            let origin = at(name.span().start);
            let section = schema::section(name.get_ref()).ok_or_else(|| unknown_section(&origin, name.get_ref()))?;
            for (index, table) in tables(section, value.get_ref(), &origin)? {
                tree.table(section, index);
                for (key, value) in table {
                    tree.set((section, index), key.get_ref(), value.get_ref().into(), at(key.span().start));
                }
            }
        }
        Ok(tree)
    }

    /// Sets a value; replaces an earlier one.
    pub fn set(
        &mut self,
        (section, index): (&'static SectionSchema, Option<usize>),
        key: &str,
        value: Value,
        origin: Origin,
    ) {
        let table = self.table(section, index);
        if matches!(origin, Origin::File { .. }) {
            table.file.insert(key.to_owned(), (value.clone(), origin.clone()));
        }
        table.values.insert(key.to_owned(), (value, origin));
    }

    fn table(&mut self, section: &'static SectionSchema, index: Option<usize>) -> &mut Table {
        let name = section.name;
        let label = index.map_or_else(|| name.to_owned(), |index| format!("{name}[{index}]"));
        let tables = self.0.entry(name).or_default();
        tables.entry(index.unwrap_or_default()).or_insert_with(|| Table::new(name, label))
    }

    /// Returns a section that is not a list. A missing one has no keys.
    pub fn section<T: DeserializeOwned>(&self, name: &'static str) -> Result<Section<T>, ConfigError> {
        match self.0.get(name).and_then(|tables| tables.get(&0)) {
            Some(table) => table.read(|_| true),
            None => Table::new(name, name.to_owned()).read(|_| true),
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
        let read =
            |table: &Table| Ok((table.read(|key| !second.contains(&key))?, table.read(|key| second.contains(&key))?));
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
    pub fn values(&self) -> impl Iterator<Item = (&'static str, &str, &Value)> {
        let tables = self.0.values().flat_map(BTreeMap::values);
        tables.flat_map(|table| table.values.iter().map(move |(key, (value, _))| (table.section, key.as_str(), value)))
    }
}

/// Returns the error for an unknown section.
pub fn unknown_section(origin: &Origin, name: &str) -> ConfigError {
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
