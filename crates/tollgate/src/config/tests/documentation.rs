//! The documentation's examples and tables must match the loader.

use super::*;

/// Returns the code blocks of a language in a page, each with its first line number.
fn blocks(page: &str, language: &str) -> Vec<(usize, String)> {
    let mut found: Vec<(usize, String)> = Vec::new();
    let mut inside = false;
    for (number, line) in page.lines().enumerate() {
        match line.strip_prefix("```") {
            Some(_) if inside => inside = false,
            Some(word) if word == language => {
                inside = true;
                found.push((number + 2, String::new()));
            }
            _ if inside => {
                if let Some((_, text)) = found.last_mut() {
                    text.push_str(line);
                    text.push('\n');
                }
            }
            _ => {}
        }
    }
    found
}

#[test]
fn every_documented_configuration_loads() {
    let pages = [
        ("docs/examples.md", include_str!("../../../../../docs/examples.md"), 11),
        ("docs/maintenance.md", include_str!("../../../../../docs/maintenance.md"), 1),
    ];
    for (name, page, least) in pages {
        let blocks = blocks(page, "toml");
        assert!(blocks.len() >= least, "{name} has {} examples", blocks.len());
        for (line, text) in blocks {
            let read = read(&text);
            assert!(read.is_ok(), "{name}, line {line}: {}", read.unwrap_err());
        }
    }
}

/// Checks that every wire has an example with an endpoint.
#[test]
fn every_wire_has_an_example() {
    let page = include_str!("../../../../../docs/examples.md");
    let configs: Vec<Config> = blocks(page, "toml").iter().filter_map(|(_, text)| read(text).ok()).collect();
    for wire in domain::routing::Wire::ALL.into_iter().filter(|wire| *wire != domain::routing::Wire::Sandbox) {
        let shown = configs.iter().any(|config| {
            let mut speakers = config.providers.iter().filter(|provider| provider.wire == wire);
            speakers.any(|provider| config.endpoints.iter().any(|endpoint| endpoint.provider == provider.slug))
        });
        assert!(shown, "no example speaks {}", wire.as_str());
    }
}

/// Returns the keys in the table under a heading.
fn rows<'a>(page: &'a str, heading: &str) -> Vec<&'a str> {
    let text = page.split(&format!("\n## {heading}\n")).nth(1).and_then(|rest| rest.split("\n## ").next());
    text.unwrap().lines().filter_map(|line| Some(line.strip_prefix("| `")?.split_once("` |")?.0)).collect()
}

/// Checks that each section of the schema has a heading and a table with exactly its keys. Keys that providers and
/// endpoints share have a separate heading.
#[test]
fn every_section_lists_its_own_keys() {
    let page = include_str!("../../../../../docs/configuration.md");
    let shared = rows(page, "Keys of providers and endpoints alike");
    for section in schema::SECTIONS.iter() {
        let heading = if section.is_list { format!("`[[{}]]`", section.name) } else { format!("`[{}]`", section.name) };
        let mut listed = rows(page, &heading);
        if matches!(section.name, "providers" | "endpoints") {
            listed.extend(&shared);
        }
        listed.sort_unstable();
        let mut keys = section.keys.clone();
        keys.sort_unstable();
        assert_eq!(listed, keys, "{heading}");
    }
}

/// The keys under a heading, each with its example.
fn examples<'a>(page: &'a str, heading: &str) -> Vec<(&'a str, &'a str)> {
    let text = page.split(&format!("\n## {heading}\n")).nth(1).and_then(|rest| rest.split("\n## ").next());
    let example = |line: &'a str| {
        let (key, rest) = line.strip_prefix("| `")?.split_once("` |")?;
        let (_, example) = rest.rsplit_once(" | ")?.0.rsplit_once(" | `")?;
        Some((key, example.strip_suffix('`')?))
    };
    text.unwrap().lines().filter_map(example).collect()
}

/// Returns the keys that a key of `[blobs]` requires.
fn required_of_bucket(key: &str) -> String {
    let (id, secret) = ("access_key_id = \"env:A\"\n", "secret_access_key = \"env:A\"\n");
    let beside = match key {
        "url" | "quiet_period_ms" => return String::new(),
        "region" => return "url = \"s3://bucket\"\n".to_owned(),
        "access_key_id" => secret.to_owned(),
        "secret_access_key" => id.to_owned(),
        "session_token" => [id, secret].concat(),
        _ => String::new(),
    };
    format!("url = \"s3://bucket\"\nregion = \"eu-central-1\"\n{beside}")
}

/// Lists have required keys and need a table of their own: the examples of whole providers above cover them.
#[test]
fn every_key_of_a_section_has_an_example_that_is_accepted() {
    let page = include_str!("../../../../../docs/configuration.md");
    let variables =
        [("OTLP_HEADERS", "x-key: 1"), ("TOLLGATE_ENCRYPTION_KEY", "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=")];
    for section in schema::SECTIONS.iter().filter(|section| !section.is_list) {
        let examples = examples(page, &format!("`[{}]`", section.name));
        assert_eq!(examples.len(), section.keys.len(), "{}", section.name);
        for (key, example) in examples {
            let required = match key {
                "otlp_client_cert_file" => "otlp_url = \"https://h\"\notlp_client_key_file = \"k\"\n".to_owned(),
                "otlp_client_key_file" => "otlp_url = \"https://h\"\notlp_client_cert_file = \"c\"\n".to_owned(),
                _ if section.name == "telemetry" && key != "otlp_url" => "otlp_url = \"http://h\"\n".to_owned(),
                "ca_file" if section.name == "rate_limits" => "url = \"rediss://h\"\n".to_owned(),
                "client_cert_file" => "url = \"rediss://h\"\nclient_key_file = \"k\"\n".to_owned(),
                "client_key_file" => "url = \"rediss://h\"\nclient_cert_file = \"c\"\n".to_owned(),
                "username" if section.name == "rate_limits" => "url = \"redis://h\"\npassword = \"env:A\"\n".to_owned(),
                _ if section.name == "rate_limits" && key != "url" => "url = \"redis://h\"\n".to_owned(),
                _ if section.name == "blobs" => required_of_bucket(key),
                _ => String::new(),
            };
            let text = format!("[{}]\n{required}{key} = {example}\n", section.name);
            let read = with(&variables, &text);
            assert!(read.is_ok(), "{text}: {}", read.unwrap_err());
        }
    }
}

#[test]
fn every_key_of_a_list_has_an_example() {
    let page = include_str!("../../../../../docs/configuration.md");
    for heading in ["`[[providers]]`", "`[[endpoints]]`", "`[[models]]`", "Keys of providers and endpoints alike"] {
        let examples: Vec<&str> = examples(page, heading).into_iter().map(|(key, _)| key).collect();
        assert_eq!(examples, rows(page, heading), "{heading}");
    }
}
