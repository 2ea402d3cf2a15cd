//! The way of commands to the application: the server of `--url`, a running server of the data folder, or an application
//! in this process.

use http::header::AUTHORIZATION;
use http::request::Parts;
use http::{HeaderValue, Request, Response, Uri};
use http_client::body::{ReceivedBody, RequestBody, received};
use http_client::{HttpClient, HttpClientSettings, Repeat};

use super::context::read_secret;
use crate::cli::ServerArgs;
use crate::commands::prelude::*;
use crate::wiring::{PrivateApplication, SocketFolder};

/// The environment variable with the management key for `--url`.
const KEY_VARIABLE: &str = "TOLLGATE_MANAGEMENT_KEY";
/// The header with the user behind `sudo`.
pub const SUDO_USER: &str = "x-tollgate-sudo-user";

/// The way to the application.
pub enum Door {
    /// The server of `--url`.
    Url {
        /// The client.
        client: Box<HttpClient>,
        /// Scheme and authority.
        origin: String,
        /// The header with the management key.
        key: HeaderValue,
    },
    /// A running server of the data folder.
    Socket {
        /// The folder of the sockets.
        folder: SocketFolder,
        /// The id of the server.
        id: String,
    },
    /// An application in this process.
    Private(Box<PrivateApplication>),
}

impl Door {
    /// Finds or starts an application. Returns also its base path.
    ///
    /// # Errors
    /// The arguments are invalid, or no application can be reached or started.
    pub async fn open(context: &Context, args: &ServerArgs) -> anyhow::Result<(Self, String)> {
        let base_path = context.config.server.base_path.clone();
        if let Some(url) = &args.url {
            return Self::at(context, url, args.key_file.as_deref());
        }
        ensure!(args.key_file.is_none(), "--key-file requires --url");
        let folder = SocketFolder::of(&context.config.storage.servers());
        if let Some(id) = folder.find_server().await? {
            return Ok((Self::Socket { folder, id }, base_path));
        }
        context.require_database()?;
        let (config, environment) = (&context.config, &context.environment);
        let door = match PrivateApplication::start(config, environment, &context.authority()).await? {
            Ok(application) => Self::Private(Box::new(application)),
            // It started meanwhile.
            Err(id) => Self::Socket { folder, id },
        };
        Ok((door, base_path))
    }

    fn at(context: &Context, url: &str, key_file: Option<&Path>) -> anyhow::Result<(Self, String)> {
        let (origin, path) = split_url(url)?;
        let key = match key_file {
            Some(file) => read_secret("--key-file", file)?,
            None => context
                .environment
                .get(KEY_VARIABLE)
                .map(str::to_owned)
                .with_context(|| format!("no management key for --url: set {KEY_VARIABLE} or --key-file"))?,
        };
        let key = HeaderValue::try_from(format!("Bearer {key}"));
        let mut key = key.map_err(|_| anyhow!("the key has characters that no key has"))?;
        key.set_sensitive(true);
        let settings = HttpClientSettings { proxy: context.config.proxy.clone(), ..HttpClientSettings::default() };
        let client =
            if origin.starts_with("https:") { HttpClient::new(&settings) } else { HttpClient::without_tls(&settings) };
        let base_path = path.unwrap_or_else(|| context.config.server.base_path.clone());
        Ok((Self::Url { client: Box::new(client?), origin, key }, base_path))
    }

    /// Sends a request and returns the response. `build` builds the body, again if the request must be repeated.
    ///
    /// # Errors
    /// There is no response.
    pub async fn send(
        &self,
        mut parts: Parts,
        mut build: impl FnMut() -> anyhow::Result<RequestBody>,
    ) -> anyhow::Result<Response<ReceivedBody>> {
        let stream = match self {
            Self::Url { client, origin, key } => {
                parts.headers.remove(SUDO_USER);
                parts.headers.insert(AUTHORIZATION, key.clone());
                parts.uri = format!("{origin}{}", parts.uri).parse()?;
                let build = |_| Ok::<_, anyhow::Error>(Request::from_parts(parts.clone(), build()?));
                let sent = client.send_built(&client.target(&parts.uri), None, Repeat::IfNotProcessed, build).await?;
                return Ok(sent.map(received));
            }
            Self::Socket { folder, id } => folder.connect(id).await?.context("it has stopped")?,
            Self::Private(application) => application.connect().await?,
        };
        Ok(http_client::send_over(stream, Request::from_parts(parts, build()?)).await?)
    }

    /// Stops an application in this process.
    pub async fn close(self) {
        if let Self::Private(application) = self {
            application.stop().await;
        }
    }
}

/// Splits the value of `--url` into origin and base path; `None` if it has no path.
///
/// # Errors
/// It is not an address of a server.
pub fn split_url(url: &str) -> anyhow::Result<(String, Option<String>)> {
    let invalid = || anyhow!("--url {url:?} is not an http:// or https:// address");
    let address: Uri = url.parse().map_err(|_| invalid())?;
    let (Some(scheme @ ("http" | "https")), Some(authority)) = (address.scheme_str(), address.authority()) else {
        return Err(invalid());
    };
    ensure!(address.query().is_none() && !authority.as_str().contains('@'), invalid());
    let path = address.path().trim_end_matches('/');
    Ok((format!("{scheme}://{authority}"), (!path.is_empty()).then(|| path.to_owned())))
}
