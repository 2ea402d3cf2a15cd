//! Encryption of connections to PostgreSQL, and advice where it fails.

use std::net::IpAddr;

use domain::error::StoreError;
use percent_encoding::percent_decode_str;
use rustls::CertificateError;
use sea_orm::SqlxError;
use sea_orm::sqlx::postgres::{PgConnectOptions, PgSslMode};

/// The parameters that name files, and the text in a file of each kind.
const FILES: [(&str, &str); 3] = [
    ("sslrootcert", "-----BEGIN CERTIFICATE-----"),
    ("sslcert", "-----BEGIN CERTIFICATE-----"),
    ("sslkey", "PRIVATE KEY-----"),
];
const UNSUPPORTED_MODE: &str = "sslmode must be disable, require or verify-full";

/// Sets the encryption: the mode that the URL names, none to this machine, and else a verified connection.
///
/// # Errors
/// [`StoreError::Unavailable`] if the mode is not supported or a file of a certificate cannot be used.
pub(crate) fn with_tls(options: PgConnectOptions, url: &str) -> Result<PgConnectOptions, StoreError> {
    for (name, mark) in FILES {
        if let Some(path) = parameter(url, name) {
            check_file(name, &path, mark)?;
        }
    }
    let mode = mode(&options, url);
    // The driver's verify-ca accepts a certificate of every public authority for every host; prefer and allow encrypt
    // only if the network lets them.
    if matches!(mode, PgSslMode::Allow | PgSslMode::Prefer | PgSslMode::VerifyCa) {
        return Err(StoreError::unavailable(UNSUPPORTED_MODE));
    }
    // The driver looks up the address with its brackets.
    let host = options.get_host().strip_prefix('[').and_then(|host| host.strip_suffix(']')).map(str::to_owned);
    let options = options.ssl_mode(mode);
    Ok(match host {
        Some(host) => options.host(&host),
        None => options,
    })
}

fn mode(options: &PgConnectOptions, url: &str) -> PgSslMode {
    if parameter(url, "sslmode").is_some() {
        return options.get_ssl_mode();
    }
    let has_certificate = FILES.iter().any(|(name, _)| parameter(url, name).is_some());
    if is_local(options) && !has_certificate { PgSslMode::Disable } else { PgSslMode::VerifyFull }
}

/// Returns true if no network is between the server and this process.
fn is_local(options: &PgConnectOptions) -> bool {
    let host = options.get_host().trim_matches(['[', ']']);
    let is_loopback = host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback());
    options.get_socket().is_some() || host.starts_with('/') || host == "localhost" || is_loopback
}

/// Returns a parameter of a URL.
fn parameter(url: &str, name: &str) -> Option<String> {
    let (_, parameters) = url.split_once('?')?;
    let value = parameters.split('&').filter_map(|pair| pair.split_once('=')).find(|(key, _)| *key == name)?.1;
    Some(percent_decode_str(value).decode_utf8_lossy().into_owned())
}

fn check_file(name: &str, path: &str, mark: &str) -> Result<(), StoreError> {
    let text = std::fs::read_to_string(path);
    let text = text.map_err(|error| StoreError::unavailable(format!("cannot read {name} {path}: {error}")))?;
    if text.contains(mark) {
        Ok(())
    } else {
        Err(StoreError::unavailable(format!("{name} {path} has no line with {mark}: a PEM file is needed")))
    }
}

/// Returns the remedy for an error of encryption.
pub(crate) fn advice(error: &SqlxError) -> Option<&'static str> {
    match error {
        SqlxError::Tls(error) if error.to_string().contains("does not support TLS") => Some(
            "set ssl = on in the server's configuration, or sslmode=disable in storage.url if every network on the way \
             is trusted",
        ),
        SqlxError::Io(error) => match error.get_ref()?.downcast_ref::<rustls::Error>()? {
            rustls::Error::InvalidCertificate(reason) => Some(certificate_advice(reason)),
            _ => Some("the server and Tollgate have no TLS settings in common: TLS 1.2 or 1.3 is needed"),
        },
        SqlxError::Database(error) if error.message().contains("no encryption") => {
            Some("the server accepts encrypted connections only: add sslmode=verify-full to storage.url")
        }
        _ => None,
    }
}

fn certificate_advice(reason: &CertificateError) -> &'static str {
    match reason {
        // Another authority of the same name makes a bad signature.
        CertificateError::UnknownIssuer | CertificateError::BadSignature => {
            "name the certificate of the authority that signed the server's certificate: \
             sslrootcert=/path/to/ca.pem in storage.url"
        }
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            "use a host name in storage.url that the server's certificate contains, or issue a certificate for the host"
        }
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => "renew the server's certificate",
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            "check the clock of this machine"
        }
        _ => {
            "the server needs a certificate for its host name that is not an authority itself: create one with \
             basicConstraints=critical,CA:FALSE, self-signed or signed by the authority of sslrootcert"
        }
    }
}

#[cfg(test)]
mod tests {
    use std::str::FromStr;

    use super::*;

    fn with(url: &str) -> PgConnectOptions {
        with_tls(PgConnectOptions::from_str(url).unwrap(), url).unwrap()
    }

    #[test]
    fn connection_is_verified_unless_local_or_chosen_otherwise() {
        for (url, mode) in [
            ("postgres://u@db.internal/d", PgSslMode::VerifyFull),
            ("postgres://u@10.0.0.1/d", PgSslMode::VerifyFull),
            ("postgres://u@localhost.example/d", PgSslMode::VerifyFull),
            ("postgres:///d?host=db.internal", PgSslMode::VerifyFull),
            ("postgres://u@db.internal/d?sslmode=require", PgSslMode::Require),
            ("postgres://u@db.internal/d?sslmode=disable", PgSslMode::Disable),
            ("postgres://u@localhost/d", PgSslMode::Disable),
            ("postgres://u@127.0.0.1:5433/d", PgSslMode::Disable),
            ("postgres://u@[::1]:5433/d", PgSslMode::Disable),
            ("postgres:///d?host=/run/postgresql", PgSslMode::Disable),
            ("postgres://u@localhost/d?sslmode=verify-full", PgSslMode::VerifyFull),
        ] {
            assert_eq!(format!("{:?}", with(url).get_ssl_mode()), format!("{mode:?}"), "{url}");
        }
        assert_eq!(with("postgres://u@[::1]:5433/d").get_host(), "::1");
    }

    #[test]
    fn weak_modes_and_unreadable_files_are_rejected() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let empty = format!("sslrootcert={}", file.path().display());
        for (parameters, message) in [
            ("sslmode=prefer", UNSUPPORTED_MODE),
            ("sslmode=allow", UNSUPPORTED_MODE),
            ("sslmode=verify-ca", UNSUPPORTED_MODE),
            ("sslrootcert=/nowhere/ca.pem", "cannot read sslrootcert /nowhere/ca.pem"),
            (empty.as_str(), "has no line with -----BEGIN CERTIFICATE-----"),
        ] {
            let url = format!("postgres://u:s3cret@db.internal/d?{parameters}");
            let error = with_tls(PgConnectOptions::from_str(&url).unwrap(), &url).unwrap_err();
            let error = format!("{error:?}");
            assert!(error.contains(message) && !error.contains("s3cret"), "{error}");
        }
    }
}
