//! Checks of a provider without a billed call: its connection, and its credential by the list of models.

use std::time::Duration;

use domain::routing::{AttemptFailure, AttemptFailureKind};
use http::Uri;
use http::uri::Scheme;

use crate::http::HttpClient;
use crate::settings::{Address, ProviderSettings, ProviderSettingsError, headers};

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
    settings: &ProviderSettings,
) -> Result<Result<String, String>, ProviderSettingsError> {
    let uri = Address::new(&settings.base_url, MODELS)?.of("m").ok_or(ProviderSettingsError::Address)?;
    let at = host_and_port(&uri);
    let target = client.target(&uri, headers(settings)?);
    let protocol = if uri.scheme() == Some(&Scheme::HTTPS) { "TLS" } else { "TCP" };
    Ok(match client.probe(&target, &uri).await {
        Ok(()) if client.is_proxied(&uri) && protocol == "TCP" => Ok(format!("the proxy for {at} accepts connections")),
        Ok(()) if client.is_proxied(&uri) => Ok(format!("{at} accepts {protocol} connections through the proxy")),
        Ok(()) => Ok(format!("{at} accepts {protocol} connections")),
        Err(failure) => Err(format!("{at}: {}", failure.detail)),
    })
}

fn host_and_port(uri: &Uri) -> String {
    let default = if uri.scheme() == Some(&Scheme::HTTPS) { 443 } else { 80 };
    format!("{}:{}", uri.host().unwrap_or_default(), uri.port_u16().unwrap_or(default))
}

/// Gets the list of models with the credential and, if it is returned, without it: some lists are public.
///
/// # Errors
/// The settings are invalid.
pub async fn check_credential(
    client: &HttpClient,
    settings: &ProviderSettings,
    timeout: Duration,
) -> Result<CredentialCheck, ProviderSettingsError> {
    if settings.api_key.is_none() {
        return Ok(CredentialCheck::Unknown("no API key is configured".to_owned()));
    }
    let Err(failure) = list_models(client, settings, timeout).await? else {
        let without = ProviderSettings { api_key: None, ..settings.clone() };
        return Ok(match list_models(client, &without, timeout).await? {
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
    settings: &ProviderSettings,
    timeout: Duration,
) -> Result<Result<(), AttemptFailure>, ProviderSettingsError> {
    let uri = Address::new(&settings.base_url, MODELS)?.of("m").ok_or(ProviderSettingsError::Address)?;
    let target = client.target(&uri, headers(settings)?);
    let late = |_| {
        let detail = format!("it was not answered within {} ms", timeout.as_millis());
        Err(AttemptFailure::new(AttemptFailureKind::TimedOut, detail))
    };
    Ok(tokio::time::timeout(timeout, client.get(&target, uri)).await.unwrap_or_else(late))
}
