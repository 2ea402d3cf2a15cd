//! The trusted certificate authorities: the platform's and those of a file.

use std::path::Path;
use std::sync::Arc;

use rustls::{ClientConfig, RootCertStore};
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject;

use crate::S3Error;

/// Loads the authorities. `is_needed` tells whether the service is called by `https://`.
pub(crate) fn load(extra_ca_file: Option<&Path>, is_needed: bool) -> Result<ClientConfig, S3Error> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if let Some(path) = extra_ca_file {
        add_file(&mut roots, path)?;
    }
    if roots.is_empty() && is_needed {
        return Err(S3Error::NoAuthorities);
    }
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    Ok(ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_no_client_auth())
}

fn add_file(roots: &mut RootCertStore, path: &Path) -> Result<(), S3Error> {
    let unreadable =
        |error: rustls_pki_types::pem::Error| S3Error::CaFile { path: path.to_owned(), source: Box::new(error) };
    let certificates =
        CertificateDer::pem_file_iter(path).and_then(Iterator::collect::<Result<Vec<_>, _>>).map_err(unreadable)?;
    let (added, _) = roots.add_parsable_certificates(certificates);
    if added == 0 { Err(S3Error::EmptyCaFile(path.to_owned())) } else { Ok(()) }
}
