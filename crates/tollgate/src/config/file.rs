//! The parser of the TOML file.

use std::path::Path;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::ConfigError;
use super::entries::{Entries, Origin, Value, expected, unknown_key, unknown_section};
use super::schema::{self, Section};

/// A file's name and text, to find line numbers.
struct Source<'a> {
    path: &'a Path,
    text: &'a str,
}

impl Source<'_> {
    fn at(&self, offset: usize) -> Origin {
        let before = self.text.as_bytes().get(..offset).unwrap_or_default();
        let line = before.split(|byte| *byte == b'\n').count();
        Origin::File { path: self.path.to_owned(), line }
    }
}

/// Reads every value of the file.
pub fn read(path: &Path, text: &str, entries: &mut Entries) -> Result<(), ConfigError> {
    let source = Source { path, text };
    let document = DeTable::parse(text).map_err(|error| {
        // The parser's message would quote the line, which may contain a secret.
        let origin = source.at(error.span().map_or(0, |span| span.start));
        ConfigError::new(format!("{origin}: {}", error.message()))
    })?;
    for (name, value) in document.get_ref() {
        let origin = source.at(name.span().start);
        let section = schema::section(name.get_ref()).ok_or_else(|| unknown_section(&origin, name.get_ref()))?;
        match (value.get_ref(), section.repeated) {
            (DeValue::Table(table), false) => read_table(&source, section, None, table, entries)?,
            (DeValue::Array(array), true) => {
                for (index, element) in array.iter().enumerate() {
                    let DeValue::Table(table) = element.get_ref() else {
                        return Err(ConfigError::new(format!(
                            "{origin}: {} must be [[{}]] tables",
                            section.name, section.name
                        )));
                    };
                    entries.table(section, Some(index));
                    read_table(&source, section, Some(index), table, entries)?;
                }
            }
            (_, false) => {
                return Err(ConfigError::new(format!(
                    "{origin}: {} must be a table: [{}]",
                    section.name, section.name
                )));
            }
            (_, true) => {
                return Err(ConfigError::new(format!(
                    "{origin}: {} must be [[{}]] tables",
                    section.name, section.name
                )));
            }
        }
    }
    Ok(())
}

fn read_table(
    source: &Source<'_>,
    section: &'static Section,
    index: Option<usize>,
    table: &DeTable<'_>,
    entries: &mut Entries,
) -> Result<(), ConfigError> {
    for (name, value) in table {
        let origin = source.at(name.span().start);
        let known = section.keys.iter().find(|(key, _)| *key == name.get_ref().as_ref());
        let Some(&(key, kind)) = known else { return Err(unknown_key(&origin, section.name, name.get_ref())) };
        let target = entries.table(section, index);
        match read_value(value).filter(|value| value.is(kind)) {
            Some(value) => target.put(key, value, origin),
            None => return Err(ConfigError::new(format!("{origin}: {}.{key} {}", target.label, expected(kind)))),
        }
    }
    Ok(())
}

fn read_value(value: &Spanned<DeValue<'_>>) -> Option<Value> {
    match value.get_ref() {
        DeValue::String(text) => Some(Value::Text(text.to_string())),
        DeValue::Integer(number) => u64::from_str_radix(number.as_str(), number.radix()).ok().map(Value::Number),
        DeValue::Boolean(on) => Some(Value::Switch(*on)),
        DeValue::Array(array) => array.iter().map(read_text).collect::<Option<_>>().map(Value::Texts),
        _ => None,
    }
}

fn read_text(value: &Spanned<DeValue<'_>>) -> Option<String> {
    match value.get_ref() {
        DeValue::String(text) => Some(text.to_string()),
        _ => None,
    }
}
