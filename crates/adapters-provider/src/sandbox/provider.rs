//! The provider: answers calls in this process.

use std::time::Duration;

use async_trait::async_trait;
use domain::decision::{DecisionProvider, ProviderAnswer, ProviderCall};
use domain::error::ErrorKind;
use domain::pricing::ReportedUsage;
use domain::question::{Attachments, ProviderInput, QuestionKind};
use domain::routing::{AttemptFailure, AttemptFailureKind, Endpoint};
use wires::provider::UnsupportedByWire;

use super::answer::answers;
use super::models::{self, Behaviour};

/// The wait of a simulated overload.
const RETRY_AFTER: Duration = Duration::from_secs(1);
/// Bytes that count as one token.
const BYTES_PER_TOKEN: usize = 4;

/// The sandbox provider. Equal requests get equal answers.
#[derive(Debug, Clone, Copy, Default)]
pub struct SandboxProvider;

impl SandboxProvider {
    /// Creates the provider.
    pub fn new() -> Self {
        Self
    }

    /// Returns the endpoints of the models that answer.
    pub fn endpoints() -> Vec<Endpoint> {
        models::endpoints()
    }

    /// Returns the endpoints of the models that simulate failures.
    pub fn error_endpoints() -> Vec<Endpoint> {
        models::error_endpoints()
    }
}

#[async_trait]
impl DecisionProvider for SandboxProvider {
    async fn decide(&self, call: ProviderCall) -> Result<ProviderAnswer, AttemptFailure> {
        match models::behaviour(&call.endpoint.upstream_model) {
            Some(Behaviour::Decide) => {
                fits(&call)?;
                Ok(decide(&call))
            }
            Some(Behaviour::Fail(failure)) => Err(simulated(failure)),
            None => Err(AttemptFailure::new(AttemptFailureKind::HttpError, "the sandbox has no such model")),
        }
    }

    /// Returns the bytes that it reads and counts tokens from.
    fn outbound_bytes(&self, _: &Endpoint, provider_input: &ProviderInput) -> u64 {
        count(bytes_read(provider_input))
    }
}

fn bytes_read(provider_input: &ProviderInput) -> usize {
    provider_input.questions.json.text().len() + provider_input.state.as_ref().map_or(0, |state| state.text().len())
}

fn count(n: usize) -> u64 {
    u64::try_from(n).unwrap_or(u64::MAX)
}

/// Checks that the input consists of text.
fn fits(call: &ProviderCall) -> Result<(), UnsupportedByWire> {
    let typed = call.provider_input.questions.typed.as_deref().unwrap_or_default();
    if let Some(question) = typed.iter().find(|question| question.kind == QuestionKind::Box) {
        return Err(UnsupportedByWire::QuestionType(question.kind.question_type()));
    }
    if call.provider_input.attachments == Attachments::None { Ok(()) } else { Err(UnsupportedByWire::Attachments) }
}

fn decide(call: &ProviderCall) -> ProviderAnswer {
    let (questions, state) = (&call.provider_input.questions, call.provider_input.state.as_ref());
    let bytes = bytes_read(&call.provider_input);
    let asked = questions.count();
    ProviderAnswer {
        answers: answers(questions, state),
        usage: Some(ReportedUsage {
            input_tokens: count(bytes.div_ceil(BYTES_PER_TOKEN)),
            output_tokens: count(asked),
        }),
        sent_bytes: count(bytes),
    }
}

fn simulated(failure: ErrorKind) -> AttemptFailure {
    use ErrorKind::{ProviderOverloaded, RateLimited, Unavailable};
    let waits = matches!(failure, RateLimited | Unavailable | ProviderOverloaded);
    AttemptFailure {
        retry_after: waits.then_some(RETRY_AFTER),
        ..AttemptFailure::new(AttemptFailureKind::Simulated(failure), "a sandbox model that exists to fail")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use domain::decision::{DecisionDraft, NeverDisconnects, SentBytes};
    use domain::error::ErrorKind;
    use domain::json::Json;
    use std::sync::Arc;

    async fn call(upstream_model: &str, questions: &str, state: &str) -> Result<ProviderAnswer, AttemptFailure> {
        let mut endpoint = SandboxProvider::endpoints().remove(0);
        endpoint.upstream_model = upstream_model.into();
        let draft = DecisionDraft {
            model: Json::parse("\"m\"").ok(),
            questions: Json::parse(questions).ok(),
            state: Json::parse(state).ok(),
            ..DecisionDraft::default()
        };
        let call = ProviderCall {
            endpoint: Arc::new(endpoint),
            provider_input: draft.check().unwrap().provider_input,
            timeout: Duration::from_secs(1),
            client: Arc::new(NeverDisconnects),
            sent: SentBytes::default(),
        };
        SandboxProvider::new().decide(call).await
    }

    #[tokio::test]
    async fn usage_counts_bytes_and_questions() {
        let (questions, state) =
            (r#"{"a":{"type":"noul","instructions":"x"},"b":{"type":"score","criteria":["c"]}}"#, "\"y\"");
        for model in ["decider", "decider:free"] {
            let answer = call(model, questions, state).await.unwrap();
            let usage = answer.usage.unwrap();
            assert_eq!(answer.sent_bytes, (questions.len() + state.len()) as u64);
            assert_eq!(usage.input_tokens, answer.sent_bytes.div_ceil(4));
            assert_eq!(usage.output_tokens, 2);
        }
        assert_eq!(call("decider", "\"?\"", "null").await.unwrap().usage.unwrap().output_tokens, 1);
    }

    #[tokio::test]
    async fn failing_models_return_their_failure_at_once() {
        for (model, kind, waits) in [
            ("error-402", ErrorKind::InsufficientCredits, false),
            ("error-403", ErrorKind::Forbidden, false),
            ("error-429", ErrorKind::RateLimited, true),
            ("error-502", ErrorKind::ProviderFailure, false),
            ("error-503", ErrorKind::Unavailable, true),
            ("error-524", ErrorKind::TimedOut, false),
            ("error-529", ErrorKind::ProviderOverloaded, true),
        ] {
            let failure = call(model, "\"?\"", "null").await.unwrap_err();
            let AttemptFailureKind::Simulated(simulated) = failure.kind else {
                panic!("{model}: {:?}", failure.kind);
            };
            assert_eq!(simulated, kind, "{model}");
            assert_eq!(failure.retry_after, waits.then_some(Duration::from_secs(1)), "{model}");
        }
    }

    #[tokio::test]
    async fn decide_rejects_boxes_and_attachments() {
        let boxed = r#"{"a":{"type":"noul","instructions":"?"},"b":{"type":"box","instructions":"?"}}"#;
        let failure = call("decider", boxed, "\"s\"").await.unwrap_err();
        assert_eq!((failure.kind, failure.sent_bytes), (AttemptFailureKind::RejectedByProvider, 0));
        assert_eq!(failure.detail, "the provider was not asked: its wire has no box questions");
    }

    #[tokio::test]
    async fn decide_fails_for_unknown_model() {
        assert_eq!(call("nobody", "\"?\"", "null").await.unwrap_err().kind, AttemptFailureKind::HttpError);
    }
}
