//! Tests a provider with one small call.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use super::{DecisionProvider, NeverDisconnects, ProviderCall, SentBytes};
use crate::authority::{Authority, Restricted, Right};
use crate::error::ErrorKind;
use crate::json::{Json, ObjectWriter};
use crate::pricing::ReportedUsage;
use crate::question::{
    AnswerRules, Answers, ChoiceOption, ProviderInput, Question, QuestionKind, QuestionType, Questions,
};
use crate::routing::{AttemptFailure, AttemptFailureKind, Endpoint, EndpointDirectory, ProviderSlug, Wire};
use crate::system::Clock;

/// The name of the only question.
const NAME: &str = "test";
/// The state that the question refers to.
const STATE: &str = "This is a test of the connection.";

/// Sends one small request to an endpoint, without limits, guardrails, throttling or a record. The provider bills it.
pub struct TestProvider {
    provider: Arc<dyn DecisionProvider>,
    clock: Arc<dyn Clock>,
}

/// The result of a test.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProviderTest {
    /// The time from the call to the answer or the failure.
    pub latency: Duration,
    /// The usage that the provider reported, or the failure.
    pub outcome: Result<Option<ReportedUsage>, AttemptFailure>,
}

impl TestProvider {
    /// Creates the use case.
    pub fn new(provider: Arc<dyn DecisionProvider>, clock: Arc<dyn Clock>) -> Self {
        Self { provider, clock }
    }

    /// Makes one attempt with a question of the first type that the endpoint supports, and validates the answer as that
    /// of a request. An endpoint of boxes only is rejected without a call.
    pub async fn execute(&self, endpoint: &Arc<Endpoint>) -> ProviderTest {
        let began = self.clock.monotonic();
        let outcome = match question(endpoint) {
            Some(question) => self.call(endpoint, question).await,
            None => Err(AttemptFailure::new(
                AttemptFailureKind::RejectedByProvider,
                "the endpoint supports no question without an image",
            )),
        };
        ProviderTest { latency: self.clock.monotonic().saturating_sub(began), outcome }
    }

    async fn call(
        &self,
        endpoint: &Arc<Endpoint>,
        question: Question,
    ) -> Result<Option<ReportedUsage>, AttemptFailure> {
        let input = ProviderInput::new(Questions::from_typed(vec![question]), Some(Json::string(STATE)));
        let input = Arc::new(input);
        let call = ProviderCall {
            endpoint: Arc::clone(endpoint),
            provider_input: Arc::clone(&input),
            timeout: endpoint.attempt_timeout,
            client: Arc::new(NeverDisconnects),
            sent: SentBytes::default(),
        };
        let answer = self.provider.decide(call).await?;
        match Answers::check(&input.questions, &answer.answers, AnswerRules::of(endpoint)) {
            Ok(_) => Ok(answer.usage),
            Err(detail) => Err(AttemptFailure {
                upstream_status: Some(200),
                usage: answer.usage,
                ..AttemptFailure::new(AttemptFailureKind::InvalidResponse, detail)
            }),
        }
    }
}

/// Tests the configured providers for a caller.
pub struct TestProviders {
    endpoints: Arc<EndpointDirectory>,
    wires: HashMap<ProviderSlug, Wire>,
    test: TestProvider,
}

/// An error of testing a provider.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TestProviderError {
    /// The caller lacks the right.
    #[error(transparent)]
    Restricted(#[from] Restricted),
    /// The provider is not configured.
    #[error("provider not found")]
    NotFound,
    /// No endpoint tells the model.
    #[error("no endpoint uses the provider {0}; name a model")]
    ModelRequired(ProviderSlug),
}

impl TestProviderError {
    /// Returns the meaning of the error.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Restricted(restricted) => restricted.kind(),
            Self::NotFound => ErrorKind::NotFound,
            Self::ModelRequired(_) => ErrorKind::InvalidRequest,
        }
    }
}

impl TestProviders {
    /// Creates the use case. `wires` are those of the configured providers, with or without an endpoint.
    pub fn new(endpoints: Arc<EndpointDirectory>, wires: HashMap<ProviderSlug, Wire>, test: TestProvider) -> Self {
        Self { endpoints, wires, test }
    }

    /// Tests a provider, paused or not, and returns the endpoint that was called.
    ///
    /// # Errors
    /// The caller lacks [`Right::Unrestricted`]; see [`test_endpoint`].
    pub async fn execute(
        &self,
        by: &Authority,
        slug: &str,
        model: Option<&str>,
    ) -> Result<(Arc<Endpoint>, ProviderTest), TestProviderError> {
        by.check(Right::Unrestricted)?;
        let slug: ProviderSlug = slug.parse().map_err(|_| TestProviderError::NotFound)?;
        let endpoint = test_endpoint(&self.endpoints, &slug, model, self.wires.get(&slug).copied())?;
        let test = self.test.execute(&endpoint).await;
        Ok((endpoint, test))
    }
}

/// Returns the endpoint that a test of a provider calls: the first one of the model, by its name in the catalogue or at
/// the provider. A model without an endpoint is called over `wire`, which is that of a configured provider.
///
/// # Errors
/// The provider is not configured, or it has no endpoint and no model is given.
pub fn test_endpoint(
    endpoints: &EndpointDirectory,
    provider: &ProviderSlug,
    model: Option<&str>,
    wire: Option<Wire>,
) -> Result<Arc<Endpoint>, TestProviderError> {
    let mut of_provider = endpoints.all().iter().filter(|endpoint| endpoint.provider == *provider).peekable();
    if of_provider.peek().is_none() && wire.is_none() {
        return Err(TestProviderError::NotFound);
    }
    let Some(model) = model else {
        return of_provider.next().cloned().ok_or_else(|| TestProviderError::ModelRequired(provider.clone()));
    };
    let is_named = |endpoint: &&Arc<Endpoint>| endpoint.model.as_str() == model || *endpoint.upstream_model == *model;
    if let Some(found) = of_provider.find(is_named) {
        return Ok(Arc::clone(found));
    }
    // Only the sandbox has endpoints without a wire of its own.
    let wire = wire.ok_or(TestProviderError::NotFound)?;
    let id = "test/model".parse().map_err(|_| TestProviderError::NotFound)?;
    Ok(Arc::new(Endpoint::new(id, provider.clone(), wire, model)))
}

/// Returns a question of the first type that the endpoint supports.
fn question(endpoint: &Endpoint) -> Option<Question> {
    let text = "Is this a test?";
    let (kind, json) = if endpoint.supports_type(QuestionType::Noul) {
        let json = ObjectWriter::with_type("noul").text("instructions", text);
        (QuestionKind::Noul { when_true: None, when_false: None }, json)
    } else if endpoint.supports_type(QuestionType::Choice) {
        let meanings = [("yes", "it is a test"), ("no", "it is not a test")];
        let criteria = meanings.iter().fold(ObjectWriter::new(), |all, (name, meaning)| all.text(name, meaning)).end();
        let options = meanings.map(|(name, meaning)| ChoiceOption::new(name, Some(Json::string(meaning)))).into();
        let json = ObjectWriter::with_type("choice").text("instructions", text).json("criteria", &criteria);
        (QuestionKind::Choice { options }, json)
    } else if endpoint.supports_type(QuestionType::Score) {
        let levels = ["it is no test", "it is a test"];
        let json = ObjectWriter::with_type("score").text("instructions", text).texts("criteria", levels);
        (QuestionKind::Score { levels: levels.map(Json::string).into() }, json)
    } else {
        return None;
    };
    Some(Question { name: NAME.to_owned(), json: json.finish(), instructions: Some(Json::string(text)), kind })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decision::{MockDecisionProvider, ProviderAnswer};
    use crate::testing::FixedClock;

    fn endpoint(types: &[QuestionType]) -> Arc<Endpoint> {
        let usual = Endpoint::new("a/b".parse().unwrap(), "p".parse().unwrap(), Wire::SystemOne, "m");
        Arc::new(Endpoint { question_types: Some(types.to_vec()), ..usual })
    }

    async fn test(types: &[QuestionType], answers: &'static str) -> ProviderTest {
        let mut provider = MockDecisionProvider::new();
        provider.expect_decide().returning(move |_| {
            let usage = Some(ReportedUsage { input_tokens: 7, output_tokens: 1 });
            Ok(ProviderAnswer { answers: Json::parse(answers).unwrap(), usage, sent_bytes: 9 })
        });
        TestProvider::new(Arc::new(provider), Arc::new(FixedClock::default())).execute(&endpoint(types)).await
    }

    #[tokio::test]
    async fn execute_validates_answer_of_supported_type() {
        let usage = Ok(Some(ReportedUsage { input_tokens: 7, output_tokens: 1 }));
        for (question_type, answers) in [
            (QuestionType::Noul, r#"{"test":{"type":"noul","noul":0.9}}"#),
            (QuestionType::Choice, r#"{"test":{"type":"choice","choice":"yes","probabilities":{"yes":0.9,"no":0.1}}}"#),
            (QuestionType::Score, r#"{"test":{"type":"score","score":0.9}}"#),
        ] {
            assert_eq!(test(&[question_type], answers).await.outcome, usage, "{question_type:?}");
        }
        let invalid = test(&[QuestionType::Noul], r#"{"test":{"type":"noul","noul":2}}"#).await.outcome.unwrap_err();
        assert_eq!((invalid.kind, invalid.upstream_status), (AttemptFailureKind::InvalidResponse, Some(200)));
        let unsupported = test(&[QuestionType::Box], "{}").await.outcome.unwrap_err();
        assert_eq!(unsupported.kind, AttemptFailureKind::RejectedByProvider);
    }

    #[test]
    fn test_endpoint_is_found_by_any_name_of_its_model() {
        let endpoint = |model: &str, provider: &str, upstream: &str| {
            Endpoint::new(model.parse().unwrap(), provider.parse().unwrap(), Wire::SystemOne, upstream)
        };
        let all = [endpoint("a/x", "other", "x"), endpoint("a/b", "p", "one"), endpoint("a/c", "p", "two")];
        let directory = EndpointDirectory::new(all.to_vec());
        let found = |slug: &str, model: Option<&str>, wire| {
            test_endpoint(&directory, &slug.parse().unwrap(), model, wire).map(|found| found.upstream_model.to_string())
        };
        assert_eq!(found("p", None, None).unwrap(), "one");
        assert_eq!(found("p", Some("a/c"), None).unwrap(), "two");
        assert_eq!(found("p", Some("two"), None).unwrap(), "two");
        assert_eq!(found("p", Some("new"), Some(Wire::ChatCompletions)).unwrap(), "new");
        assert_eq!(found("p", Some("x"), None), Err(TestProviderError::NotFound));
        assert_eq!(found("q", None, None), Err(TestProviderError::NotFound));
        let unused = found("q", None, Some(Wire::SystemOne)).unwrap_err();
        assert_eq!(unused.to_string(), "no endpoint uses the provider q; name a model");
    }

    #[tokio::test]
    async fn execute_returns_failure_of_provider() {
        let mut provider = MockDecisionProvider::new();
        provider.expect_decide().times(1).returning(|call| {
            assert_eq!(call.timeout, call.endpoint.attempt_timeout);
            Err(AttemptFailure::from_status(401, None))
        });
        let test = TestProvider::new(Arc::new(provider), Arc::new(FixedClock::default()));
        let failure = test.execute(&endpoint(&[QuestionType::Noul])).await.outcome.unwrap_err();
        assert_eq!(failure.kind, AttemptFailureKind::ProviderAuthFailed);
    }
}
