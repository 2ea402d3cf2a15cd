//! One attempt at one endpoint.

use std::pin::Pin;
use std::task::{Context, Poll};

use futures_util::future::BoxFuture;

use super::attempts::{AttemptIndex, AttemptLog};
use super::call::CallRunner;
use crate::decision::{ProviderAnswer, ProviderCall};
use crate::pricing::ReportedUsage;
use crate::question::{AnswerRules, Answers, ProviderInput};
use crate::routing::{AttemptFailure, AttemptFailureKind, Candidate};

/// An attempt that ended.
pub(super) type EndedAttempt = (Candidate, Result<Answers, AttemptFailure>);
/// An attempt under way.
pub(super) type RunningAttempt<'a> = BoxFuture<'a, EndedAttempt>;

/// The attempts of a sub-request under way: one, or two with a hedge. A wake polls all of them.
#[derive(Default)]
pub(super) struct RunningAttempts<'a>(Vec<(AttemptIndex, RunningAttempt<'a>)>);

impl<'a> RunningAttempts<'a> {
    pub(super) fn push(&mut self, index: AttemptIndex, attempt: RunningAttempt<'a>) {
        self.0.push((index, attempt));
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Cancels all attempts and returns their positions in the log.
    pub(super) fn cancel(&mut self) -> Vec<AttemptIndex> {
        self.0.drain(..).map(|(index, _)| index).collect()
    }

    /// Returns the first attempt that ends; `None` if none is under way.
    pub(super) fn next(&mut self) -> FirstEnded<'_, 'a> {
        FirstEnded(self)
    }
}

/// See [`RunningAttempts::next`].
pub(super) struct FirstEnded<'r, 'a>(&'r mut RunningAttempts<'a>);

impl Future for FirstEnded<'_, '_> {
    type Output = Option<EndedAttempt>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let RunningAttempts(attempts) = &mut *self.0;
        for (position, (_, attempt)) in attempts.iter_mut().enumerate() {
            if let Poll::Ready(ended) = attempt.as_mut().poll(cx) {
                drop(attempts.remove(position));
                return Poll::Ready(Some(ended));
            }
        }
        if attempts.is_empty() { Poll::Ready(None) } else { Poll::Pending }
    }
}

impl CallRunner {
    /// Calls the provider, checks its answer, and logs the end.
    pub(super) fn run_attempt<'a>(
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
                    log.end(index, Ok((usage, sent_bytes)), now);
                    Ok(answers)
                }
                Err(failure) => {
                    log.end(index, Err(&failure), now);
                    self.failures.log(&candidate, &failure, now);
                    Err(failure)
                }
            };
            (candidate, result)
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
