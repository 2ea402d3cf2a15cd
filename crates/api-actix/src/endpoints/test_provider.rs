//! `POST /providers/{slug}/test`: makes one small call with the configured credential.

use domain::decision::{ProviderTest, TestProviderError};
use domain::routing::Endpoint;
use serde::Deserialize;

use crate::endpoints::prelude::*;
use crate::http::members::{MemberNames, Members, invalid};

pub(crate) const ROUTE: Route =
    Route::management(Post, "/providers/{slug}/test", tags::OPERATION, handler!(handle, payload))
        .operation("testProvider", "Test a provider")
        .description(
            "Asks one small question, also of a paused provider, without limits, guardrails and a record. The \
             provider bills the call. A failed test is 200 with `ok: false`.",
        )
        .body(BodySchema::of::<TestRequest>)
        .answer(
            || BodySchema::data::<ProviderTestReport>("ProviderTestResponse", "The result of a test."),
            "The result",
        )
        .complete(Operation::optional_body);

/// The longest name of a model, in characters.
const MAX_MODEL_CHARS: usize = 256;

/// The test of a provider.
#[derive(ToSchema)]
#[schema(as = TestProviderRequest)]
#[expect(dead_code, reason = "the schema of a body that is read by hand")]
struct TestRequest {
    /// The model, by its name in the catalogue or at the provider. Default: that of the provider's first endpoint.
    #[schema(max_length = 256)]
    model: Option<String>,
}

async fn handle(call: &Call<'_>, by: &Authority, payload: Payload) -> Outcome {
    let body = call.read_optional_json(payload).await?;
    let model = body.as_ref().map(JsonBody::text).transpose()?.map(read_model).transpose()?.flatten();
    let (endpoint, test) = call.routed().test_providers.execute(by, &call.id()?, model.as_deref()).await?;
    Ok(HttpResponse::Ok().json(Data { data: ProviderTestReport::new(&endpoint, &test) }))
}

fn read_model(text: &str) -> Result<Option<String>, ApiError> {
    let members = Members::read(text, MemberNames { writable: &["model"], read_only: &[], neutral: &[] })?;
    let Some(model) = members.present("model") else { return Ok(None) };
    let model = model.as_string().filter(|model| (1..=MAX_MODEL_CHARS).contains(&model.chars().count()));
    let fault = format!("must be a string of 1 to {MAX_MODEL_CHARS} characters");
    model.map(Some).ok_or_else(|| invalid("model", &fault))
}

/// The result of a test of a provider.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = ProviderTest)]
pub struct ProviderTestReport {
    /// True if the provider gave a valid answer.
    pub ok: bool,
    /// The provider's slug.
    pub provider: String,
    /// The wire.
    pub wire: String,
    /// The model's name at the provider.
    pub upstream_model: String,
    /// `answered`, or the outcome of the failed attempt as in usage records.
    pub outcome: String,
    /// The HTTP status of the provider, if it sent one.
    #[schema(required)]
    pub upstream_status: Option<u16>,
    /// The time from the call to the answer or the failure, in milliseconds.
    pub latency_ms: f64,
    /// The input tokens that the provider reported.
    #[schema(required)]
    pub input_tokens: Option<u64>,
    /// The output tokens that the provider reported.
    #[schema(required)]
    pub output_tokens: Option<u64>,
    /// The name of the cause, if it is one that an operator can mend.
    #[serde(default)]
    #[schema(required)]
    pub cause: Option<String>,
    /// The reason of the failure.
    #[schema(required)]
    pub detail: Option<String>,
    /// The provider's error code, at most 64 characters.
    #[schema(required)]
    pub provider_code: Option<String>,
    /// The provider's error message, at most 256 characters, with keys masked.
    #[schema(required)]
    pub provider_message: Option<String>,
}

impl ProviderTestReport {
    /// Creates the report of a test.
    pub fn new(endpoint: &Endpoint, test: &ProviderTest) -> Self {
        let usage = test.outcome.as_ref().map_or_else(|failure| failure.usage, |usage| *usage);
        let failure = test.outcome.as_ref().err();
        let reported = failure.and_then(|failure| failure.provider_error.as_deref());
        Self {
            ok: failure.is_none(),
            provider: endpoint.provider.to_string(),
            wire: endpoint.wire.as_str().to_owned(),
            upstream_model: endpoint.upstream_model.to_string(),
            outcome: failure.map_or("answered", |failure| failure.kind.as_str()).to_owned(),
            upstream_status: failure.map_or(Some(200), |failure| failure.upstream_status),
            latency_ms: (test.latency.as_secs_f64() * 1e6).round() / 1e3,
            input_tokens: usage.map(|usage| usage.input_tokens),
            output_tokens: usage.map(|usage| usage.output_tokens),
            cause: failure.and_then(|failure| failure.cause).map(|cause| cause.as_str().to_owned()),
            detail: failure.map(|failure| failure.detail.clone()),
            provider_code: reported.and_then(|error| error.code.clone()),
            provider_message: reported.and_then(|error| error.message.clone()),
        }
    }
}

api_error!(TestProviderError {
    pass: Restricted;
    kind: NotFound;
    said: ModelRequired;
});

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn model_is_a_short_string() {
        let model = |text: &str| read_model(text).map_err(|error| error.text().to_owned());
        assert_eq!(model("{}"), Ok(None));
        assert_eq!(model(r#"{"model":null}"#), Ok(None));
        assert_eq!(model(r#"{"model":"a\u002fb"}"#), Ok(Some("a/b".to_owned())));
        let long = format!("\"{}\"", "x".repeat(257));
        for value in ["1", "\"\"", "[\"a\"]", &long] {
            let expected = "model: must be a string of 1 to 256 characters";
            assert_eq!(model(&format!(r#"{{"model":{value}}}"#)).unwrap_err(), expected, "{value}");
        }
        assert!(model(r#"{"modle":"x"}"#).unwrap_err().contains("nearest known member"));
    }
}
