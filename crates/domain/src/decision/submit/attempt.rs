//! One attempt at one endpoint.

use std::pin::Pin;
use std::task::{Context, Poll};

use futures_util::future::BoxFuture;

use super::attempts::{AttemptIndex, AttemptLog};
use super::call::CallRunner;
use crate::decision::ProviderAnswer;
use crate::pricing::ReportedUsage;
use crate::question::{AnswerRules, Answers, ProviderInput};
use crate::routing::{AttemptFailure, AttemptFailureKind, Candidate};

/// An attempt that ended.
pub(super) type EndedAttempt<'a> = (&'a Candidate, Result<Answers, AttemptFailure>);

/// An attempt under way.
pub(super) struct RunningAttempt<'a> {
    pub(super) index: AttemptIndex,
    pub(super) candidate: &'a Candidate,
    pub(super) input: &'a ProviderInput,
    pub(super) call: BoxFuture<'a, Result<ProviderAnswer, AttemptFailure>>,
}

/// The attempts of a sub-request under way: one, or two with a hedge. A wake polls all of them.
pub(super) struct RunningAttempts<'a> {
    runner: &'a CallRunner,
    log: &'a AttemptLog<'a>,
    attempts: [Option<RunningAttempt<'a>>; 2],
}

impl<'a> RunningAttempts<'a> {
    pub(super) fn new(runner: &'a CallRunner, log: &'a AttemptLog<'a>) -> Self {
        Self { runner, log, attempts: [None, None] }
    }

    /// Adds an attempt; there is at most one other.
    pub(super) fn push(&mut self, attempt: RunningAttempt<'a>) {
        if let Some(free) = self.attempts.iter_mut().find(|attempt| attempt.is_none()) {
            *free = Some(attempt);
        }
    }

    pub(super) fn len(&self) -> usize {
        self.attempts.iter().flatten().count()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Cancels all attempts, which lost. Their calls are dropped before their bytes are counted, because they may send
    /// more.
    pub(super) fn cancel(&mut self) {
        for RunningAttempt { index, call, .. } in self.attempts.iter_mut().filter_map(Option::take) {
            drop(call);
            self.log.lose(index);
        }
    }

    /// Returns the first attempt that ends; `None` if none is under way.
    pub(super) fn next(&mut self) -> FirstEnded<'_, 'a> {
        FirstEnded(self)
    }
}

/// See [`RunningAttempts::next`].
pub(super) struct FirstEnded<'r, 'a>(&'r mut RunningAttempts<'a>);

impl<'a> Future for FirstEnded<'_, 'a> {
    type Output = Option<EndedAttempt<'a>>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let RunningAttempts { runner, log, attempts } = &mut *self.0;
        for place in attempts.iter_mut() {
            let Some(mut attempt) = place.take() else { continue };
            let Poll::Ready(answer) = attempt.call.as_mut().poll(cx) else {
                *place = Some(attempt);
                continue;
            };
            return Poll::Ready(Some(runner.end_attempt(attempt, answer, log)));
        }
        if self.0.is_empty() { Poll::Ready(None) } else { Poll::Pending }
    }
}

impl CallRunner {
    /// Checks the provider's answer, and logs the end of the attempt.
    fn end_attempt<'a>(
        &self,
        RunningAttempt { index, candidate, input, .. }: RunningAttempt<'a>,
        answer: Result<ProviderAnswer, AttemptFailure>,
        log: &AttemptLog<'_>,
    ) -> EndedAttempt<'a> {
        let checked = answer.and_then(|answer| check_answer(input, candidate, answer));
        let now = self.time.monotonic();
        let result = match checked {
            Ok((answers, usage, sent_bytes)) => {
                log.end(index, Ok((usage, sent_bytes)), now);
                Ok(answers)
            }
            Err(failure) => {
                log.end(index, Err(&failure), now);
                self.failures.log(candidate, &failure, now);
                Err(failure)
            }
        };
        (candidate, result)
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
