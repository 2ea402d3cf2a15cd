//! Tests a provider with one small call.

use std::sync::Arc;
use std::time::Duration;

use super::{DecisionProvider, NeverDisconnects, ProviderCall, SentBytes};
use crate::json::Json;
use crate::pricing::ReportedUsage;
use crate::question::{
    AnswerRules, Answers, ChoiceOption, ProviderInput, Question, QuestionKind, QuestionType, Questions,
};
use crate::routing::{AttemptFailure, AttemptFailureKind, Endpoint};
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

/// Returns a question of the first type that the endpoint supports.
fn question(endpoint: &Endpoint) -> Option<Question> {
    let text = "Is this a test?";
    let (kind, json) = if endpoint.supports_type(QuestionType::Noul) {
        let json = Json::object([("type", "\"noul\""), ("instructions", Json::string(text).text())]);
        (QuestionKind::Noul { when_true: None, when_false: None }, json)
    } else if endpoint.supports_type(QuestionType::Choice) {
        let meanings = [("yes", Json::string("it is a test")), ("no", Json::string("it is not a test"))];
        let criteria = Json::object(meanings.iter().map(|(name, meaning)| (*name, meaning.text())));
        let options = meanings.map(|(name, meaning)| ChoiceOption::new(name, Some(meaning))).into();
        (QuestionKind::Choice { options }, with_criteria("\"choice\"", text, &criteria))
    } else if endpoint.supports_type(QuestionType::Score) {
        let levels = ["it is no test", "it is a test"].map(Json::string);
        let criteria = Json::array(levels.iter().map(Json::text));
        (QuestionKind::Score { levels: levels.into() }, with_criteria("\"score\"", text, &criteria))
    } else {
        return None;
    };
    Some(Question { name: NAME.to_owned(), json, instructions: Some(Json::string(text)), kind })
}

fn with_criteria(of_type: &str, text: &str, criteria: &Json) -> Json {
    Json::object([("type", of_type), ("instructions", Json::string(text).text()), ("criteria", criteria.text())])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decision::{MockDecisionProvider, ProviderAnswer};
    use crate::routing::Wire;
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
