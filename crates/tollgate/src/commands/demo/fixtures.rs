//! The records that the demo needs, created as the commands create them.

use anyhow::Context as _;
use async_trait::async_trait;
use domain::api_key::{ApiKeyScope, NewApiKey};
use domain::audit::Actor;
use domain::budget::{ResetInterval, SpendLimit};
use domain::container::{BlobKey, ByteSource, ContainerId, ContainerPath};
use domain::error::StoreError;
use domain::guardrail::{CreateGuardrail, GuardrailDraft};
use domain::money::Usd;

use crate::config::Config;
use crate::wiring::Stores;

/// The container of the demo.
pub const CONTAINER: &str = "sess_demo";
/// A file in it.
pub const PATH: &str = "out/report.csv";
/// The content of the file.
const CONTENT: &str = "ticket,urgent\n1041,yes\n1042,no\n";

/// The created records.
#[derive(Debug, Clone)]
pub struct Fixtures {
    /// The secret of an inference key.
    pub inference_key: String,
    /// Its hash.
    pub inference_hash: String,
    /// The secret of a management key.
    pub management_key: String,
    /// The secret of an inference key with a limit of 0.000000000001 USD.
    pub limited_key: String,
    /// A guardrail of the same workspace.
    pub guardrail_id: String,
    /// The file's id.
    pub file_id: String,
}

impl Fixtures {
    /// Creates a workspace, keys, a guardrail and a container file.
    ///
    /// # Errors
    /// A store failed.
    pub async fn make(config: &Config, stores: &Stores) -> anyhow::Result<Self> {
        let workspace = stores.create_workspace().default(&Actor::system()).await?;
        let new = |name: &str, scope, limit| NewApiKey {
            name: name.to_owned(),
            scope,
            limit,
            rates: domain::rate::RateLimits::default(),
            expires_at: None,
        };
        let create = stores.create_api_key();
        let (inference, inference_secret) =
            create.execute(&Actor::system(), new("demo", ApiKeyScope::Inference(workspace.id), None)).await?;
        let (_, management_secret) =
            create.execute(&Actor::system(), new("demo management", ApiKeyScope::Management, None)).await?;
        let limit = SpendLimit { amount: Usd::from_pico(1), reset: Some(ResetInterval::Daily) };
        let limited = new("demo limited", ApiKeyScope::Inference(workspace.id), Some(limit));
        let (_, limited_secret) = create.execute(&Actor::system(), limited).await?;
        let draft = GuardrailDraft::named("demo guardrail").in_workspace(workspace.id);
        let create = CreateGuardrail::new(stores.guardrail_ports(config).await?);
        let guardrail = create.execute(&Actor::system(), &draft).await?.guardrail;
        let (container, path): (ContainerId, ContainerPath) = (CONTAINER.parse()?, PATH.parse()?);
        let key = BlobKey::container_file(workspace.id, &container, &path);
        stores
            .blobs
            .put(&key, Box::new(Once(Some(CONTENT.as_bytes().to_vec()))))
            .await
            .context("the container file could not be written")?;
        Ok(Self {
            inference_key: inference_secret.expose().to_owned(),
            inference_hash: inference.hash.to_string(),
            management_key: management_secret.expose().to_owned(),
            limited_key: limited_secret.expose().to_owned(),
            guardrail_id: guardrail.id.to_string(),
            file_id: path.file_id(),
        })
    }
}

/// A source of one chunk.
struct Once(Option<Vec<u8>>);

#[async_trait]
impl ByteSource for Once {
    async fn next(&mut self) -> Result<Option<Vec<u8>>, StoreError> {
        Ok(self.0.take())
    }
}
