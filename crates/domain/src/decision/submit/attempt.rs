//! One attempt at one endpoint.

use std::sync::Arc;

use futures_util::future::BoxFuture;

use super::attempts::{AttemptEnd, AttemptIndex, AttemptLog};
use super::failure_log::FailureLog;
use crate::decision::{DecisionProvider, ProviderAnswer, ProviderCall};
use crate::pricing::ReportedUsage;
use crate::question::{AnswerRules, Answers, ProviderInput};
use crate::routing::{AttemptFailure, AttemptFailureKind, Candidate};
use crate::system::TimeSource;

/// Makes attempts.
pub(super) struct AttemptRunner {
    pub(super) provider: Arc<dyn DecisionProvider>,
    pub(super) time: TimeSource,
    pub(super) failures: FailureLog,
}

/// An attempt that ended.
pub(super) type EndedAttempt = (AttemptIndex, Candidate, Result<Answers, AttemptFailure>);
/// An attempt under way.
pub(super) type RunningAttempt<'a> = BoxFuture<'a, EndedAttempt>;

impl AttemptRunner {
    /// Calls the provider, checks its answer, and logs the end.
    pub(super) fn run<'a>(
        &'a self,
        candidate: Candidate,
        index: AttemptIndex,
        call: ProviderCall,
        input: &'a ProviderInput,
        log: &'a AttemptLog<'a>,
    ) -> RunningAttempt<'a> {
        Box::pin(async move {
            let answer = self.provider.decide(call).await;
            let checked = answer.and_then(|answer| check_answer(input, &candidate, answer));
            let now = self.time.monotonic();
            let result = match checked {
                Ok((answers, usage, sent_bytes)) => {
                    log.end(index, &AttemptEnd::Answered { usage, sent_bytes }, now);
                    Ok(answers)
                }
                Err(failure) => {
                    log.end(index, &AttemptEnd::Failed(&failure), now);
                    self.failures.log(&candidate, &failure, now);
                    Err(failure)
                }
            };
            (index, candidate, result)
        })
    }
}

type CheckedAnswer = (Answers, Option<ReportedUsage>, u64);

/// Checks a provider's answer.
fn check_answer(
    input: &ProviderInput,
    candidate: &Candidate,
    answer: ProviderAnswer,
) -> Result<CheckedAnswer, AttemptFailure> {
    let ProviderAnswer { answers, usage, sent_bytes } = answer;
    let invalid = |fault, usage| AttemptFailure {
        upstream_status: Some(200),
        sent_bytes,
        usage,
        ..AttemptFailure::new(AttemptFailureKind::InvalidResponse, fault)
    };
    if usage.is_some_and(|usage| !candidate.prices.can_charge(usage)) {
        return Err(invalid("the usage exceeds any price", None));
    }
    match Answers::check(&input.questions, &answers, AnswerRules::of(&candidate.endpoint)) {
        Ok(answers) => Ok((answers, usage, sent_bytes)),
        Err(fault) => Err(invalid(fault, usage)),
    }
}
