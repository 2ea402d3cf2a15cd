//! One function a thing to look at.

use std::sync::Arc;

use async_trait::async_trait;
use chrono::DateTime;
use domain::container::{BlobKey, BlobStore, ByteSource};
use domain::error::StoreError;
use domain::ids::WorkspaceId;
use domain::model::CatalogueSnapshot;

use super::reach::reach;
use super::report::{Check, Status};
use crate::commands::{Context, migrate};
use crate::wiring::{Stores, Upstreams};

/// Which file the configuration came from.
pub fn configuration(context: &Context) -> Check {
    let detail = match &context.config.file {
        Some(file) => format!("{} is sound", file.display()),
        None => "no file; defaults and environment variables".to_owned(),
    };
    Check::new("configuration", Status::Ok, detail)
}

/// Whether the schema is up to date.
pub async fn migrations(stores: &Stores) -> Check {
    match migrate::states(stores).await {
        Ok(states) => {
            let missing: Vec<&str> =
                states.iter().filter(|state| !state.applied).map(|state| state.name.as_str()).collect();
            if missing.is_empty() {
                Check::new("migrations", Status::Ok, format!("{0} of {0} applied", states.len()))
            } else {
                let detail = format!("missing: {}; migrate up applies them", missing.join(", "));
                Check::new("migrations", Status::Broken, detail)
            }
        }
        Err(error) => Check::new("migrations", Status::Broken, format!("{error:#}")),
    }
}

/// Whether the database takes a write: one that changes nothing.
pub async fn database(context: &Context, stores: &Stores) -> Check {
    let file = context.config.storage.file.display().to_string();
    let written = stores.documents.forget_claims(DateTime::UNIX_EPOCH).await;
    Check::of("database", written.map(|_| format!("{file} can be written")))
}

/// Whether the blob store takes an object and gives it up again.
pub async fn blobs(context: &Context, stores: &Stores) -> Check {
    let probe = async {
        let nobody: WorkspaceId = "00000000-0000-0000-0000-000000000000".parse()?;
        let key = BlobKey::container_file(nobody, &"tollgate-doctor".parse()?, &"probe".parse()?);
        stores.blobs.put(&key, Box::new(OneByte(Some(b'.')))).await?;
        stores.blobs.delete(&key).await?;
        Ok::<_, anyhow::Error>(format!("{} can be written", context.config.blobs_root.display()))
    };
    Check::of("blobs", probe.await)
}

struct OneByte(Option<u8>);

#[async_trait]
impl ByteSource for OneByte {
    async fn next(&mut self) -> Result<Option<Vec<u8>>, StoreError> {
        Ok(self.0.take().map(|byte| vec![byte]))
    }
}

/// Whether secrets are there and settings make sense, then whether each provider can be reached.
pub async fn providers(context: &Context) -> Vec<Check> {
    let config = &context.config;
    let built = Upstreams::build(config, &context.environment);
    let count = format!("{} configured, the sandbox is {}", config.providers.len(), on(config.sandbox_enabled));
    let mut checks = vec![Check::of("providers", built.map(|_| count))];
    let proxied = config.proxy.https.is_some() || config.proxy.http.is_some();
    for provider in &config.providers {
        let name = format!("provider {}", provider.slug);
        checks.push(if proxied {
            Check::new(name, Status::Warning, "a proxy is set, so it was not tried whether the provider can be reached")
        } else {
            Check::of(name, reach(&provider.base_url, provider.connect_timeout).await)
        });
    }
    checks
}

fn on(on: bool) -> &'static str {
    if on { "on" } else { "off" }
}

/// Which endpoints serve models that the stored catalogue has no row for.
pub async fn endpoints(context: &Context, stores: &Stores) -> Vec<Check> {
    let rows = match stores.models.list().await {
        Ok(rows) => rows,
        Err(error) => return vec![Check::of("catalogue", Err::<String, _>(error))],
    };
    let count = rows.len();
    let snapshot = Arc::new(CatalogueSnapshot::build(rows));
    let mut checks = vec![Check::new("catalogue", Status::Ok, format!("{count} rows"))];
    for endpoint in &context.config.endpoints {
        let name = format!("endpoint {} at {}", endpoint.model, endpoint.provider);
        let row = snapshot.rows().iter().find(|row| row.id == endpoint.model || row.canonical_slug == endpoint.model);
        checks.push(match (row, endpoint.prices) {
            (Some(row), _) if !row.serves_decisions() => {
                Check::new(name, Status::Broken, "the catalogue's row has no decisions among its output modalities")
            }
            (Some(row), None) if row.pricing.is_variable() => {
                Check::new(name, Status::Broken, "neither the endpoint nor the catalogue's row has a fixed price")
            }
            (Some(_), _) => Check::new(name, Status::Ok, "the catalogue has a row"),
            (None, Some(_)) => {
                let detail = "the catalogue lacks the model, so a minimal row stands in (text->decisions, the endpoint's price)";
                Check::new(name, Status::Warning, detail)
            }
            (None, None) => {
                let detail = "the catalogue lacks the model and the endpoint has no price, so a minimal row stands in and calls are free";
                Check::new(name, Status::Warning, detail)
            }
        });
    }
    checks
}
