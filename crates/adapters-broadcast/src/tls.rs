//! Trusted certificate authorities and client certificates.

use std::path::Path;
use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore};

use super::{BroadcastError, BroadcastSettings};

/// Loads the authorities of the platform. Without any, plain HTTP still works, and `https://` fails.
pub(crate) fn platform() -> Result<ClientConfig, BroadcastError> {
    Ok(builder(platform_roots())?.with_no_client_auth())
}

/// Loads the authorities of the platform and those of the operator's collector, and the client certificate.
pub(crate) fn operator(settings: &BroadcastSettings) -> Result<ClientConfig, BroadcastError> {
    let mut roots = platform_roots();
    if let Some(path) = &settings.operator_ca_file {
        let (added, _) = roots.add_parsable_certificates(certificates(path)?);
        if added == 0 {
            return Err(BroadcastError::Certificates(path.clone()));
        }
    }
    let builder = builder(roots)?;
    let Some((certificate, key)) = &settings.operator_client_identity else {
        return Ok(builder.with_no_client_auth());
    };
    // The errors of the PEM reader may repeat a line, so they are left out.
    let key = PrivateKeyDer::from_pem_file(key).map_err(|_| BroadcastError::ClientKey)?;
    builder.with_client_auth_cert(certificates(certificate)?, key).map_err(BroadcastError::ClientIdentity)
}

fn platform_roots() -> RootCertStore {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    roots
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, BroadcastError> {
    let read = CertificateDer::pem_file_iter(path).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    read.ok().filter(|found| !found.is_empty()).ok_or_else(|| BroadcastError::Certificates(path.to_owned()))
}

fn builder(
    roots: RootCertStore,
) -> Result<rustls::ConfigBuilder<ClientConfig, rustls::client::WantsClientCert>, BroadcastError> {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
    Ok(builder.with_root_certificates(roots))
}
