//! The checks of `doctor`, one function each.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::io::Write as _;

use adapters_provider::CredentialCheck;
use adapters_storage::SeaOrmDestinationRepository;
use adapters_system::SystemClock;
use domain::container::{BlobKey, OnePiece};
use domain::error::StoreError;
use domain::ids::WorkspaceId;
use domain::model::Model;
use domain::observability::DestinationRepository as _;
use domain::routing::{Endpoint, price_warnings};

use super::report::{Check, Status};
use super::warnings;
use crate::commands::prelude::*;
use crate::commands::{catalogue, store};
use crate::config::{BlobsConfig, ModelConfig, ProviderConfig, QUOTED_SECRET, idle_options, nearest, quoted_secrets};
use crate::wiring::{
    SEGMENT_BYTES, StoreDisks, Upstreams, broadcast, check_provider_connection, check_provider_credential,
    check_rate_store, check_rate_store_files, configured_endpoints, database_room, directory,
};

/// The size of the file that checks the folder of the journal.
const PROBE_BYTES: usize = 64 << 10;

const NO_PROXY_FORMS: &str = "use *, a host, a domain, an address or a network, with or without a port";

/// Reports the configuration file in use. A file without endpoints may be empty or truncated.
pub fn configuration(context: &Context) -> Check {
    let config = &context.config;
    let (status, detail) = match &config.file {
        Some(file) if config.endpoints.is_empty() => {
            let models = if config.sandbox.enabled { "only sandbox models" } else { "no model" };
            (Status::Warning, format!("{} is valid, but has no endpoint: {models} can be called", file.display()))
        }
        Some(file) => (Status::Ok, format!("{} is valid", file.display())),
        None => (Status::Ok, "no file; defaults and environment variables".to_owned()),
    };
    Check::new("configuration", status, detail)
}

/// Checks that the schema is up to date.
pub async fn migrations(stores: &Stores) -> Check {
    match store::states(stores).await {
        Ok(states) => {
            let missing: Vec<&str> =
                states.iter().filter(|state| !state.applied).map(|state| state.name.as_str()).collect();
            if missing.is_empty() {
                let unknown: Vec<&str> =
                    states.iter().filter(|state| !state.known).map(|state| state.name.as_str()).collect();
                let mut detail = format!("{0} of {0} applied", states.len() - unknown.len());
                if !unknown.is_empty() {
                    // Writing to a string cannot fail.
                    let _ = write!(detail, "; of a newer release: {}", unknown.join(", "));
                }
                Check::new("migrations", Status::Ok, detail)
            } else {
                let detail = format!("missing: {}; migrate up applies them", missing.join(", "));
                Check::new("migrations", Status::Broken, detail)
            }
        }
        Err(error) => Check::new("migrations", Status::Broken, format!("{error:#}")),
    }
}

/// Reports a database that is an unfinished copy.
pub async fn unfinished_copy(stores: &Stores) -> Option<Check> {
    let detail = match stores.database.unfinished_copy().await {
        Ok(None) => return None,
        Ok(Some(copy)) => format!("unfinished, begun {}: `tollgate store copy` continues it", copy.started_at),
        Err(error) => format!("{error:#}"),
    };
    Some(Check::new("copy", Status::Broken, detail))
}

/// Checks that the database accepts a write, with one that changes nothing.
pub async fn database(context: &Context, stores: &Stores) -> Check {
    let name = context.config.storage.name();
    // First, because a full disk has other symptoms: SQLite may report it as a lock.
    if let Err(error) = room(context) {
        return Check::of("database", Err::<String, _>(error));
    }
    Check::of("database", stores.database.probe_write().await.map(|()| format!("{name} can be written")))
}

/// Checks the free space of the database's disk. That of another machine cannot be seen from here.
fn room(context: &Context) -> Result<(), StoreError> {
    if context.config.storage.is_file() {
        database_room(&StoreDisks::new(&context.config).database)?;
    }
    Ok(())
}

/// Reports stores that cannot be opened, with a full disk if that may be the cause.
pub fn unopened_stores(context: &Context, error: anyhow::Error) -> Check {
    let error = match room(context) {
        Err(full) => error.context(format!("{:#}", anyhow::Error::from(full))),
        Ok(()) => error,
    };
    Check::of("stores", Err::<String, _>(error))
}

/// Checks that the folder of the journal accepts a file, and that its disk has room for a segment.
pub fn journal(context: &Context) -> Check {
    let path = &context.config.journal.path;
    let shown = path.display();
    match std::fs::symlink_metadata(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return Check::new("journal", Status::Ok, format!("{shown} does not exist yet; the server creates it"));
        }
        Err(error) => {
            let error = anyhow::Error::from(error).context(format!("{shown} cannot be opened"));
            return Check::of("journal", Err::<String, _>(error));
        }
        // A link to a folder that does not exist cannot be used either.
        Ok(_) => {}
    }
    if let Err(error) = write_and_remove(&path.join(format!(".doctor-{}", std::process::id()))) {
        let error = anyhow::Error::from(error).context(format!("{shown} cannot be written"));
        return Check::of("journal", Err::<String, _>(error));
    }
    match StoreDisks::new(&context.config).journal.free_bytes() {
        Ok(free) if free < SEGMENT_BYTES => {
            let detail =
                format!("{shown} has {free} bytes of free space; a segment of the journal takes {SEGMENT_BYTES}");
            Check::new("journal", Status::Warning, detail)
        }
        free => Check::of("journal", free.map(|_| format!("{shown} can be written"))),
    }
}

fn write_and_remove(path: &Path) -> std::io::Result<()> {
    // Never an existing file: as root, a link in the folder could name any file of the machine.
    let mut file = std::fs::OpenOptions::new().write(true).create_new(true).open(path)?;
    let written = file.write_all(&vec![0; PROBE_BYTES]);
    written.and(std::fs::remove_file(path))
}

/// The documents that are searched in the blob store. Some may be deleted at present.
const KNOWN_DOCUMENTS: u64 = 8;

/// Checks that the blob store can write, read and delete an object, and that it is the one of the database's documents.
pub async fn blobs(context: &Context, stores: &Stores) -> Check {
    let probe = async {
        let nobody: WorkspaceId = "00000000-0000-0000-0000-000000000000".parse()?;
        let key = BlobKey::container_file(nobody, &"tollgate-doctor".parse()?, &"probe".parse()?);
        let name = context.config.blobs.name();
        // Before the write: the folder of another installation, or of a missing mount, stays as it is.
        let known = stores.documents.scan(None, KNOWN_DOCUMENTS).await?.documents;
        let mut has_one = known.is_empty();
        for document in known {
            let key = BlobKey::document(document.workspace_id, &document.id);
            let found = stores.blobs.stat(&key).await.with_context(|| format!("cannot read {name}"))?;
            has_one = has_one || found.is_some();
        }
        ensure!(has_one, "{name} has no content of the database's documents: is blobs.url another store than theirs?");
        stores.blobs.put(&key, Box::new(OnePiece::new(*b"."))).await.with_context(|| format!("cannot write {name}"))?;
        let object = stores.blobs.read(&key, None).await.with_context(|| format!("cannot read {name}"))?;
        // Of two commands at once, one may delete the object of the other.
        let size_bytes = object.map_or(1, |object| object.size_bytes);
        ensure!(size_bytes == 1, "{name} returned another object than the written one");
        stores.blobs.delete(&key).await.with_context(|| format!("cannot delete in {name}"))?;
        Ok(format!("{name} can be written"))
    };
    Check::of("blobs", probe.await)
}

/// Checks that the settings of a bucket can be used: a server does not start without its credentials.
pub fn bucket_settings(context: &Context) -> Option<Check> {
    let BlobsConfig::Bucket(bucket) = &context.config.blobs else { return None };
    Some(Check::of("blobs", bucket.settings().map(|_| "the bucket's credentials are set".to_owned())))
}

/// Checks the files of certificates beside those of providers. Reports those that cannot be used.
pub fn certificate_files(context: &Context) -> Vec<Check> {
    let config = &context.config;
    let rate_limits = config.rate_limits.as_ref().map_or(Ok(()), check_rate_store_files);
    let clock = Arc::new(SystemClock::new());
    let telemetry = config.telemetry.as_ref().map_or(Ok(()), |_| broadcast::sender(config, clock).map(drop));
    let failed = |(name, result): (&str, anyhow::Result<()>)| Some(Check::of(name, Err::<String, _>(result.err()?)));
    [("rate limits", rate_limits), ("telemetry", telemetry)].into_iter().filter_map(failed).collect()
}

/// Checks that the encryption key can be read, if one is configured: a server does not start without it.
pub fn encryption_key(context: &Context) -> Option<Check> {
    let source = context.config.storage.encryption_key.as_ref()?;
    Some(Check::of("encryption key", source.read().map(|_| "can be read".to_owned())))
}

/// Checks that the secrets of destinations can be read, and reports plain ones if a key is configured.
pub async fn destinations(stores: &Stores) -> Check {
    let repository = SeaOrmDestinationRepository::new(stores.database.clone());
    let has_key = stores.has_encryption_key;
    let checked = async {
        repository.list(None).await?;
        repository.encryption_status().await
    };
    match checked.await {
        Ok((encrypted, plain)) if plain > 0 && has_key => {
            let detail =
                format!("{encrypted} encrypted, {plain} in plain text: `tollgate destination update` encrypts each");
            Check::new("destinations", Status::Warning, detail)
        }
        Ok((encrypted, plain)) => {
            Check::new("destinations", Status::Ok, format!("{encrypted} encrypted, {plain} in plain text"))
        }
        Err(error) => Check::of("destinations", Err::<String, _>(error)),
    }
}

/// Checks that the server of shared rate limits can be used, if one is configured: Tollgate does not start without it.
/// `of_servers` are the variables of running servers.
pub async fn rate_limits(context: &Context, of_servers: &BTreeSet<&str>) -> Option<Check> {
    let config = context.config.rate_limits.as_ref()?;
    let is_elsewhere = |name: &str| context.environment.get(name).is_none() && of_servers.contains(name);
    if config.secret_variable().is_some_and(is_elsewhere) {
        let detail = "not checked: the variable of rate_limits.password is set in the running server, not here";
        return Some(Check::new("rate limits", Status::Ok, detail));
    }
    let checked = check_rate_store(config).await;
    Some(Check::of("rate limits", checked.map(|name| format!("{name} can be used"))))
}

/// Checks that secrets exist and settings are valid, then that each provider can be reached; reports questionable
/// settings. `of_servers` are the variables of running servers.
pub async fn providers(context: &Context, of_servers: &BTreeSet<&str>) -> Vec<Check> {
    let config = &context.config;
    let mut checks = vec![provider_settings(context, of_servers)];
    for provider in &config.providers {
        let name = format!("provider {}", provider.slug);
        let reached = check_provider_connection(config, provider).await;
        let is_reached = reached.is_ok();
        checks.push(Check::of(name.clone(), reached));
        if is_reached && provider.api_key.is_some() {
            checks.push(credential(context, provider).await);
        }
        checks.extend(warnings(&name, warnings::provider_warnings(config, provider)));
    }
    checks
}

/// Checks that a provider accepts our credential, as far as its list of models shows it.
async fn credential(context: &Context, provider: &ProviderConfig) -> Check {
    let name = format!("provider {}, credential", provider.slug);
    let not_checked =
        |reason: String| format!("not checked: {reason}; `tollgate provider test {}` makes a real call", provider.slug);
    match check_provider_credential(&context.config, provider).await {
        Ok(CredentialCheck::Accepted) => Check::new(name, Status::Ok, "accepted for the list of models"),
        Ok(CredentialCheck::Rejected(reason)) => Check::new(name, Status::Broken, format!("rejected: {reason}")),
        Ok(CredentialCheck::Failed(reason)) => Check::new(name, Status::Warning, not_checked(reason)),
        Ok(CredentialCheck::Unknown(reason)) => Check::new(name, Status::Ok, not_checked(reason)),
        Err(error) => Check::new(name, Status::Warning, not_checked(format!("{error:#}"))),
    }
}

/// Checks that secrets exist and settings of providers are valid. A variable that this process lacks is no error if a
/// running server has it.
pub fn provider_settings(context: &Context, of_servers: &BTreeSet<&str>) -> Check {
    let config = &context.config;
    let lacks = |name: &&str| context.environment.get(name).is_none() && of_servers.contains(name);
    let elsewhere: BTreeSet<&str> =
        config.providers.iter().filter_map(ProviderConfig::secret_variable).filter(lacks).collect();
    let mut usable = config.clone();
    let lacking =
        |provider: &&mut ProviderConfig| provider.secret_variable().is_some_and(|name| elsewhere.contains(name));
    usable.providers.iter_mut().filter(lacking).for_each(|provider| provider.api_key = None);
    let built = Upstreams::build(&usable);
    let mut detail = format!("{} configured, the sandbox is {}", config.providers.len(), on(config.sandbox.enabled));
    if !elsewhere.is_empty() {
        let names = elsewhere.into_iter().collect::<Vec<_>>().join(", ");
        // Writing to a string cannot fail.
        let _ = write!(detail, "; set in the running server, not here: {names}");
    }
    Check::of("providers", built.map(|_| detail))
}

/// Reports questionable settings of providers and endpoints, as far as the configuration alone shows them.
pub fn setting_warnings(context: &Context) -> Vec<Check> {
    let config = &context.config;
    let mut checks = proxy(context);
    for provider in &config.providers {
        let name = format!("provider {}", provider.slug);
        checks.extend(warnings(&name, warnings::provider_warnings(config, provider)));
    }
    let endpoints = configured_endpoints(config);
    for (position, endpoint) in endpoints.iter().enumerate() {
        let name = format!("endpoint {} at {}", endpoint.model, endpoint.provider);
        checks.extend(warnings(&name, warnings::duplicate_warning(&endpoints, position)));
        checks.extend(warnings(&name, warnings::endpoint_warnings(endpoint)));
    }
    checks
}

/// Reports secrets in quotation marks.
pub fn quoted(context: &Context) -> impl Iterator<Item = Check> {
    let owners = quoted_secrets(&context.config).into_iter();
    owners.map(|owner| Check::new(owner, Status::Warning, QUOTED_SECRET))
}

/// Reports entries of `NO_PROXY` whose form is unknown: the hosts that they mean are called through the proxy.
pub fn proxy(context: &Context) -> Vec<Check> {
    let unknown = context.config.proxy.unknown_entries().into_iter();
    warnings(
        "proxy",
        unknown.map(|entry| format!("NO_PROXY has the entry {entry}, which has no effect: {NO_PROXY_FORMS}")),
    )
}

/// Returns one warning per sentence.
fn warnings(name: &str, sentences: impl IntoIterator<Item = String>) -> Vec<Check> {
    sentences.into_iter().map(|sentence| Check::new(name, Status::Warning, sentence)).collect()
}

fn on(on: bool) -> &'static str {
    if on { "on" } else { "off" }
}

/// Reports endpoints whose models are missing in the stored catalogue, and questionable attributes.
pub async fn endpoints(context: &Context, stores: &Stores) -> Vec<Check> {
    let rows = match stores.models.list().await {
        Ok(rows) => rows,
        Err(error) => return vec![Check::of("catalogue", Err::<String, _>(error))],
    };
    let mut checks = vec![Check::new("catalogue", Status::Ok, format!("{} rows", rows.len()))];
    let endpoints = configured_endpoints(&context.config);
    for (position, endpoint) in endpoints.iter().enumerate() {
        let name = format!("endpoint {} at {}", endpoint.model, endpoint.provider);
        let row = rows.iter().find(|row| row.id == endpoint.model || row.canonical_slug == endpoint.model);
        let (status, detail) = row_and_price(row, endpoint);
        let nearly = || similar_model(&rows, endpoint).map(|id| format!("{detail}; is {id} meant?"));
        let detail = row.is_none().then(nearly).flatten().unwrap_or_else(|| detail.to_owned());
        checks.push(Check::new(name.clone(), status, detail));
        checks.extend(warnings(&name, warnings::duplicate_warning(&endpoints, position)));
        checks.extend(warnings(&name, warnings::endpoint_warnings(endpoint)));
        checks.extend(warnings(&name, price_warnings(endpoint, &rows)));
    }
    checks
}

/// Returns a decision model of the catalogue whose id differs from the endpoint's in one or two letters.
fn similar_model<'a>(rows: &'a [Model], endpoint: &Endpoint) -> Option<&'a str> {
    let ids = rows.iter().filter(|row| row.serves_decisions()).map(|row| row.id.as_str());
    nearest(endpoint.model.as_str(), ids).filter(|id| strsim::damerau_levenshtein(id, endpoint.model.as_str()) <= 2)
}

fn row_and_price(row: Option<&Model>, endpoint: &Endpoint) -> (Status, &'static str) {
    match (row, endpoint.prices) {
        (Some(row), _) if !row.serves_decisions() => {
            (Status::Broken, "the catalogue's row has no decisions among its output modalities")
        }
        (Some(row), None) if row.pricing.is_variable() => {
            (Status::Broken, "neither the endpoint nor the catalogue's row has a fixed price")
        }
        (Some(_), None) => (Status::Ok, "the catalogue has a row, and its price"),
        (Some(_), Some(_)) => (Status::Ok, "the catalogue has a row; the price is the endpoint's"),
        (None, Some(_)) => (
            Status::Warning,
            "the catalogue lacks the model, so a minimal row is used (text->decisions, the endpoint's price)",
        ),
        (None, None) => (
            Status::Warning,
            "the catalogue lacks the model and the endpoint has no price, so a minimal row is used and calls are free",
        ),
    }
}

/// Reports which options in `[[models]]` have an effect.
pub async fn models(context: &Context, stores: &Stores) -> Vec<Check> {
    if context.config.models.is_empty() {
        return Vec::new();
    }
    let snapshot = match catalogue::snapshot(context, stores).await {
        Ok(snapshot) => snapshot,
        Err(error) => return vec![Check::of("models", Err::<String, _>(error))],
    };
    let endpoints = directory(&context.config);
    let check = |model: &ModelConfig| {
        let name = format!("model {}", model.model);
        match idle_options(model, &snapshot, &endpoints) {
            Some(reason) => Check::new(name, Status::Warning, format!("without effect: {reason}")),
            None => Check::new(name, Status::Ok, "options apply"),
        }
    };
    context.config.models.iter().map(check).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use domain::model::Pricing;
    use domain::money::Price;
    use domain::pricing::TokenPrices;
    use domain::routing::Wire;

    #[test]
    fn similar_model_is_found_in_catalogue() {
        let pricing = || Pricing::per_token(Price::ZERO, Price::ZERO);
        let rows = ["typesafe/jev-1.14", "a/b"].map(|id| Model::minimal(id.parse().unwrap(), pricing()));
        let of = |model: &str| Endpoint::new(model.parse().unwrap(), "p".parse().unwrap(), Wire::SystemOne, "m");
        assert_eq!(similar_model(&rows, &of("typesafe/jev-1.41")), Some("typesafe/jev-1.14"));
        assert_eq!(similar_model(&rows, &of("house/judge")), None);
        assert_eq!(similar_model(&[], &of("a/b")), None);
    }

    #[test]
    fn row_and_price_reports_missing_price() {
        let endpoint = Endpoint::new("a/b".parse().unwrap(), "p".parse().unwrap(), Wire::SystemOne, "m");
        let half = TokenPrices { prompt: "0.5".parse().unwrap(), completion: Price::ZERO };
        let priced = Endpoint { prices: Some(half), ..endpoint.clone() };
        let row = |prompt: &str| {
            let pricing = Pricing::per_token(prompt.parse().unwrap(), Price::ZERO);
            Model::minimal("a/b".parse().unwrap(), pricing)
        };
        for (row, endpoint, status, expected) in [
            (Some(row("0.5")), &endpoint, Status::Ok, "its price"),
            (Some(row("0")), &priced, Status::Ok, "the price is the endpoint's"),
            (Some(row("-1")), &endpoint, Status::Broken, "fixed price"),
            (None, &priced, Status::Warning, "a minimal row is used (text->decisions"),
            (None, &endpoint, Status::Warning, "calls are free"),
        ] {
            let (found, detail) = row_and_price(row.as_ref(), endpoint);
            assert_eq!(found, status, "{detail}");
            assert!(detail.contains(expected), "{detail}");
        }
    }
}
