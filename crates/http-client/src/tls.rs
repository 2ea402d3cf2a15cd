//! Trusted certificate authorities (the platform's and, if configured, those of a file) and the client certificate.

use std::path::Path;
use std::sync::Arc;

use rustls::{ClientConfig, RootCertStore};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};

use crate::{HttpClientError, HttpClientSettings};

/// A client certificate with its chain, and its key.
type ClientIdentity = (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>);

/// A TLS configuration.
#[derive(Clone)]
pub(crate) struct Tls {
    pub(crate) config: ClientConfig,
    /// The number of trusted authorities. With none, no `https://` call can succeed.
    pub(crate) trusted: usize,
    /// The number of errors of the platform's certificates.
    pub(crate) unreadable: usize,
}

impl Tls {
    /// Reads the authorities of the platform and the files. A platform without authorities is no error: plain HTTP still
    /// works.
    pub(crate) fn load(settings: &HttpClientSettings) -> Result<Self, HttpClientError> {
        let mut roots = RootCertStore::empty();
        let platform = rustls_native_certs::load_native_certs();
        roots.add_parsable_certificates(platform.certs);
        if let Some(path) = &settings.extra_ca_file {
            add_file(&mut roots, path)?;
        }
        let identity = settings.client_identity.as_ref();
        let identity = identity.map(|(certificate, key)| client_identity(certificate, key)).transpose()?;
        Ok(Self { unreadable: platform.errors.len(), ..Self::new(roots, identity)? })
    }

    fn new(roots: RootCertStore, identity: Option<ClientIdentity>) -> Result<Self, HttpClientError> {
        let trusted = roots.len();
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let builder = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_root_certificates(roots);
        let config = match identity {
            None => builder.with_no_client_auth(),
            Some((chain, key)) => builder.with_client_auth_cert(chain, key).map_err(HttpClientError::ClientIdentity)?,
        };
        Ok(Self { config, trusted, unreadable: 0 })
    }

    /// Trusts no authority, for servers that are called without TLS.
    pub(crate) fn without_authorities() -> Result<Self, HttpClientError> {
        Self::new(RootCertStore::empty(), None)
    }
}

/// Reads a client certificate and its key. The errors of the PEM reader may repeat a line, so they are left out.
fn client_identity(certificate: &Path, key: &Path) -> Result<ClientIdentity, HttpClientError> {
    let chain = CertificateDer::pem_file_iter(certificate).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let chain = chain.ok().filter(|chain| !chain.is_empty());
    let chain = chain.ok_or_else(|| HttpClientError::ClientCertificate(certificate.to_owned()))?;
    let key = PrivateKeyDer::from_pem_file(key).map_err(|_| HttpClientError::ClientKey)?;
    Ok((chain, key))
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
