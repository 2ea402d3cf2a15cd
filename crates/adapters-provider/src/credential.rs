//! Checks a provider's credential with its list of models, without a billed call.

use std::time::Duration;

use crate::http::HttpClient;
use crate::settings::{Address, ProviderSettings, ProviderSettingsError, headers};

/// The path of the list of models below the base URL; the same on all wires over HTTP.
const MODELS: &str = "models";

/// The result of a check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CredentialCheck {
    /// The list was returned with the credential, and not without it.
    Accepted,
    /// The credential was rejected with this status: 401 or 403.
    Rejected(u16),
    /// The list shows nothing about the credential, for this reason.
    Unknown(String),
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
    let with = list_status(client, settings, timeout).await?;
    Ok(match with {
        Ok(200) => {
            let without = ProviderSettings { api_key: None, ..settings.clone() };
            match list_status(client, &without, timeout).await? {
                Ok(401 | 403) => CredentialCheck::Accepted,
                Ok(200) => CredentialCheck::Unknown("its list of models is public".to_owned()),
                Ok(status) => CredentialCheck::Unknown(answered(status)),
                Err(reason) => CredentialCheck::Unknown(reason),
            }
        }
        Ok(status @ (401 | 403)) => CredentialCheck::Rejected(status),
        Ok(status) => CredentialCheck::Unknown(answered(status)),
        Err(reason) => CredentialCheck::Unknown(reason),
    })
}

fn answered(status: u16) -> String {
    format!("GET {MODELS} answered {status}")
}

/// Returns the status of the list, or why there is none.
async fn list_status(
    client: &HttpClient,
    settings: &ProviderSettings,
    timeout: Duration,
) -> Result<Result<u16, String>, ProviderSettingsError> {
    let uri = Address::new(&settings.base_url, MODELS)?.of("m").ok_or(ProviderSettingsError::Address)?;
    let target = client.target(&uri, headers(settings)?);
    Ok(match tokio::time::timeout(timeout, client.get_status(&target, uri)).await {
        Ok(status) => status.map_err(|failure| failure.detail),
        Err(_) => Err(format!("GET {MODELS} was not answered within {} ms", timeout.as_millis())),
    })
}
