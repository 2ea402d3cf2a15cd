//! The client of the HTTP API that commands use. `api::run(context, &server, async |api| …)` opens it: `api.call`,
//! `api.get` and `api.list` return the JSON of a response, or fail with the server's sentence; `api.show`,
//! `api.show_list` and `api.show_text` print it.

use std::pin::pin;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{Context as _, anyhow, bail, ensure};
use bytes::Bytes;
use clap::ValueEnum;
use clap::builder::PossibleValue;
use domain::json::Json;
use domain::secret::{ApiKeyHash, ApiKeySecret};
use http::header::{CONTENT_TYPE, ETAG, IF_MATCH};
use http::request::Builder;
use http::{HeaderValue, Method, Request, Response, StatusCode};
use http_client::before_deadline;
use http_client::body::{self, ReceivedBody, RequestBody, full, observed};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use uuid::Uuid;

use super::Context;
use super::door::{Door, SUDO_USER};
use crate::cli::ServerArgs;
use crate::output::{Column, columns, escape, pointer, record, with_next};
use crate::wiring::SocketFolder;

/// The maximum size of a JSON response, in bytes.
const MAX_RESPONSE_BYTES: usize = 256 << 20;
/// The additional time that a server takes for a response after its own deadline.
const GRACE: Duration = Duration::from_secs(10);
/// The characters that are encoded in a segment of a path.
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');
/// The most attempts at a change while others change the resource.
const MAX_ATTEMPTS: usize = 8;
/// The most elements of a page.
const PAGE: usize = 100;
/// The least: one that was on the page before, and the next one.
const MIN_PAGE: usize = 2;
/// The most elements of a page of an append-only list.
const CURSOR_PAGE: usize = 1_000;

/// The client of the application.
pub struct Api<'a> {
    /// The context of the command.
    pub context: &'a Context,
    /// The path of the API on its server.
    pub base_path: String,
    door: Door,
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
    let (door, base_path) = Door::open(context, server).await?;
    let api = Api { context, base_path, door };
    let ended = command(&api).await;
    api.door.close().await;
    ended
}

impl<'a> Api<'a> {
    /// Returns the client of a running server with a socket in a folder.
    pub fn of_server(context: &'a Context, folder: SocketFolder, id: &str) -> Self {
        let base_path = context.config.server.base_path.clone();
        Self { context, base_path, door: Door::Socket { folder, id: id.to_owned() } }
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
        self.read_json(response).await
    }

    /// Changes a resource by a body that depends on its state, and returns the JSON of the response. If the resource is
    /// changed in between, `body` gets the new state.
    ///
    /// # Errors
    /// As of [`Self::call`].
    pub async fn change(&self, path: &str, body: impl Fn(&Json) -> Json) -> anyhow::Result<Json> {
        let mut attempt = 0;
        loop {
            attempt += 1;
            let read = self.send(path, Request::builder(), || Ok(full(""))).await?;
            let version = read.headers().get(ETAG).cloned().context("the server did not send an ETag")?;
            let text = body(&self.read_json(read).await?).text().to_owned();
            let request = Request::builder().method(Method::PATCH).header(IF_MATCH, version);
            let request = request.header(CONTENT_TYPE, "application/json");
            let response = self.exchange(path, request, || Ok(full(text.clone()))).await?;
            if response.status() != StatusCode::PRECONDITION_FAILED || attempt == MAX_ATTEMPTS {
                let response = self.checked(response, path).await?;
                return self.read_json(response).await;
            }
        }
    }

    /// Reads a resource.
    ///
    /// # Errors
    /// As of [`Self::call`].
    pub async fn get(&self, path: &str) -> anyhow::Result<Json> {
        self.call(Method::GET, path, None).await
    }

    /// Reads a resource into a type.
    ///
    /// # Errors
    /// As of [`Self::call`]; another server answered, or one of another release.
    pub async fn read<T: DeserializeOwned>(&self, path: &str) -> anyhow::Result<T> {
        let response = self.send(path, Request::builder(), || Ok(full(""))).await?;
        let status = response.status();
        let json = self.read_json(response).await?;
        serde_json::from_str(json.text()).map_err(|_| self.unexpected(status))
    }

    /// Reads all pages of a list, as one of `{data, total_count}`. `query` are the parameters with a value. No element is
    /// repeated or missed while others write.
    ///
    /// # Errors
    /// As of [`Self::call`]; the list was changed during each of several reads.
    pub async fn list(&self, path: &str, query: &[(&str, Option<&str>)]) -> anyhow::Result<Json> {
        for _ in 0..MAX_ATTEMPTS {
            if let Some(found) = self.walk(path, query).await? {
                let data = Json::array(found.iter().map(Json::text));
                let total = found.len().to_string();
                return Ok(Json::object([("data", data.text()), ("total_count", total.as_str())]));
            }
        }
        bail!("the list was changed during each of {MAX_ATTEMPTS} reads; try again")
    }

    /// Reads all pages of a list. Each begins with the last element of the one before; `None` if it does not, because
    /// elements were added or removed in between. Pages of elements that take too much memory of the server are shorter.
    async fn walk(&self, path: &str, query: &[(&str, Option<&str>)]) -> anyhow::Result<Option<Vec<Json>>> {
        let mut found: Vec<Json> = Vec::new();
        let mut limit = PAGE;
        loop {
            let (offset, most) = (found.len().saturating_sub(1).to_string(), limit.to_string());
            let range = [("offset", Some(offset.as_str())), ("limit", Some(most.as_str()))];
            let path = with_query(path, &[query, &range].concat());
            let response = self.exchange(&path, Request::builder(), || Ok(full(""))).await?;
            if response.status() == StatusCode::PAYLOAD_TOO_LARGE && limit > MIN_PAGE {
                limit = (limit / 2).max(MIN_PAGE);
                continue;
            }
            let page = self.read_json(self.checked(response, &path).await?).await?;
            let mut data = elements(&page).into_iter();
            if found.last().is_some_and(|last| data.next().is_none_or(|first| identity(&first) != identity(last))) {
                return Ok(None);
            }
            let total = pointer(&page, "/total_count").and_then(|total| total.text().parse::<usize>().ok());
            found.extend(data);
            if total.is_none_or(|total| found.len() >= total) {
                return Ok(Some(found));
            }
        }
    }

    /// Reads the newest elements of an append-only list, at most `most`, as one page of `{data, next_cursor}`.
    ///
    /// # Errors
    /// As of [`Self::call`].
    pub async fn newest(&self, path: &str, query: &[(&str, Option<&str>)], most: usize) -> anyhow::Result<Json> {
        let (mut found, mut cursor): (Vec<Json>, Option<String>) = (Vec::new(), None);
        loop {
            let limit = most.saturating_sub(found.len()).min(CURSOR_PAGE).to_string();
            let range = [("limit", Some(limit.as_str())), ("cursor", cursor.as_deref())];
            let page = self.get(&with_query(path, &[query, &range].concat())).await?;
            found.extend(elements(&page));
            cursor = text_at(&page, "/next_cursor");
            if cursor.is_none() || found.len() >= most {
                break;
            }
        }
        let next = cursor.as_deref().map_or_else(null, Json::string);
        let data = Json::array(found.iter().map(Json::text));
        Ok(Json::object([("data", data.text()), ("next_cursor", next.text())]))
    }

    /// Sends a request with a body that may be long and returns the JSON of the response. `build` builds the body.
    ///
    /// # Errors
    /// As of [`Self::send`].
    pub async fn upload(
        &self,
        path: &str,
        request: Builder,
        build: impl FnMut() -> anyhow::Result<RequestBody>,
    ) -> anyhow::Result<Json> {
        let response = self.send(path, request, build).await?;
        self.read_json(response).await
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
        build: impl FnMut() -> anyhow::Result<RequestBody>,
    ) -> anyhow::Result<Response<ReceivedBody>> {
        let response = self.exchange(path, request, build).await?;
        self.checked(response, path).await
    }

    /// Sends a request as [`Self::send`], and returns a response of any status.
    async fn exchange(
        &self,
        path: &str,
        request: Builder,
        mut build: impl FnMut() -> anyhow::Result<RequestBody>,
    ) -> anyhow::Result<Response<ReceivedBody>> {
        let mut parts = request.uri(format!("{}{path}", self.base_path)).body(())?.into_parts().0;
        if let Some(user) = self.context.environment.get("SUDO_USER") {
            parts.headers.insert(SUDO_USER, HeaderValue::from_bytes(user.as_bytes())?);
        }
        let pieces = Arc::new(AtomicU64::new(0));
        let build = || {
            let pieces = Arc::clone(&pieces);
            Ok(observed(build()?, move |_| {
                pieces.fetch_add(1, Ordering::Relaxed);
            }))
        };
        let sending = self.door.send(parts, build);
        let sent = while_active(self.max_silence(), || pieces.load(Ordering::Relaxed), sending).await;
        let response: anyhow::Result<_> = sent.unwrap_or_else(|| bail!("it took too long"));
        response.context("the server did not answer")
    }

    /// Returns the response, or its error.
    async fn checked(&self, response: Response<ReceivedBody>, path: &str) -> anyhow::Result<Response<ReceivedBody>> {
        let status = response.status();
        if status.is_client_error() || status.is_server_error() {
            return Err(self.error_of(response, path).await);
        }
        // Every response of Tollgate has one.
        if !response.headers().contains_key("x-request-id") {
            return Err(self.unexpected(status));
        }
        Ok(response)
    }

    /// Returns the error of a response that this release does not send.
    fn unexpected(&self, status: StatusCode) -> anyhow::Error {
        let server = match &self.door {
            Door::Url { origin, .. } => format!("the server at {origin}{}", self.base_path),
            Door::Socket { .. } | Door::Private(_) => "the server".to_owned(),
        };
        let version = env!("CARGO_PKG_VERSION");
        anyhow!("{server} did not answer as Tollgate {version} does: status {}", status.as_u16())
    }

    /// The longest time without a piece of a body or the head of a response.
    fn max_silence(&self) -> Duration {
        self.context.config.limits.request_timeout + GRACE
    }

    /// Reads the next piece of a response; `None` at its end.
    ///
    /// # Errors
    /// The connection broke, or nothing arrived for too long.
    pub async fn next_piece(&self, content: &mut ReceivedBody) -> anyhow::Result<Option<Bytes>> {
        let piece = before_deadline(self.max_silence(), body::next_piece(content)).await;
        piece.context("the server sends no more")?.map_err(anyhow::Error::from_boxed)
    }

    /// Reads the JSON of a response.
    async fn read_json(&self, response: Response<ReceivedBody>) -> anyhow::Result<Json> {
        let (status, mut content) = (response.status(), response.into_body());
        let mut bytes = Vec::new();
        while let Some(piece) = self.next_piece(&mut content).await.context("the server did not finish its answer")? {
            ensure!(bytes.len() + piece.len() <= MAX_RESPONSE_BYTES, "the answer of the server is too long");
            bytes.extend_from_slice(&piece);
        }
        let text = std::str::from_utf8(&bytes).ok();
        let json = text.and_then(|text| Json::parse(text).ok());
        json.ok_or_else(|| self.unexpected(status))
    }

    /// Returns the error of a response: the server's message, and the candidates of an ambiguous name.
    async fn error_of(&self, response: Response<ReceivedBody>, path: &str) -> anyhow::Error {
        let status = response.status();
        let id = response.headers().get("x-request-id").and_then(|id| id.to_str().ok()).unwrap_or_default().to_owned();
        let body = match self.read_json(response).await {
            Ok(body) => body,
            Err(error) => return error,
        };
        let Some(message) = text_at(&body, "/error/message") else { return self.unexpected(status) };
        if status == 404 && message == "Resource not found" {
            return anyhow!("{} not found", subject(path));
        }
        if status == 404 && message.ends_with("workspace not found") {
            return anyhow!("workspace {:?} not found", parameter(path, "workspace_id").unwrap_or_default());
        }
        if status.is_server_error() {
            let hint = if status == 503 { "; `tollgate status` names the store" } else { "" };
            return anyhow!("{message} (request {id} in the log{hint})");
        }
        match pointer(&body, "/error/metadata/ids").and_then(|ids| ids.elements()) {
            None => anyhow!("{message}"),
            Some(ids) => {
                let ids: Vec<String> = ids.iter().filter_map(Json::as_string).collect();
                anyhow!("{message}: {}", ids.join(", "))
            }
        }
    }

    /// Returns the id of the default workspace, else of the only one that the caller sees.
    ///
    /// # Errors
    /// The caller sees others; or as of [`Self::call`].
    pub async fn default_workspace(&self) -> anyhow::Result<String> {
        let all = elements(&self.list("/workspaces", &[]).await?);
        let is_default = |one: &&Json| pointer(one, "/is_default").is_some_and(|value| value.text() == "true");
        let chosen = all.iter().find(is_default).or_else(|| all.first().filter(|_| all.len() == 1));
        let id = chosen.and_then(|chosen| text_at(chosen, "/id"));
        id.context("name a workspace: the key does not manage the default one")
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
        self.show_text(response, || members(response))
    }

    /// Prints a response as [`Self::show`]; without `--json` also the next useful command, with the text at a JSON
    /// pointer in place of `{}`.
    ///
    /// # Errors
    /// Standard output failed.
    pub fn show_next(&self, response: &Json, command: &str, at: &str) -> anyhow::Result<ExitCode> {
        let name = text_at(response, at).unwrap_or_default();
        self.show_text(response, || {
            with_next(&members(response), &format!("tollgate {}", command.replace("{}", &escape(&name))))
        })
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

/// Returns the id of an element, else the whole.
fn identity(element: &Json) -> String {
    let id = ["/id", "/key_hash"].iter().find_map(|at| text_at(element, at));
    id.unwrap_or_else(|| element.text().to_owned())
}

/// Returns the members of a response's record, one a line.
fn members(response: &Json) -> String {
    record(&pointer(response, "/data").unwrap_or_else(|| response.clone()))
}

/// Waits for the work as long as `count` changes within each `silence`; `None` if it does not.
async fn while_active<T>(silence: Duration, count: impl Fn() -> u64, work: impl Future<Output = T>) -> Option<T> {
    let mut work = pin!(work);
    loop {
        let before = count();
        match before_deadline(silence, &mut work).await {
            None if count() != before => {}
            ended => return ended,
        }
    }
}

/// Returns the value of a parameter of a path.
fn parameter(path: &str, name: &str) -> Option<String> {
    let (_, query) = path.split_once('?')?;
    let value = query.split('&').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='))?;
    Some(percent_decode_str(value).decode_utf8_lossy().into_owned())
}

/// Returns the resource of a path: the preset or the answer of a parameter, or the last collection with an element, and
/// its name. A key's name is left out: it may be a misplaced secret.
fn subject(path: &str) -> String {
    let filters = [("preset", "preset"), ("generation_id", "evidence of answer"), ("guardrail_id", "guardrail")];
    for (name, kind) in filters {
        if let Some(named) = parameter(path, name) {
            return format!("{kind} {named:?}");
        }
    }
    let path = path.split('?').next().unwrap_or_default();
    let segments: Vec<&str> = path.split('/').filter(|segment| !segment.is_empty()).collect();
    let model = match segments[..] {
        ["model" | "models", author, slug, ..] => Some(format!("{author}/{slug}")),
        ["model", name] => Some(name.to_owned()),
        _ => None,
    };
    if let Some(name) = model {
        return format!("model {:?}", percent_decode_str(&name).decode_utf8_lossy());
    }
    let is_collection = |name: &str| name.ends_with('s') && name != "assignments";
    let named = segments.windows(2).rev().find(|pair| is_collection(pair[0])).map(|pair| (pair[0], pair[1]));
    let (collection, name) = named.unwrap_or_else(|| (segments.last().copied().unwrap_or("resource"), ""));
    let kind = collection.strip_suffix('s').unwrap_or(collection);
    let name = percent_decode_str(name).decode_utf8_lossy();
    match &*name {
        "" => format!("{path} below --url (another base path, or another server)"),
        _ if collection == "keys" => kind.to_owned(),
        id if id.parse::<Uuid>().is_ok() || id.parse::<u32>().is_ok() => format!("{kind} {id}"),
        name => format!("{kind} {name:?}"),
    }
}

/// Returns a name as a segment of a path.
pub fn segment(name: &str) -> String {
    utf8_percent_encode(name, RESERVED).to_string()
}

/// Returns the name of a key. A secret is replaced by its hash.
pub fn key_name(name: &str) -> String {
    name.parse::<ApiKeySecret>().map_or_else(|_| name.to_owned(), |secret| secret.hash().to_string())
}

/// Returns the name of a key as a segment of a path.
pub fn key_segment(name: &str) -> String {
    segment(&key_name(name))
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

/// Returns the members of an object with those of `changes`, which have precedence.
pub fn merged(base: Option<&Json>, changes: &Json) -> Json {
    let mut members = base.and_then(Json::members).unwrap_or_default();
    for (name, value) in changes.members().unwrap_or_default() {
        members.retain(|(other, _)| *other != name);
        members.push((name, value));
    }
    Json::object(members.iter().map(|(name, value)| (name.as_str(), value.text())))
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
            ("/keys", "/keys below --url (another base path, or another server)"),
            ("/model/acme/judge", "model \"acme/judge\""),
            ("/model/nope/", "model \"nope\""),
            ("/models/acme/judge/endpoints", "model \"acme/judge\""),
            ("/evidence?limit=1&preset=a%20b", "preset \"a b\""),
            ("/labels?generation_id=gen-dec-a&question=q", "evidence of answer \"gen-dec-a\""),
            ("/observability/destinations/d", "destination \"d\""),
            ("/keys?guardrail_id=g", "guardrail \"g\""),
        ] {
            assert_eq!(subject(path), expected, "{path}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn work_ends_after_silence_only() {
        let count = AtomicU64::new(0);
        let second = Duration::from_secs(1);
        let work = async |pieces: u32, silence: Duration| {
            for _ in 0..pieces {
                tokio::time::sleep(second / 2).await;
                count.fetch_add(1, Ordering::Relaxed);
            }
            tokio::time::sleep(silence).await;
        };
        let ended = async |pieces, silence| {
            while_active(second, || count.load(Ordering::Relaxed), work(pieces, silence)).await.is_some()
        };
        assert!(ended(0, second / 2).await);
        assert!(ended(100, second / 2).await, "longer than one silence, with pieces");
        assert!(!ended(0, second * 2).await);
        assert!(!ended(3, second * 4).await);
    }

    #[test]
    fn parameter_is_decoded() {
        let path = with_query("/usage", &[("a_workspace_id", Some("x")), ("workspace_id", Some("a b&c"))]);
        assert_eq!(parameter(&path, "workspace_id").as_deref(), Some("a b&c"));
        assert_eq!((parameter("/usage", "workspace_id"), parameter(&path, "key")), (None, None));
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
