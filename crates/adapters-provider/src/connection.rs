//! A configured provider: the shared client, its address and its headers.

use bytes::Bytes;
use domain::decision::ClientConnection;
use domain::routing::{AttemptFailure, AttemptFailureKind, ProviderSlug};
use wires::provider::ReadError;

use crate::http::{HttpClient, Payload, SentCounter, Target};
use crate::redaction::Redactor;
use crate::settings::{Address, ProviderSettings, ProviderSettingsError, headers};

/// A provider over HTTP, independent of its wire.
pub(crate) struct Connection {
    client: HttpClient,
    address: Address,
    target: Target,
    slug: ProviderSlug,
}

impl Connection {
    /// Builds the connection over this client.
    pub(crate) fn new(client: HttpClient, settings: &ProviderSettings) -> Result<Self, ProviderSettingsError> {
        let address = Address::new(&settings.base_url, &settings.path)?;
        let any_model = address.of("m").ok_or(ProviderSettingsError::Address)?;
        let target = client.target(&any_model, headers(settings)?);
        Ok(Self { client, address, target, slug: settings.slug.clone() })
    }

    /// Returns the provider's slug.
    pub(crate) fn slug(&self) -> &ProviderSlug {
        &self.slug
    }

    /// Returns the redactor of the keys that calls carry.
    pub(crate) fn redactor(&self) -> &Redactor {
        self.target.redactor()
    }

    /// Posts the body that `write` builds to the address of the model and returns the JSON body of a 200. `sent` counts
    /// the sent bytes even if this future is dropped. `by` is the client and the reader of errors.
    pub(crate) async fn post(
        &self,
        upstream_model: &str,
        write: impl Fn() -> Result<Payload, AttemptFailure>,
        sent: &SentCounter,
        by: (&dyn ClientConnection, Option<ReadError>),
    ) -> Result<Bytes, AttemptFailure> {
        let uri = self.address.of(upstream_model).ok_or_else(|| {
            AttemptFailure::new(AttemptFailureKind::ConnectFailed, "upstream_model does not form a valid URL")
        })?;
        self.client.post(&self.target, uri, write, sent, by).await
    }
}
