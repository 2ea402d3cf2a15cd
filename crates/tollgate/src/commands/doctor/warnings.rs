//! Warnings about valid settings that are probably mistakes, and about files with secrets that others can read.

use std::fs;
use std::net::IpAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use domain::question::{ConfidenceSource, QuestionType};
use domain::routing::{AttachmentForm, Endpoint, Wire};
use http::Uri;

use super::report::{Check, Status};
use crate::config::{BlobsConfig, Config, NamedSecret, ProviderConfig};

/// Returns warnings about a provider.
pub fn provider_warnings(config: &Config, provider: &ProviderConfig) -> Vec<String> {
    let mut odd = Vec::new();
    if !config.endpoints.iter().any(|endpoint| endpoint.provider == provider.slug) {
        odd.push("no endpoint uses it".to_owned());
    }
    if provider.api_key.is_some() && is_unencrypted(&provider.base_url) {
        odd.push(
            "the API key and requests are sent unencrypted: base_url is http:// and not on this machine".to_owned(),
        );
    }
    if provider.api_key.is_none() && (provider.auth_header.is_some() || provider.auth_scheme.is_some()) {
        odd.push("auth_header or auth_scheme is set, but no API key".to_owned());
    }
    if provider.attempt_timeout > config.limits.request_timeout {
        odd.push(
            "attempt_timeout_ms is longer than limits.request_timeout_ms, so one attempt can use the whole deadline"
                .to_owned(),
        );
    }
    odd
}

/// Returns true for `http://` URLs outside the loopback.
fn is_unencrypted(base_url: &str) -> bool {
    let Ok(uri) = base_url.parse::<Uri>() else { return false };
    let host = uri.host().unwrap_or_default().trim_start_matches('[').trim_end_matches(']');
    let loopback = host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback());
    uri.scheme_str() == Some("http") && !loopback
}

/// Returns warnings about a single endpoint.
pub fn endpoint_warnings(endpoint: &Endpoint) -> Vec<String> {
    let mut odd = limits_above_wire(endpoint);
    let asks_boxes = endpoint.question_types.as_ref().is_some_and(|types| types.contains(&QuestionType::Box));
    if asks_boxes && endpoint.attachments == AttachmentForm::None {
        odd.push("question_types has box, but image_transport is none: box questions are never sent".to_owned());
    }
    let wire = endpoint.wire.as_str();
    match (endpoint.wire, endpoint.confidence) {
        (Wire::SglangDecisions | Wire::ChatCompletions, ConfidenceSource::Native | ConfidenceSource::SystemOne) => {
            let source = endpoint.confidence.as_str();
            odd.push(format!("confidence is {source}, but the wire {wire} has none: answers will not have it"));
        }
        (Wire::GeminiDecisions, ConfidenceSource::SystemOne) => {
            odd.push(
                "confidence is system-one, but on this wire it is the largest probability: use computed".to_owned(),
            );
        }
        _ => {}
    }
    odd
}

/// Returns warnings about limits above those of the wire.
fn limits_above_wire(endpoint: &Endpoint) -> Vec<String> {
    let (own, wire) = (endpoint.own_limits, endpoint.wire.limits());
    let pairs =
        [("max_questions", own.max_questions, wire.max_questions), ("max_options", own.max_options, wire.max_options)];
    let beyond = |(key, own, wire): (&str, Option<usize>, Option<usize>)| {
        let (own, wire) = own.zip(wire)?;
        let name = endpoint.wire.as_str();
        (own > wire).then(|| format!("{key} is {own}, but the wire {name} is described with at most {wire}"))
    };
    pairs.into_iter().filter_map(beyond).collect()
}

/// Returns the reason why an endpoint cannot be distinguished from an earlier one.
pub fn duplicate_warning(endpoints: &[Endpoint], position: usize) -> Option<String> {
    let same = |other: &&Endpoint| {
        let endpoint = &endpoints[position];
        (&other.model, &other.provider, &other.upstream_model)
            == (&endpoint.model, &endpoint.provider, &endpoint.upstream_model)
    };
    endpoints[..position]
        .iter()
        .find(same)
        .map(|_| "the same model of the same provider is in the list twice".to_owned())
}

/// Read and write permissions of the group and of others.
const FOREIGN: u32 = 0o066;
/// Permission of the group and of others to enter a folder.
const ENTRY: u32 = 0o011;

/// Returns a warning for each file with secrets that other users can read or change. Files that cannot be examined are
/// left to other checks.
pub fn exposed(config: &Config) -> Vec<Check> {
    files(config).iter().filter_map(|(name, path)| warning(name, path)).collect()
}

/// Returns every file that may contain a secret, with the name of its check.
fn files(config: &Config) -> Vec<(String, PathBuf)> {
    let mut files = Vec::new();
    let has_inline_secret = config.telemetry.as_ref().is_some_and(|telemetry| telemetry.has_headers_in_file);
    if let Some(file) = config.file.as_ref().filter(|_| has_inline_secret) {
        files.push(("configuration, with otlp_headers".to_owned(), file.clone()));
    }
    for provider in &config.providers {
        if let Some((_, path)) = provider.api_key.as_ref().and_then(NamedSecret::file) {
            files.push((format!("provider {}, api_key", provider.slug), path.to_owned()));
        }
        if let Some((_, key)) = &provider.client_identity {
            files.push((format!("provider {}, client_key_file", provider.slug), key.clone()));
        }
    }
    let password = config.rate_limits.as_ref().and_then(|limits| limits.password.as_ref());
    if let Some((_, path)) = password.and_then(NamedSecret::file) {
        files.push(("rate_limits, password".to_owned(), path.to_owned()));
    }
    if let Some((_, key)) = config.rate_limits.as_ref().and_then(|limits| limits.store.client_identity.as_ref()) {
        files.push(("rate_limits, client_key_file".to_owned(), key.clone()));
    }
    if let Some((_, key)) = config.telemetry.as_ref().and_then(|telemetry| telemetry.client_identity.as_ref()) {
        files.push(("telemetry, otlp_client_key_file".to_owned(), key.clone()));
    }
    let mut secrets: Vec<&NamedSecret> = config.storage.encryption_key.iter().collect();
    secrets.extend(config.telemetry.iter().filter_map(|telemetry| telemetry.secret_headers.as_ref()));
    if let BlobsConfig::Bucket(bucket) = &config.blobs {
        secrets.extend(bucket.secrets());
    }
    files
        .extend(secrets.into_iter().filter_map(NamedSecret::file).map(|(key, path)| (key.to_owned(), path.to_owned())));
    let database = &config.storage.file;
    for suffix in ["", "-wal", "-shm"] {
        let mut path = database.clone().into_os_string();
        path.push(suffix);
        files.push(("database".to_owned(), path.into()));
    }
    files.extend(management_keys(database).into_iter().map(|path| ("management key".to_owned(), path)));
    files
}

/// Returns the key files that the first start wrote beside the database.
fn management_keys(database: &Path) -> Vec<PathBuf> {
    let folder = database.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let entries = fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok);
    let is_key = |name: &str| name == "management-key" || name.starts_with("management-key-");
    let mut found: Vec<PathBuf> =
        entries.filter(|entry| entry.file_name().to_str().is_some_and(is_key)).map(|entry| entry.path()).collect();
    found.sort_unstable();
    found
}

/// Shows only paths that exist: a path of a missing file may be a secret in the wrong place.
fn warning(name: &str, path: &Path) -> Option<Check> {
    let path = fs::canonicalize(path).ok()?;
    let mode = fs::metadata(&path).ok()?.permissions().mode() & 0o777;
    if mode & FOREIGN == 0 || is_shielded(&path) {
        return None;
    }
    let detail = format!(
        "{0} holds secrets, and other users can read or change it (mode {mode:04o}): chmod 600 {0}",
        path.display()
    );
    Some(Check::new(name, Status::Warning, detail))
}

/// Returns true if a folder above the file denies entry to other users.
fn is_shielded(path: &Path) -> bool {
    let mode = |folder: &Path| fs::metadata(folder).map(|metadata| metadata.permissions().mode());
    path.ancestors().skip(1).any(|folder| mode(folder).is_ok_and(|mode| mode & ENTRY == 0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Environment, load, load_text};
    use crate::wiring::configured_endpoints;

    fn read(text: &str) -> Config {
        load_text(None, text, &Environment::default()).unwrap()
    }

    fn provider(lines: &str) -> Vec<String> {
        let config = read(&format!(
            "[[providers]]\nslug = \"p\"\n{lines}\n[[endpoints]]\nmodel = \"a/b\"\nprovider = \"p\"\nupstream_model = \"m\"\n"
        ));
        provider_warnings(&config, &config.providers[0])
    }

    fn endpoint(wire: &str, lines: &str) -> Vec<String> {
        let config = read(&format!(
            "[[providers]]\nslug = \"p\"\nbase_url = \"http://h\"\nwire = \"{wire}\"\n[[endpoints]]\nmodel = \"a/b\"\n\
             provider = \"p\"\nupstream_model = \"m\"\n{lines}\n"
        ));
        endpoint_warnings(&configured_endpoints(&config)[0])
    }

    #[test]
    fn provider_warns_about_unencrypted_and_missing_keys() {
        for safe in ["https://api.example/v1", "http://127.0.0.1:1/v1", "http://localhost:1", "http://[::1]:1"] {
            assert!(provider(&format!("base_url = \"{safe}\"\napi_key = \"env:K\"")).is_empty(), "{safe}");
        }
        assert!(provider("base_url = \"http://10.0.0.7\"").is_empty());
        assert!(provider("base_url = \"http://10.0.0.7\"\napi_key = \"env:K\"")[0].contains("unencrypted"));
        assert!(provider("base_url = \"https://h\"\nauth_header = \"api-key\"")[0].contains("but no API key"));
        assert!(provider("base_url = \"https://h\"\nattempt_timeout_ms = 60001")[0].contains("the whole deadline"));
        let unused = read("[[providers]]\nslug = \"p\"\nbase_url = \"https://h\"\n");
        assert_eq!(provider_warnings(&unused, &unused.providers[0]), ["no endpoint uses it"]);
    }

    #[test]
    fn endpoint_warns_when_attributes_contradict_wire() {
        for (wire, lines) in [
            ("system-one", "max_options = 255\nmax_questions = 5000\nconfidence = \"native\""),
            ("openai-decisions", "max_questions = 400"),
            ("gemini-decisions", "confidence = \"native\""),
            ("sglang-decisions", "max_options = 26"),
            ("system-one", "question_types = [\"box\"]\nimage_transport = \"assets\""),
        ] {
            assert!(endpoint(wire, lines).is_empty(), "{wire} {lines}");
        }
        for (wire, lines, expected) in [
            ("openai-decisions", "max_questions = 401", "max_questions is 401"),
            ("sglang-decisions", "max_options = 27", "at most 26"),
            ("sglang-decisions", "confidence = \"native\"", "answers will not have it"),
            ("chat-completions", "confidence = \"system-one\"", "answers will not have it"),
            ("gemini-decisions", "confidence = \"system-one\"", "the largest probability"),
            ("system-one", "question_types = [\"box\", \"noul\"]", "box questions are never sent"),
        ] {
            let odd = endpoint(wire, lines);
            assert_eq!(odd.len(), 1, "{wire} {lines}: {odd:?}");
            assert!(odd[0].contains(expected), "{odd:?}");
        }
    }

    #[test]
    fn duplicate_warning_reports_later_endpoint() {
        let text = "[[endpoints]]\nmodel = \"a/b\"\nprovider = \"p\"\nupstream_model = ";
        let config = read(&format!(
            "[[providers]]\nslug = \"p\"\nbase_url = \"http://h\"\n{text}\"m\"\n{text}\"n\"\n{text}\"m\"\n"
        ));
        let endpoints = configured_endpoints(&config);
        assert!(duplicate_warning(&endpoints, 0).is_none() && duplicate_warning(&endpoints, 1).is_none());
        assert!(duplicate_warning(&endpoints, 2).unwrap().contains("twice"));
    }

    /// Creates a readable folder with one file of each kind, all of that mode.
    fn folder_with_mode(mode: u32) -> (tempfile::TempDir, Config) {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let text = format!(
            "[storage]\nurl = \"sqlite://{}\"\n[telemetry]\notlp_url = \"http://h\"\notlp_headers = [\"x-a: 1\"]\n\
             [[providers]]\nslug = \"p\"\nbase_url = \"http://h\"\napi_key = \"file:{}\"\n",
            at("t.db").display(),
            at("key").display()
        );
        fs::write(at("tollgate.toml"), text).unwrap();
        for name in ["t.db", "t.db-wal", "key", "management-key", "management-key-2", "other"] {
            fs::write(at(name), "x").unwrap();
        }
        for entry in fs::read_dir(folder.path()).unwrap() {
            fs::set_permissions(entry.unwrap().path(), fs::Permissions::from_mode(mode)).unwrap();
        }
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let config = load(Some(&at("tollgate.toml")), &Environment::default()).unwrap();
        (folder, config)
    }

    #[test]
    fn exposed_reports_mode_of_files_accessible_to_others() {
        for mode in [0o644, 0o640, 0o604, 0o620, 0o602] {
            let (folder, config) = folder_with_mode(mode);
            let checks = exposed(&config);
            let names: Vec<&str> = checks.iter().map(|check| check.name.as_str()).collect();
            let (key, database) = ("provider p, api_key", "database");
            let expected =
                ["configuration, with otlp_headers", key, database, database, "management key", "management key"];
            assert_eq!(names, expected, "{mode:o}");
            for check in checks {
                assert_eq!(check.status, Status::Warning);
                assert!(check.detail.contains(&format!("(mode {mode:04o}): chmod 600")), "{}", check.detail);
                assert!(!check.detail.contains("other,"), "{}", check.detail);
            }
            drop(folder);
        }
    }

    #[test]
    fn exposed_ignores_files_private_to_owner() {
        let (_folder, config) = folder_with_mode(0o600);
        assert!(exposed(&config).is_empty());
        let (folder, config) = folder_with_mode(0o644);
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o700)).unwrap();
        assert!(exposed(&config).is_empty(), "the folder admits its owner only");
    }

    #[test]
    fn exposed_ignores_missing_file() {
        let text = "[[providers]]\nslug = \"p\"\nbase_url = \"http://h\"\napi_key = \"file:sk-very-secret\"\n\
                    [storage]\nurl = \"sqlite://no/such/folder/t.db\"\n";
        let config = crate::config::load_text(None, text, &Environment::default()).unwrap();
        assert!(exposed(&config).is_empty());
    }
}
