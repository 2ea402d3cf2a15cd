//! Trusted certificate authorities of the platform.

use std::sync::Arc;

use rustls::{ClientConfig, RootCertStore};

use super::BroadcastError;

/// Loads the authorities. A platform without any is no error: plain HTTP still works, and `https://` fails.
pub(crate) fn load() -> Result<ClientConfig, BroadcastError> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(config)
}
