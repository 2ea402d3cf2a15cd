//! The presets of providers: tables of the configuration with values that the operator fills in.

use toml_edit::{ArrayOfTables, DocumentMut, InlineTable, Item, Table, Value};

use crate::commands::prelude::*;
use crate::config::similar;

const PRESETS: &str = include_str!("../../assets/provider_presets.toml");

/// The place of a provider's key.
pub(super) enum KeySource {
    None,
    Variable(String),
    File(PathBuf),
}

/// A preset, and the values for its placeholders.
pub(super) struct Preset {
    name: String,
    table: Table,
    values: Vec<(String, String)>,
}

impl Preset {
    /// Finds a preset.
    ///
    /// # Errors
    /// There is none with this name; the error lists them.
    pub(super) fn named(name: &str) -> anyhow::Result<Self> {
        let all = all()?;
        let names: Vec<&str> = all.iter().filter_map(|table| table.get("name")?.as_str()).collect();
        let Some(at) = names.iter().position(|known| *known == name) else {
            let nearest =
                similar(name, names.iter().copied()).map_or(String::new(), |near| format!("; the nearest is {near}"));
            bail!("no preset {name:?}{nearest}; the presets are {}", names.join(", "));
        };
        let table = all.get(at).cloned().context("the preset is missing")?;
        Ok(Self { name: name.to_owned(), table, values: Vec::new() })
    }

    /// Sets placeholders from `name=value`.
    ///
    /// # Errors
    /// Another form, or a placeholder that the preset does not have.
    pub(super) fn set(&mut self, pairs: &[String]) -> anyhow::Result<()> {
        let known = self.placeholders();
        for pair in pairs {
            let (name, value) = pair
                .split_once('=')
                .filter(|(_, value)| !value.is_empty())
                .with_context(|| format!("{pair:?} is not of the form NAME=VALUE"))?;
            if !known.iter().any(|placeholder| placeholder == name) {
                bail!("the preset {} has no value {name:?}; it has: {}", self.name, known.join(", "));
            }
            self.values.push((name.to_owned(), value.to_owned()));
        }
        Ok(())
    }

    /// Returns the placeholders without a value, in the order of the preset.
    pub(super) fn missing(&self) -> Vec<String> {
        let has_value = |name: &String| self.values.iter().any(|(known, _)| known == name);
        self.placeholders().into_iter().filter(|name| !has_value(name)).collect()
    }

    /// Returns the usual variable of the vendor's key.
    pub(super) fn key_variable(&self) -> Option<&str> {
        self.table.get("key_variable")?.as_str()
    }

    /// Adds the provider and its endpoints at the end of the document's lists. Returns the added text.
    ///
    /// # Errors
    /// The provider exists, or the lists are not written as `[[providers]]` and `[[endpoints]]`.
    pub(super) fn add_to(&self, document: &mut DocumentMut, slug: &str, key: &KeySource) -> anyhow::Result<String> {
        let mut provider = Table::new();
        provider.insert("slug", slug.into());
        self.copy(self.part("provider")?, &mut provider);
        match key {
            KeySource::None => {}
            KeySource::Variable(name) => drop(provider.insert("api_key", format!("env:{name}").into())),
            KeySource::File(path) => drop(provider.insert("api_key", format!("file:{}", path.display()).into())),
        }
        let mut endpoints = Vec::new();
        let rows = self.table.get("endpoints").and_then(Item::as_array).context("the preset has no endpoints")?;
        for row in rows.iter().filter_map(Value::as_inline_table) {
            let mut endpoint = Table::new();
            endpoint.insert("model", "".into());
            endpoint.insert("provider", slug.into());
            self.copy(row, &mut endpoint);
            if let Some(source) = self.table.get("source").and_then(Item::as_str) {
                endpoint.decor_mut().set_prefix(format!("\n# Price of November 2026: {source}\n"));
            }
            endpoints.push(endpoint);
        }
        let own = list(document, "providers")?;
        if own.iter().any(|table| table.get("slug").and_then(Item::as_str) == Some(slug)) {
            bail!("the provider {slug:?} exists in the configuration file; --slug gives the new one another name");
        }
        let mut added = DocumentMut::new();
        list(&mut added, "providers")?.push(provider.clone());
        own.push(provider);
        for endpoint in endpoints {
            list(&mut added, "endpoints")?.push(endpoint.clone());
            list(document, "endpoints")?.push(endpoint);
        }
        Ok(added.to_string())
    }

    fn part(&self, name: &str) -> anyhow::Result<&InlineTable> {
        self.table.get(name).and_then(Item::as_inline_table).with_context(|| format!("the preset has no {name}"))
    }

    /// Copies values and replaces their placeholders.
    fn copy(&self, from: &InlineTable, to: &mut Table) {
        for (name, value) in from {
            let value = match value.as_str() {
                Some(text) => Value::from(self.filled(text)),
                None => value.clone().decorated(" ", ""),
            };
            to.insert(name, Item::Value(value));
        }
    }

    fn filled(&self, text: &str) -> String {
        self.values.iter().fold(text.to_owned(), |text, (name, value)| text.replace(&format!("<{name}>"), value))
    }

    fn placeholders(&self) -> Vec<String> {
        let text = self.table.to_string();
        let mut names: Vec<String> = Vec::new();
        for part in text.split('<').skip(1) {
            if let Some((name, _)) = part.split_once('>')
                && !names.iter().any(|known| known == name)
            {
                names.push(name.to_owned());
            }
        }
        names
    }
}

fn all() -> anyhow::Result<ArrayOfTables> {
    let document: DocumentMut = PRESETS.parse().context("the presets cannot be read")?;
    document.get("presets").and_then(Item::as_array_of_tables).cloned().context("there are no presets")
}

/// Returns a list of tables of the document; creates it if it is missing.
fn list<'d>(document: &'d mut DocumentMut, name: &str) -> anyhow::Result<&'d mut ArrayOfTables> {
    let item = document.entry(name).or_insert_with(|| Item::ArrayOfTables(ArrayOfTables::new()));
    item.as_array_of_tables_mut().with_context(|| {
        format!("the configuration file has {name} in one line: write them as [[{name}]] tables first")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Environment, load_text};

    /// Returns the preset with a value for each placeholder.
    fn filled(name: &str) -> Preset {
        let mut preset = Preset::named(name).unwrap();
        for missing in preset.missing() {
            let value = match missing.as_str() {
                "wire" => "system-one",
                "base_url" => "http://127.0.0.1:1/v1",
                "model" if name == "custom" => "house/model",
                price if price.ends_with("_usd_per_million_tokens") => "0.5",
                _ => "acme",
            };
            preset.set(&[format!("{missing}={value}")]).unwrap();
        }
        assert!(preset.missing().is_empty());
        preset
    }

    #[test]
    fn every_preset_is_a_valid_configuration() {
        let presets = all().unwrap();
        assert!(presets.len() > 10);
        for preset in &presets {
            let name = preset.get("name").unwrap().as_str().unwrap();
            let preset = filled(name);
            let key = preset.key_variable().map_or(KeySource::None, |name| KeySource::Variable(name.to_owned()));
            let mut document = DocumentMut::new();
            let added = preset.add_to(&mut document, name, &key).unwrap();
            assert_eq!(added, document.to_string(), "{name}");
            assert!(!added.contains('<'), "{name}: a placeholder is left: {added}");
            let variables = preset.key_variable().map(|variable| (variable, "sk-test"));
            let config = load_text(None, &added, &variables.into_iter().collect::<Environment>()).unwrap();
            assert_eq!(config.providers[0].slug.as_str(), name);
            assert!(!config.endpoints.is_empty() && config.endpoints[0].prices.is_some(), "{name}");
            assert_eq!(config.providers[0].secret_variable(), preset.key_variable(), "{name}");
            assert_eq!(added.contains("# Price of"), preset.key_variable().is_some(), "{name}: {added}");
        }
    }

    #[test]
    fn comments_and_other_tables_of_the_file_stay() {
        let before = "# ours\n[server] # port\nlisten = '127.0.0.1:1'\n\n# the first\n[[providers]]\nslug = 'a'\n\
                      base_url = 'http://h'\n\n[log]\nformat = 'json' # for the collector\n";
        let mut document: DocumentMut = before.parse().unwrap();
        filled("typesafe").add_to(&mut document, "typesafe", &KeySource::File("/k".into())).unwrap();
        let after = document.to_string();
        for line in before.lines() {
            assert!(after.contains(line), "{line} is gone: {after}");
        }
        let config = load_text(None, &after.replace("file:/k", "env:K"), &[("K", "k")].into_iter().collect()).unwrap();
        let slugs: Vec<&str> = config.providers.iter().map(|provider| provider.slug.as_str()).collect();
        assert_eq!(slugs, ["a", "typesafe"]);
    }

    #[test]
    fn provider_that_exists_and_inline_lists_are_errors() {
        let add = |text: &str| {
            let mut document: DocumentMut = text.parse().unwrap();
            filled("ollama").add_to(&mut document, "ollama", &KeySource::None).map_err(|error| error.to_string())
        };
        let exists = add("[[providers]]\nslug = 'ollama'\n").unwrap_err();
        assert!(exists.contains("exists") && exists.contains("--slug"), "{exists}");
        let inline = add("providers = [{ slug = 'a' }]\n").unwrap_err();
        assert!(inline.contains("[[providers]]"), "{inline}");
    }

    #[test]
    fn unknown_names_are_errors_with_the_known_ones() {
        let unknown = Preset::named("typesave").err().unwrap().to_string();
        assert!(unknown.contains("the nearest is typesafe") && unknown.contains("ollama"), "{unknown}");
        let mut azure = Preset::named("azure").unwrap();
        assert_eq!(azure.missing(), ["resource", "deployment"]);
        let error = |preset: &mut Preset, pair: &str| preset.set(&[pair.to_owned()]).unwrap_err().to_string();
        assert!(error(&mut azure, "region=x").contains("resource, deployment"));
        assert!(error(&mut azure, "resource").contains("NAME=VALUE"));
        assert!(error(&mut azure, "resource=").contains("NAME=VALUE"));
    }
}
