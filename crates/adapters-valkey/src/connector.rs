//! Opens connections to the server.

use std::path::Path;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use redis::aio::MultiplexedConnection;
use redis::io::tcp::TcpSettings;
use redis::{
    AsyncConnectionConfig, Client, ConnectionAddr, IntoConnectionInfo, RedisConnectionInfo, RedisError, TlsCertificates,
};
use rustls::RootCertStore;

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
    /// Reads the certificate authorities. Connects to nothing.
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
    Ok(Client::build_with_tls(information.set_addr(address), TlsCertificates { client_tls: None, root_cert })?)
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
