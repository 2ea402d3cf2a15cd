//! The client of the HTTP API that commands use. `api::run(context, &server, async |api| …)` opens it: `api.call`,
//! `api.get` and `api.list` return the JSON of a response, or fail with the server's sentence; `api.show`,
//! `api.show_list` and `api.show_text` print it.

use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, anyhow, bail, ensure};
use clap::ValueEnum;
use clap::builder::PossibleValue;
use domain::json::Json;
use domain::secret::{ApiKeyHash, ApiKeySecret};
use http::header::{AUTHORIZATION, CONTENT_TYPE};
use http::request::Builder;
use http::{HeaderValue, Method, Request, Response, Uri};
use http_client::body::{self, ReceivedBody, RequestBody, full, received};
use http_client::{HttpClient, HttpClientSettings, Repeat, before_deadline};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use serde_json::value::RawValue;
use uuid::Uuid;

use super::Context;
use super::context::read_secret;
use crate::cli::ServerArgs;
use crate::output::{Column, columns, pointer, record};
use crate::wiring::{PrivateApplication, SocketFolder};

/// The environment variable with the management key for `--url`.
const KEY_VARIABLE: &str = "TOLLGATE_MANAGEMENT_KEY";
/// The header with the user behind `sudo`.
const SUDO_USER: &str = "x-tollgate-sudo-user";
/// The maximum size of a JSON response, in bytes.
const MAX_RESPONSE_BYTES: usize = 256 << 20;
/// The additional time that a server takes for a response after its own deadline.
const GRACE: Duration = Duration::from_secs(10);
/// The characters that are encoded in a segment of a path.
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');
/// The most elements of a page.
const PAGE: usize = 100;

/// The client of the application.
pub struct Api<'a> {
    /// The context of the command.
    pub context: &'a Context,
    door: Door,
    base_path: String,
}

/// The way to the application.
enum Door {
    /// The server of `--url`.
    Url { client: Box<HttpClient>, origin: String, key: HeaderValue },
    /// A running server of the data folder.
    Socket { folder: SocketFolder, id: String },
    /// An application in this process.
    Private(Box<PrivateApplication>),
}

/// Runs a command with a client.
///
/// # Errors
/// No application can be reached or started, or the command failed.
pub async fn run<T>(
    context: &Context,
    server: &ServerArgs,
    command: impl AsyncFnOnce(&Api<'_>) -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    let api = Api::open(context, server).await?;
    let ended = command(&api).await;
    if let Door::Private(application) = api.door {
        application.stop().await;
    }
    ended
}

impl<'a> Api<'a> {
    async fn open(context: &'a Context, args: &ServerArgs) -> anyhow::Result<Self> {
        let base_path = context.config.server.base_path.clone();
        if let Some(url) = &args.url {
            return Self::at(context, url, args.key_file.as_deref());
        }
        ensure!(args.key_file.is_none(), "--key-file requires --url");
        let folder = SocketFolder::of(&context.config.storage.file);
        if let Some(id) = folder.find_server().await? {
            return Ok(Self { context, door: Door::Socket { folder, id }, base_path });
        }
        context.require_database()?;
        let (config, environment) = (&context.config, &context.environment);
        let door = match PrivateApplication::start(config, environment, &context.authority()).await? {
            Ok(application) => Door::Private(Box::new(application)),
            // It started meanwhile.
            Err(id) => Door::Socket { folder, id },
        };
        Ok(Self { context, door, base_path })
    }

    /// Returns the client of a running server of the data folder.
    pub fn of_server(context: &'a Context, id: &str) -> Self {
        let folder = SocketFolder::of(&context.config.storage.file);
        let base_path = context.config.server.base_path.clone();
        Self { context, door: Door::Socket { folder, id: id.to_owned() }, base_path }
    }

    fn at(context: &'a Context, url: &str, key_file: Option<&Path>) -> anyhow::Result<Self> {
        let invalid = || anyhow!("--url {url:?} is not an http:// or https:// address");
        let address: Uri = url.parse().map_err(|_| invalid())?;
        let (Some(scheme @ ("http" | "https")), Some(authority)) = (address.scheme_str(), address.authority()) else {
            return Err(invalid());
        };
        ensure!(address.query().is_none() && !authority.as_str().contains('@'), invalid());
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
        let client = if scheme == "https" { HttpClient::new(&settings) } else { HttpClient::without_tls(&settings) };
        let base_path = match address.path().trim_end_matches('/') {
            "" => context.config.server.base_path.clone(),
            path => path.to_owned(),
        };
        Ok(Self {
            context,
            door: Door::Url { client: Box::new(client?), origin: format!("{scheme}://{authority}"), key },
            base_path,
        })
    }

    /// Sends a request with a JSON body and returns the JSON of the response. `path` is below the base path.
    ///
    /// # Errors
    /// There is no response, or its status is an error: the message is the server's.
    pub async fn call(&self, method: Method, path: &str, json: Option<&Json>) -> anyhow::Result<Json> {
        let mut request = Request::builder().method(method);
        if json.is_some() {
            request = request.header(CONTENT_TYPE, "application/json");
        }
        let text = json.map(|json| json.text().to_owned()).unwrap_or_default();
        let response = self.send(path, request, || Ok(full(text.clone()))).await?;
        read_json(response).await
    }

    /// Reads a resource.
    ///
    /// # Errors
    /// As of [`Self::call`].
    pub async fn get(&self, path: &str) -> anyhow::Result<Json> {
        self.call(Method::GET, path, None).await
    }

    /// Reads all pages of a list, as one of `{data, total_count}`. `query` are the parameters with a value.
    ///
    /// # Errors
    /// As of [`Self::call`].
    pub async fn list(&self, path: &str, query: &[(&str, Option<&str>)]) -> anyhow::Result<Json> {
        let mut found = Vec::new();
        let limit = PAGE.to_string();
        loop {
            let offset = found.len().to_string();
            let range = [("offset", Some(offset.as_str())), ("limit", Some(limit.as_str()))];
            let page = self.get(&with_query(path, &[query, &range].concat())).await?;
            let data = elements(&page);
            let total = pointer(&page, "/total_count").and_then(|total| total.text().parse::<usize>().ok());
            let is_last = data.is_empty() || total.is_none_or(|total| found.len() + data.len() >= total);
            found.extend(data);
            if is_last {
                let data = Json::array(found.iter().map(Json::text));
                let total = found.len().to_string();
                return Ok(Json::object([("data", data.text()), ("total_count", total.as_str())]));
            }
        }
    }

    /// Sends a request and returns the response, whose status is not an error. `build` builds the body, again if the
    /// request must be repeated.
    ///
    /// # Errors
    /// As of [`Self::call`].
    pub async fn send(
        &self,
        path: &str,
        request: Builder,
        mut build: impl FnMut() -> anyhow::Result<RequestBody>,
    ) -> anyhow::Result<Response<ReceivedBody>> {
        let target = format!("{}{path}", self.base_path);
        let target = if let Door::Url { origin, .. } = &self.door { format!("{origin}{target}") } else { target };
        let mut parts = request.uri(target).body(())?.into_parts().0;
        if let Some(user) = self.context.environment.get("SUDO_USER") {
            parts.headers.insert(SUDO_USER, HeaderValue::from_bytes(user.as_bytes())?);
        }
        let sending = async {
            match &self.door {
                Door::Url { client, key, .. } => {
                    parts.headers.remove(SUDO_USER);
                    parts.headers.insert(AUTHORIZATION, key.clone());
                    let build = |_| Ok::<_, anyhow::Error>(Request::from_parts(parts.clone(), build()?));
                    let target = client.target(&parts.uri);
                    let sent = client.send_built(&target, None, Repeat::IfNotProcessed, build).await?;
                    Ok(sent.map(received))
                }
                Door::Socket { folder, id } => {
                    let stream = folder.connect(id).await?.context("it has stopped")?;
                    Ok(http_client::send_over(stream, Request::from_parts(parts, build()?)).await?)
                }
                Door::Private(application) => {
                    let stream = application.connect().await?;
                    Ok(http_client::send_over(stream, Request::from_parts(parts, build()?)).await?)
                }
            }
        };
        let sent = before_deadline(self.context.config.limits.request_timeout + GRACE, sending).await;
        let response: anyhow::Result<_> = sent.unwrap_or_else(|| bail!("it took too long"));
        let response = response.context("the server did not answer")?;
        if response.status().is_client_error() || response.status().is_server_error() {
            return Err(error_of(response, path).await);
        }
        Ok(response)
    }

    /// Returns the id of a workspace by its id or any name that the server resolves.
    ///
    /// # Errors
    /// As of [`Self::call`].
    pub async fn workspace(&self, name: &str) -> anyhow::Result<String> {
        if name.parse::<Uuid>().is_ok() {
            return Ok(name.to_owned());
        }
        let found = self.get(&format!("/workspaces/{}", segment(name))).await?;
        text_at(&found, "/data/id").context("the workspace has no id")
    }

    /// Returns the id or the hash of a key. An id, a hash and a secret are not looked up: the key may be deleted.
    ///
    /// # Errors
    /// As of [`Self::call`].
    pub async fn key(&self, name: &str) -> anyhow::Result<String> {
        let name = key_segment(name);
        if name.parse::<Uuid>().is_ok() || name.parse::<ApiKeyHash>().is_ok() {
            return Ok(name);
        }
        let found = self.get(&format!("/keys/{name}")).await?;
        text_at(&found, "/data/id").context("the key has no id")
    }

    /// Returns the id of an option's workspace; `None` without the option.
    ///
    /// # Errors
    /// As of [`Self::call`].
    pub async fn optional_workspace(&self, name: Option<&str>) -> anyhow::Result<Option<String>> {
        match name {
            Some(name) => self.workspace(name).await.map(Some),
            None => Ok(None),
        }
    }

    /// Prints a response: with `--json` as it came, otherwise the members of its record, one a line.
    ///
    /// # Errors
    /// Standard output failed.
    pub fn show(&self, response: &Json) -> anyhow::Result<ExitCode> {
        self.show_text(response, || record(&pointer(response, "/data").unwrap_or_else(|| response.clone())))
    }

    /// Prints a list: with `--json` as it came, otherwise as a table.
    ///
    /// # Errors
    /// Standard output failed.
    pub fn show_list(&self, response: &Json, of: &[Column]) -> anyhow::Result<ExitCode> {
        self.show_text(response, || columns(&elements(response), of))
    }

    /// Prints a response: with `--json` as it came, otherwise a text.
    ///
    /// # Errors
    /// Standard output failed.
    pub fn show_text(&self, response: &Json, text: impl FnOnce() -> String) -> anyhow::Result<ExitCode> {
        self.context.output.show_json(response, text)
    }
}

/// Reads the JSON of a response.
async fn read_json(response: Response<ReceivedBody>) -> anyhow::Result<Json> {
    let (status, mut content) = (response.status(), response.into_body());
    let bytes = body::read(&mut content, MAX_RESPONSE_BYTES, |_| true, |_| true).await;
    let bytes = bytes.context("the server did not finish its answer")?;
    let text = std::str::from_utf8(&bytes).ok();
    let json = text.and_then(|text| Json::parse(text).ok());
    json.with_context(|| format!("the server answered {} without JSON", status.as_u16()))
}

/// Returns the error of a response: the server's message, and the candidates of an ambiguous name.
async fn error_of(response: Response<ReceivedBody>, path: &str) -> anyhow::Error {
    let status = response.status().as_u16();
    let body = match read_json(response).await {
        Ok(body) => body,
        Err(error) => return error,
    };
    let Some(message) = text_at(&body, "/error/message") else { return anyhow!("the server answered {status}") };
    if status == 404 && message == "Resource not found" {
        return anyhow!("{} not found", subject(path));
    }
    match pointer(&body, "/error/metadata/ids").and_then(|ids| ids.elements()) {
        None => anyhow!("{message}"),
        Some(ids) => {
            let ids: Vec<String> = ids.iter().filter_map(Json::as_string).collect();
            anyhow!("{message}: {}", ids.join(", "))
        }
    }
}

/// Returns the resource of a path: the last collection with an element, and its name. A key's name is left out: it may be
/// a misplaced secret.
fn subject(path: &str) -> String {
    let path = path.split('?').next().unwrap_or_default();
    let segments: Vec<&str> = path.split('/').filter(|segment| !segment.is_empty()).collect();
    let is_collection = |name: &str| name.ends_with('s') && name != "assignments";
    let named = segments.windows(2).rev().find(|pair| is_collection(pair[0])).map(|pair| (pair[0], pair[1]));
    let (collection, name) = named.unwrap_or_else(|| (segments.last().copied().unwrap_or("resource"), ""));
    let kind = collection.strip_suffix('s').unwrap_or(collection);
    let name = percent_decode_str(name).decode_utf8_lossy();
    match &*name {
        "" => kind.to_owned(),
        _ if collection == "keys" => kind.to_owned(),
        id if id.parse::<Uuid>().is_ok() || id.parse::<u32>().is_ok() => format!("{kind} {id}"),
        name => format!("{kind} {name:?}"),
    }
}

/// Returns a name as a segment of a path.
pub fn segment(name: &str) -> String {
    utf8_percent_encode(name, RESERVED).to_string()
}

/// Returns the name of a key as a segment of a path. A secret is replaced by its hash.
pub fn key_segment(name: &str) -> String {
    name.parse::<ApiKeySecret>().map_or_else(|_| segment(name), |secret| secret.hash().to_string())
}

/// Returns the path with the parameters that have a value.
pub fn with_query(path: &str, query: &[(&str, Option<&str>)]) -> String {
    let given = query.iter().filter_map(|(name, value)| Some(format!("{name}={}", segment((*value)?))));
    let query = given.collect::<Vec<_>>().join("&");
    if query.is_empty() { path.to_owned() } else { format!("{path}?{query}") }
}

/// Returns the JSON object of the members with a value.
pub fn object(members: &[(&str, Option<Json>)]) -> Json {
    Json::object(members.iter().filter_map(|(name, value)| Some((*name, value.as_ref()?.text()))))
}

/// Returns the new value of a member: null if it is cleared.
pub fn edit(clear: bool, value: Option<Json>) -> Option<Json> {
    if clear { Some(null()) } else { value }
}

/// Returns null.
pub fn null() -> Json {
    Json::from(RawValue::NULL.to_owned())
}

/// Returns a number with its digits.
pub fn number(number: &impl ToString) -> Json {
    let text = number.to_string();
    Json::parse(&text).unwrap_or_else(|_| Json::string(&text))
}

/// Returns the word of an option's value.
pub fn word(value: &impl ValueEnum) -> Json {
    Json::string(value.to_possible_value().as_ref().map(PossibleValue::get_name).unwrap_or_default())
}

/// Returns the elements of a list.
pub fn elements(list: &Json) -> Vec<Json> {
    pointer(list, "/data").and_then(|data| data.elements()).unwrap_or_default()
}

/// Returns the string at a JSON pointer.
pub fn text_at(json: &Json, at: &str) -> Option<String> {
    pointer(json, at)?.as_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subject_is_the_last_named_collection() {
        for (path, expected) in [
            ("/keys/a%20b", "key"),
            ("/keys/a/rotate", "key"),
            ("/guardrails/g/assignments/keys", "guardrail \"g\""),
            ("/guardrails/x/versions/3/restore", "version 3"),
            ("/containers/c/files/f", "file \"f\""),
            ("/workspaces/acme%20labs?x=/files/f", "workspace \"acme labs\""),
            ("/keys", "key"),
            ("/observability/destinations/d", "destination \"d\""),
        ] {
            assert_eq!(subject(path), expected, "{path}");
        }
    }

    #[test]
    fn query_and_segments_are_percent_encoded() {
        let path = with_query("/keys", &[("name", Some("a b&c=/é")), ("kind", None), ("limit", Some("1"))]);
        assert_eq!(path, "/keys?name=a%20b%26c%3D%2F%C3%A9&limit=1");
        assert_eq!(with_query("/keys", &[("name", None)]), "/keys");
        let secret = ApiKeySecret::from_random([7; 32]);
        assert_eq!(key_segment(secret.expose()), secret.hash().to_string());
        assert_eq!(key_segment("a/b"), "a%2Fb");
    }
}
