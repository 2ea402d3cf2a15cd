//! Trusted certificate authorities: the platform's and, if configured, those of a file.

use std::path::Path;
use std::sync::Arc;

use rustls::{ClientConfig, RootCertStore};
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject;

use super::HttpClientError;

/// A TLS configuration and the number of its trusted authorities. With none, no `https://` call can succeed.
#[derive(Clone)]
pub(super) struct Tls {
    pub(super) config: ClientConfig,
    pub(super) trusted: usize,
}

impl Tls {
    /// Loads the authorities. A platform without authorities is logged and no error: plain HTTP still works.
    pub(super) fn load(extra_ca_file: Option<&Path>) -> Result<Self, HttpClientError> {
        let mut roots = RootCertStore::empty();
        let platform = rustls_native_certs::load_native_certs();
        let unreadable = platform.errors.len();
        roots.add_parsable_certificates(platform.certs);
        if let Some(path) = extra_ca_file {
            add_file(&mut roots, path)?;
        }
        if roots.is_empty() {
            tracing::warn!(
                unreadable,
                "no certificate authority is known on this platform; https:// providers cannot be called until a file \
                 of authorities is configured"
            );
        }
        Self::trusting(roots)
    }

    pub(super) fn trusting(roots: RootCertStore) -> Result<Self, HttpClientError> {
        let trusted = roots.len();
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_root_certificates(roots)
            .with_no_client_auth();
        Ok(Self { config, trusted })
    }
}

fn add_file(roots: &mut RootCertStore, path: &Path) -> Result<(), HttpClientError> {
    let unreadable = |source| HttpClientError::CaFile { path: path.to_owned(), source };
    let certificates = CertificateDer::pem_file_iter(path)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|error| unreadable(error.into()))?;
    let (added, _) = roots.add_parsable_certificates(certificates);
    if added == 0 {
        return Err(HttpClientError::EmptyCaFile(path.to_owned()));
    }
    Ok(())
}
