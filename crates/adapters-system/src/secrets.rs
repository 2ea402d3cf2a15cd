//! Secrets from the operating system's random source.

use domain::error::StoreError;
use domain::secret::ApiKeySecret;
use domain::system::SecretGenerator;

/// Draws secrets from the operating system's cryptographic random source.
#[derive(Debug, Clone, Copy, Default)]
pub struct OsSecrets;

impl SecretGenerator for OsSecrets {
    fn api_key_secret(&self) -> Result<ApiKeySecret, StoreError> {
        let mut bytes = [0; 32];
        getrandom::fill(&mut bytes).map_err(|error| StoreError::unavailable(error.to_string()))?;
        Ok(ApiKeySecret::from_random(bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_distinct_and_not_zero() {
        let zeros = ApiKeySecret::from_random([0; 32]);
        let (one, other) = (OsSecrets.api_key_secret().unwrap(), OsSecrets.api_key_secret().unwrap());
        assert!(one != other && one != zeros && other != zeros);
        assert!(one.expose().parse::<ApiKeySecret>().is_ok());
    }
}
