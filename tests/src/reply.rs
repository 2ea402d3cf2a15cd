//! An HTTP response, and what tests expect of it.

use anyhow::{Context as _, Result};
use bytes::Bytes;
use http::HeaderMap;
use serde_json::Value;

/// An HTTP response.
#[derive(Debug, Clone)]
pub struct Reply {
    /// The status.
    pub status: u16,
    /// The headers.
    pub headers: HeaderMap,
    /// The whole body.
    pub body: Bytes,
}

impl Reply {
    /// Parses the body as JSON.
    pub fn json(&self) -> Result<Value> {
        serde_json::from_slice(&self.body).with_context(|| format!("{} is not JSON: {}", self.status, self.text()))
    }

    /// Returns the body as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// Returns a header as text; empty if it is missing.
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
    }

    /// Returns the JSON body of a 200 response; any other status is an error.
    pub fn ok(&self) -> Result<Value> {
        anyhow::ensure!(self.status == 200, "{} instead of 200: {}", self.status, self.text());
        anyhow::ensure!(!self.header("x-request-id").is_empty(), "a 200 without an x-request-id");
        self.json()
    }

    /// Returns the envelope of an error response after checks: the status and the code are equal, the message exists,
    /// and the metadata contains the request id of the header.
    pub fn envelope(&self, status: u16) -> Result<Value> {
        anyhow::ensure!(self.status == status, "{} instead of {status}: {}", self.status, self.text());
        let body = self.json()?;
        let error = &body["error"];
        anyhow::ensure!(error["code"] == status, "error.code is not the status {status}: {body}");
        anyhow::ensure!(error["message"].as_str().is_some_and(|text| !text.is_empty()), "no message: {body}");
        let request_id = self.header("x-request-id");
        anyhow::ensure!(!request_id.is_empty(), "no x-request-id beside {body}");
        anyhow::ensure!(error["metadata"]["request_id"] == request_id, "another request than {request_id}: {body}");
        anyhow::ensure!(self.header("content-type").starts_with("application/json"), "the envelope is not JSON");
        let known = ["error", "service_metadata", "user_id"];
        let members = body.as_object().context("the envelope is no object")?;
        anyhow::ensure!(members.keys().all(|name| known.contains(&name.as_str())), "odd members: {body}");
        Ok(body)
    }

    /// Returns the envelope like [`Reply::envelope`] and checks for a part of the message.
    pub fn error(&self, status: u16, message: &str) -> Result<Value> {
        let body = self.envelope(status)?;
        let said = body["error"]["message"].as_str().unwrap_or_default();
        anyhow::ensure!(said.contains(message), "the message does not say {message:?}: {said:?}");
        Ok(body)
    }
}
