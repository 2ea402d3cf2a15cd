//! The sections of the configuration, with the keys of their structs.

use std::sync::LazyLock;

use super::bucket::RawBlobs;
use super::endpoints::RawEndpoint;
use super::limits::{RawLimits, RawRetention};
use super::providers::{RawCapabilities, RawProvider};
use super::rate_limits::RawRateLimits;
use super::routing::{RawModel, RawMoney, RawRouting};
use super::server::{RawEgress, RawKeys, RawLog, RawSandbox, RawServer};
use super::storage::{RawJournal, RawStorage};
use super::telemetry::RawTelemetry;
use super::values::{keys, nearest};

/// A section of the file.
pub struct SectionSchema {
    /// Its name.
    pub name: &'static str,
    /// True for an array of tables.
    pub is_list: bool,
    /// Its keys.
    pub keys: Vec<String>,
}

/// All sections.
pub static SECTIONS: LazyLock<[SectionSchema; 17]> = LazyLock::new(|| {
    let table = |name, keys| SectionSchema { name, is_list: false, keys };
    let list = |name, keys| SectionSchema { name, is_list: true, keys };
    [
        table("server", keys::<RawServer>()),
        table("storage", keys::<RawStorage>()),
        table("journal", keys::<RawJournal>()),
        table("keys", keys::<RawKeys>()),
        table("blobs", keys::<RawBlobs>()),
        table("limits", keys::<RawLimits>()),
        table("rate_limits", keys::<RawRateLimits>()),
        table("sandbox", keys::<RawSandbox>()),
        table("log", keys::<RawLog>()),
        list("providers", [keys::<RawProvider>(), keys::<RawCapabilities>()].concat()),
        list("endpoints", [keys::<RawEndpoint>(), keys::<RawCapabilities>()].concat()),
        list("models", keys::<RawModel>()),
        table("money", keys::<RawMoney>()),
        table("retention", keys::<RawRetention>()),
        table("egress", keys::<RawEgress>()),
        table("telemetry", keys::<RawTelemetry>()),
        table("routing", keys::<RawRouting>()),
    ]
});

/// Returns the section of that name.
pub fn section(name: &str) -> Option<&'static SectionSchema> {
    SECTIONS.iter().find(|section| section.name == name)
}

/// Returns the variable that sets a key; of a list, that of its first element.
pub fn variable_name(section: &SectionSchema, key: &str) -> String {
    let index = if section.is_list { "0__" } else { "" };
    format!("TOLLGATE__{}__{index}{}", section.name.to_uppercase(), key.to_uppercase())
}

/// Describes an unknown key, with the nearest known one of its section.
pub fn describe_unknown_key(section_name: &str, key: &str, is_variable: bool) -> String {
    if matches!(key, "api_key" | "api_token" | "token" | "secret" | "password") {
        return format!(
            "{section_name}.{key} is not a key: secrets are not allowed in the configuration; api_key of a provider names a \
             variable as \"env:NAME\" or a file as \"file:PATH\""
        );
    }
    let hint = section(section_name).and_then(|section| {
        let nearest = nearest(key, section.keys.iter().map(String::as_str))?;
        Some(if is_variable { variable_name(section, nearest) } else { format!("{section_name}.{nearest}") })
    });
    let (key, hint) = (displayed_name(key), hint.unwrap_or_default());
    format!("unknown key {section_name}.{key}; the nearest known one is {hint}")
}

/// Describes an unknown section, with the nearest known one.
pub fn describe_unknown_section(name: &str) -> String {
    let hint = nearest(name, SECTIONS.iter().map(|section| section.name)).unwrap_or_default();
    format!("unknown section {}; the nearest known one is {hint}", displayed_name(name))
}

/// Returns a key or section that looks like one. Anything else may be a misplaced value and is not shown.
fn displayed_name(name: &str) -> &str {
    let is_word = name.len() <= 40 && name.bytes().all(|byte| byte.is_ascii_alphabetic() || b"_-".contains(&byte));
    if is_word { name } else { "(not repeated)" }
}
