//! A request and its response.

use serde_json::Value;

use crate::commands::prelude::*;
use crate::commands::server_client::{ServerClient, ServerResponse};

/// A request of the demo.
#[derive(Debug, Clone)]
pub struct Request {
    /// The point that it demonstrates, in a line.
    pub title: String,
    /// `GET` or `POST`.
    pub method: http::Method,
    /// Path and query.
    pub path: String,
    /// The key's secret.
    pub key: Option<String>,
    /// A JSON body.
    pub body: Option<String>,
}

/// A request and its response.
#[derive(Debug, Clone)]
pub struct Exchange {
    /// The request.
    pub request: Request,
    /// The response's status.
    pub status: u16,
    /// The response's `x-request-id`.
    pub request_id: Option<String>,
    /// The response's body.
    pub body: String,
}

/// A request and its response in the `--json` document, with a masked key.
#[derive(Serialize)]
pub struct ExchangeView {
    title: String,
    method: String,
    path: String,
    status: u16,
    request: Option<Value>,
    response: Option<Value>,
}

impl Exchange {
    /// Sends a request and reads the response.
    ///
    /// # Errors
    /// No response was received.
    pub async fn perform(client: &ServerClient, request: Request) -> anyhow::Result<Self> {
        let answer = client.send(&request.method, &request.path, request.key.as_deref(), request.body.clone()).await;
        let ServerResponse { status, request_id, body, .. } =
            answer.with_context(|| format!("{} {} was not answered", request.method, request.path))?;
        Ok(Self { request, status, request_id, body })
    }

    /// Returns the response's body as JSON.
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_default()
    }

    /// Returns the text for a terminal.
    pub fn text(&self) -> String {
        let request = &self.request;
        let mut sent = vec![format!("{} {}", request.method, request.path)];
        sent.extend(request.key.as_ref().map(|key| format!("Authorization: Bearer {}", masked(key))));
        if let Some(body) = &request.body {
            sent.push("Content-Type: application/json\n".to_owned());
            sent.push(indent(body));
        }
        let mut received = vec![self.status.to_string()];
        received.extend(self.request_id.as_ref().map(|id| format!("x-request-id: {id}")));
        received.push(format!("\n{}", indent(&self.body)));
        format!("\n── {}\n\n{}\n{}", request.title, quoted("> ", &sent), quoted("< ", &received))
    }

    /// Returns the view for the `--json` document.
    pub fn view(&self) -> ExchangeView {
        ExchangeView {
            title: self.request.title.clone(),
            method: self.request.method.to_string(),
            path: self.request.path.clone(),
            status: self.status,
            request: self.request.body.as_deref().and_then(|body| serde_json::from_str(body).ok()),
            response: serde_json::from_str(&self.body).ok(),
        }
    }
}

/// Masks a key as listings do: the first and last three characters remain.
fn masked(key: &str) -> String {
    key.parse::<domain::secret::ApiKeySecret>().map_or_else(|_| "…".to_owned(), |secret| secret.label())
}

/// Prefixes every line with a mark and appends an empty line.
fn quoted(mark: &str, parts: &[String]) -> String {
    let mut text = String::new();
    for line in parts.iter().flat_map(|part| part.split('\n')) {
        text.push_str(if line.is_empty() { mark.trim_end() } else { mark });
        text.push_str(line);
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn key_is_masked_in_text_and_view() {
        let secret = domain::secret::ApiKeySecret::from_random([0xab; 32]).expose().to_owned();
        let request = Request {
            title: "t".into(),
            method: http::Method::POST,
            path: "/p".into(),
            key: Some(secret.clone()),
            body: Some("{\"a\":1}".into()),
        };
        let exchange = Exchange { request, status: 200, request_id: Some("r".into()), body: "{\"b\":[]}".into() };
        let text = exchange.text();
        assert!(text.contains("> POST /p") && text.contains("sk-tg-v1-aba...bab") && text.contains("< 200"), "{text}");
        assert!(!text.contains(&secret) && !serde_json::to_string(&exchange.view()).unwrap().contains(&secret));
    }
}
