//! Changes over HTTP: their precondition, their repetition, and the response with its entity tag and cache policy.

use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use actix_web::http::header::{CACHE_CONTROL, CONTENT_TYPE, ETAG, HeaderValue};
use domain::authority::Authority;
use domain::change::{Change, Respond};
use domain::error::ErrorKind;
use domain::repetition::{Repetition, RepetitionScope, StoredRepetition, StoredResponse};
use domain::version::Version;
use serde::Serialize;
use sha2::{Digest, Sha256};
use utoipa::ToSchema;

use super::call::Call;
use super::conditions::{idempotency_key, if_match};
use super::error::ApiError;
use super::response::Data;
use super::routes::Outcome;

/// The cache policy of a response with a secret.
const SECRET_CACHE_POLICY: HeaderValue = HeaderValue::from_static("private, no-store");

/// The response of an operation on one record, ready to be sent and to be stored.
pub(crate) struct RecordResponse {
    status: StatusCode,
    body: String,
    version: Option<Version>,
    /// The id of the record whose secret the body contains.
    secret_of: Option<String>,
}

impl RecordResponse {
    /// Renders `{"data":…}`.
    pub(crate) fn data<T: Serialize + ToSchema>(status: StatusCode, data: T) -> Self {
        Self::json(status, &Data { data })
    }

    /// Renders a body.
    pub(crate) fn json(status: StatusCode, body: &(impl Serialize + ToSchema)) -> Self {
        // Views hold only strings, numbers and lists of them, so this never fails.
        let body = serde_json::to_string(body).unwrap_or_default();
        Self { status, body, version: None, secret_of: None }
    }

    /// Adds the entity tag of the record.
    pub(crate) fn version(self, version: Version) -> Self {
        Self { version: Some(version), ..self }
    }

    /// Marks the body as one with the secret of this record. It is never stored.
    pub(crate) fn secret_of(self, id: &impl ToString) -> Self {
        Self { secret_of: Some(id.to_string()), ..self }
    }

    /// Creates the response. This is the only place that sets the entity tag of a record.
    pub(crate) fn respond(self) -> HttpResponse {
        let mut response = HttpResponse::with_body(self.status, self.body).map_into_boxed_body();
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if self.secret_of.is_some() {
            headers.insert(CACHE_CONTROL, SECRET_CACHE_POLICY);
        }
        if let Some(etag) = self.version.and_then(|version| HeaderValue::from_str(&format!("\"{version}\"")).ok()) {
            headers.insert(ETAG, etag);
        }
        response
    }

    fn to_stored(&self) -> StoredResponse {
        match &self.secret_of {
            Some(id) => StoredResponse::Secret { id: id.clone() },
            None => {
                StoredResponse::Content { status: self.status.as_u16(), body: self.body.clone(), version: self.version }
            }
        }
    }

    fn from_stored(stored: StoredResponse) -> Result<Self, ApiError> {
        match stored {
            StoredResponse::Content { status, body, version } => {
                let status = StatusCode::from_u16(status)
                    .map_err(|error| ApiError::from_kind(ErrorKind::Internal).caused_by(error))?;
                Ok(Self { status, body, version, secret_of: None })
            }
            StoredResponse::Secret { id } => Err(ApiError::from_kind(ErrorKind::Conflict)
                .message(
                    "The first request with this Idempotency-Key returned a secret, which is not stored. Rotate the \
                     key to get another one.",
                )
                .metadata("id", id)),
        }
    }
}

impl Call<'_> {
    /// Returns a change with the precondition of the request, for methods that are repeatable by themselves.
    pub(crate) fn change<'a, R>(&self, by: &'a Authority) -> Result<Change<'a, R>, ApiError> {
        Ok(Change::conditional(by, if_match(self.request.headers())?))
    }

    /// Runs a POST, once for each `Idempotency-Key`, and responds. `body` is that of the request, `render` creates the
    /// response to the result of `execute`. Of concurrent requests with one key the losers get the response of the one
    /// that took effect.
    pub(crate) async fn post<R, E>(
        &self,
        by: &Authority,
        body: &str,
        execute: impl AsyncFnOnce(&Change<'_, R>) -> Result<R, E>,
        render: impl Fn(&R) -> RecordResponse + Send + Sync,
    ) -> Outcome
    where
        ApiError: From<E>,
    {
        let change = self.change(by)?;
        let scope = by.scope().view();
        let execute = async |repetition: Option<(&Repetition, Respond<'_, R>)>| match repetition {
            Some((request, respond)) => execute(&change.stored_as(request.clone(), respond)).await,
            None => execute(&change).await,
        };
        self.once((&by.actor().name, scope.text()), body, execute, render).await
    }

    /// Runs a request as [`Self::post`], of a caller with a name and a scope.
    pub(crate) async fn once<R, E>(
        &self,
        (caller, caller_scope): (&str, &str),
        body: &str,
        execute: impl AsyncFnOnce(Option<(&Repetition, Respond<'_, R>)>) -> Result<R, E>,
        render: impl Fn(&R) -> RecordResponse + Send + Sync,
    ) -> Outcome
    where
        ApiError: From<E>,
    {
        let Some(key) = idempotency_key(self.request.headers())? else {
            let result = execute(None).await?;
            return Ok(render(&result).respond());
        };
        let route = format!("{} {}", self.request.method(), self.pattern);
        let scope = RepetitionScope { caller: caller.to_owned(), route, key };
        let request = Repetition { scope, fingerprint: self.fingerprint(caller_scope, body) };
        if let Some(response) = self.repeated(&request).await? {
            return Ok(response.respond());
        }
        let stored = |result: &R| render(result).to_stored();
        let outcome = match execute(Some((&request, &stored))).await {
            Ok(result) => self.stored(&request, render(&result)).await,
            Err(error) => Err(error.into()),
        };
        match outcome {
            Ok(response) => Ok(response.respond()),
            // The request may have lost against its repetition, or its commit may have had no answer.
            Err(error) => match self.repeated(&request).await {
                Ok(Some(response)) => Ok(response.respond()),
                Err(conflict) if conflict.is_conflict() => Err(conflict),
                Ok(None) | Err(_) => Err(error),
            },
        }
    }

    /// Returns the response to a request that succeeded: that of its repetition, which may have taken effect first, so
    /// that this one changed nothing. Changes have stored theirs; the response to a request without a change is stored
    /// here.
    async fn stored(&self, request: &Repetition, response: RecordResponse) -> Result<RecordResponse, ApiError> {
        if response.secret_of.is_some() {
            return Ok(response);
        }
        if let Some(first) = self.repeated(request).await? {
            return Ok(first);
        }
        let stored = StoredRepetition { request: request.clone(), response: response.to_stored() };
        self.gateway.services.repetitions.store(&stored).await?;
        Ok(response)
    }

    /// Returns the stored response to an earlier request with this key.
    async fn repeated(&self, request: &Repetition) -> Result<Option<RecordResponse>, ApiError> {
        let found = self.gateway.services.repetitions.find(&request.scope).await?;
        let Some(StoredRepetition { request: first, response }) = found else { return Ok(None) };
        if first.fingerprint != request.fingerprint {
            return Err(ApiError::from_kind(ErrorKind::Conflict).message(
                "The Idempotency-Key was used for another request: its path or body differs, or the rights of its API key.",
            ));
        }
        RecordResponse::from_stored(response).map(Some)
    }

    /// Hashes the scope of the caller, path, query and body, each after its length. A key that was narrowed does not get
    /// the response to what it did before.
    fn fingerprint(&self, caller_scope: &str, body: &str) -> [u8; 32] {
        let mut digest = Sha256::new();
        for part in [caller_scope, self.request.path(), self.request.query_string(), body] {
            digest.update(u64::try_from(part.len()).unwrap_or(u64::MAX).to_le_bytes());
            digest.update(part);
        }
        digest.finalize().into()
    }
}
