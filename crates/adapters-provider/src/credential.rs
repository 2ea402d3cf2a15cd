//! Checks of a provider without a billed call: its connection, and its credential by the list of models.

use std::sync::Arc;
use std::time::Duration;

use domain::routing::{AttemptFailure, AttemptFailureKind};
use domain::system::Clock;
use http_client::HttpClient;

use crate::connection::Connection;
use crate::settings::{ProviderSettings, ProviderSettingsError};

/// The path of the list of models below the base URL; the same on all wires over HTTP.
const MODELS: &str = "models";

/// The result of a check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CredentialCheck {
    /// The list was returned with the credential, and not without it.
    Accepted,
    /// The provider rejected the credential or the account.
    Rejected(String),
    /// The call failed before the provider read the credential.
    Failed(String),
    /// The list shows nothing about the credential, for this reason.
    Unknown(String),
}

/// Opens a connection to a provider as a call does, through a proxy and with TLS, and closes it without a request.
/// Returns a sentence for people, or why there is no connection.
///
/// # Errors
/// The settings are invalid.
pub async fn check_connection(
    client: &HttpClient,
    clock: Arc<dyn Clock>,
    settings: &ProviderSettings,
) -> Result<Result<String, String>, ProviderSettingsError> {
    Ok(Connection::at(client.clone(), clock, settings, MODELS)?.probe().await)
}

/// Gets the list of models with the credential and, if it is returned, without it: some lists are public.
///
/// # Errors
/// The settings are invalid.
pub async fn check_credential(
    client: &HttpClient,
    clock: &Arc<dyn Clock>,
    settings: &ProviderSettings,
    timeout: Duration,
) -> Result<CredentialCheck, ProviderSettingsError> {
    if settings.api_key.is_none() {
        return Ok(CredentialCheck::Unknown("no API key is configured".to_owned()));
    }
    let Err(failure) = list_models(client, clock, settings, timeout).await? else {
        let without = ProviderSettings { api_key: None, ..settings.clone() };
        return Ok(match list_models(client, clock, &without, timeout).await? {
            Ok(()) => CredentialCheck::Unknown("its list of models is public".to_owned()),
            Err(failure) if failure.kind == AttemptFailureKind::ProviderAuthFailed => CredentialCheck::Accepted,
            Err(failure) => CredentialCheck::Unknown(answered(&failure)),
        });
    };
    Ok(match (failure.kind, failure.upstream_status) {
        (AttemptFailureKind::ProviderAuthFailed, _) => CredentialCheck::Rejected(answered(&failure)),
        (AttemptFailureKind::ConnectFailed, _) | (_, None) => CredentialCheck::Failed(answered(&failure)),
        _ => CredentialCheck::Unknown(answered(&failure)),
    })
}

/// Describes a failed call.
fn answered(failure: &AttemptFailure) -> String {
    match (failure.upstream_status, failure.cause) {
        (Some(status), None) => format!("GET {MODELS} answered {status}"),
        (Some(status), Some(cause)) => format!("GET {MODELS} answered {status}: {}", cause.sentence()),
        (None, _) => format!("GET {MODELS} failed: {}", failure.detail),
    }
}

async fn list_models(
    client: &HttpClient,
    clock: &Arc<dyn Clock>,
    settings: &ProviderSettings,
    timeout: Duration,
) -> Result<Result<(), AttemptFailure>, ProviderSettingsError> {
    let connection = Connection::at(client.clone(), Arc::clone(clock), settings, MODELS)?;
    let late = |_| {
        let detail = format!("it was not answered within {} ms", timeout.as_millis());
        Err(AttemptFailure::new(AttemptFailureKind::TimedOut, detail))
    };
    Ok(tokio::time::timeout(timeout, connection.get()).await.unwrap_or_else(late))
}
