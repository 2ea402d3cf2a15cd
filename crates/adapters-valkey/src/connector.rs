//! Opens connections to the server.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use redis::aio::MultiplexedConnection;
use redis::io::tcp::TcpSettings;
use redis::{
    AsyncConnectionConfig, Client, ClientTlsConfig, ConnectionAddr, IntoConnectionInfo, RedisConnectionInfo,
    RedisError, TlsCertificates,
};
use rustls::RootCertStore;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;

use crate::{ValkeyError, ValkeySettings};

/// The maximum time to connect, to log in and to select the database.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(1);
/// Requests that wait to be written; more wait for a place.
const WRITE_QUEUE: usize = 1_024;

/// Opens connections to one server.
pub(crate) struct Connector {
    client: Client,
    server: String,
}

impl Connector {
    /// Reads the files of certificates. Connects to nothing.
    pub(crate) fn new(settings: &ValkeySettings) -> Result<Self, ValkeyError> {
        let server = settings.name();
        let client = client(settings).map_err(|error| match error {
            ClientError::Certificates(error) => error,
            ClientError::Redis(error) if settings.is_tls => ValkeyError::Tls(error.to_string()),
            ClientError::Redis(error) => ValkeyError::new(&server, &error),
        })?;
        Ok(Self { client, server })
    }

    /// Returns the name of the server for messages.
    pub(crate) fn server(&self) -> &str {
        &self.server
    }

    /// Opens a connection that requests share.
    pub(crate) async fn connect(&self) -> Result<MultiplexedConnection, ValkeyError> {
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(CONNECT_TIMEOUT))
            // Each call has a deadline of its own.
            .set_response_timeout(None)
            .set_pipeline_buffer_size(WRITE_QUEUE);
        let opening = self.client.get_multiplexed_async_connection_with_config(&config);
        let opened = tokio::time::timeout(CONNECT_TIMEOUT, opening).await.map_err(|_| {
            let reason = format!("no connection within {} s", CONNECT_TIMEOUT.as_secs());
            ValkeyError::unusable(&self.server, reason)
        })?;
        opened.map_err(|error| ValkeyError::new(&self.server, &error))
    }
}

enum ClientError {
    Certificates(ValkeyError),
    Redis(RedisError),
}

impl From<RedisError> for ClientError {
    fn from(error: RedisError) -> Self {
        Self::Redis(error)
    }
}

fn client(settings: &ValkeySettings) -> Result<Client, ClientError> {
    let mut login = RedisConnectionInfo::default().set_db(settings.database).set_skip_set_lib_name();
    if let Some(username) = &settings.credentials.username {
        login = login.set_username(username);
    }
    if let Some(password) = &settings.credentials.password {
        login = login.set_password(password);
    }
    let information = (settings.host.clone(), settings.port)
        .into_connection_info()?
        .set_redis_settings(login)
        .set_tcp_settings(TcpSettings::default().set_nodelay(true));
    if !settings.is_tls {
        return Ok(Client::open(information)?);
    }
    let address =
        ConnectionAddr::TcpTls { host: settings.host.clone(), port: settings.port, insecure: false, tls_params: None };
    let root_cert = match &settings.ca_file {
        Some(path) => Some(authorities(path).map_err(ClientError::Certificates)?),
        None => None,
    };
    let client_tls = match &settings.client_identity {
        Some((certificate, key)) => Some(client_identity(certificate, key).map_err(ClientError::Certificates)?),
        None => None,
    };
    Ok(Client::build_with_tls(information.set_addr(address), TlsCertificates { client_tls, root_cert })?)
}

/// Reads a client certificate and its key, and checks that they belong together.
fn client_identity(certificate: &Path, key: &Path) -> Result<ClientTlsConfig, ValkeyError> {
    let unusable = |reason: &str| ValkeyError::ClientIdentity(reason.to_owned());
    let read = |path: &Path| std::fs::read(path).map_err(|error| unusable(&error.to_string()));
    let (client_cert, client_key) = (read(certificate)?, read(key)?);
    // The errors of the PEM reader may repeat a line, so they are left out.
    let chain = CertificateDer::pem_slice_iter(&client_cert).collect::<Result<Vec<_>, _>>();
    let chain = chain.map_err(|_| unusable("the certificate is not in PEM"))?;
    let private_key = PrivateKeyDer::from_pem_slice(&client_key);
    let private_key = private_key.map_err(|_| unusable("the key is not an unencrypted private key in PEM"))?;
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let checked = CertifiedKey::from_der(chain, private_key, &provider);
    checked.map_err(|error| unusable(&error.to_string()))?;
    Ok(ClientTlsConfig { client_cert, client_key })
}

/// Returns the usable certificate authorities of the platform and of a file in PEM. A certificate of the platform that
/// rustls cannot use would make the client reject all of them.
fn authorities(path: &Path) -> Result<Vec<u8>, ValkeyError> {
    let unreadable = |reason: String| ValkeyError::CaFile { path: path.to_owned(), reason };
    let mut pem = std::fs::read(path).map_err(|error| unreadable(error.to_string()))?;
    if !String::from_utf8_lossy(&pem).contains("-----BEGIN CERTIFICATE-----") {
        return Err(unreadable("it contains no certificate in PEM".to_owned()));
    }
    for certificate in rustls_native_certs::load_native_certs().certs {
        if RootCertStore::empty().add(certificate.clone()).is_ok() {
            let text = STANDARD.encode(&certificate);
            pem.extend_from_slice(
                format!("\n-----BEGIN CERTIFICATE-----\n{text}\n-----END CERTIFICATE-----\n").as_bytes(),
            );
        }
    }
    Ok(pem)
}
