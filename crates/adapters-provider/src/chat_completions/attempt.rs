//! One attempt: answers the questions of a provider input by one of the two methods.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use domain::json::Json;
use domain::question::Question;
use domain::routing::{AttemptFailure, AttemptFailureKind, ChatMethod, ChatSettings};
use tokio::sync::Notify;
use tokio::time::Instant;
use wires::canonical::refusal;
use wires::chat::provider_request::RequestedOutput;
use wires::provider::MalformedAnswer;

use super::answers::{Method, answer};
use super::calls::{CallError, Calls, unusable_answer};
use super::labels::{self, Labels, capacity, opens_tag};
use super::prompt::{self, Document, outcomes};
use super::structured;
use super::tournament::Tournament;

const NO_LOGPROBS: &str = "the provider returned no log-probabilities";
const NOT_ANSWERING: &str = "the model was not answering the question";

/// Tolerance for rounding errors in the label probability.
const EPSILON: f64 = 1e-9;

/// One attempt.
pub(super) struct Attempt<'a> {
    pub(super) calls: Calls<'a>,
    pub(super) questions: &'a [Question],
    pub(super) document: Document,
}

/// The progress of one question through its label rounds.
struct QuestionProgress {
    tournament: Tournament,
    /// The smallest label probability of all rounds.
    label_mass: f64,
    refused: bool,
}

/// A label round: the index of the question and the outcomes to compare.
type LabelRound = (usize, Vec<usize>);

/// The result of a label round.
enum RoundOutcome {
    Weights { weights: Vec<f64>, label_mass: f64 },
    Refused,
}

impl Attempt<'_> {
    /// Returns one answer per question, in order.
    pub(super) async fn answers(&self) -> Result<Vec<Json>, AttemptFailure> {
        let known = self.reports_logprobs();
        match (self.settings().method, known) {
            (ChatMethod::Structured, _) | (ChatMethod::Auto, Some(false)) => Ok(self.answer_structured().await?),
            (ChatMethod::Logprobs, _) | (ChatMethod::Auto, Some(true) | None) => match self.answer_by_labels().await {
                Err(CallError::NoLogprobs(failure)) if self.settings().method == ChatMethod::Auto => {
                    // An error may concern this request only; a 200 without log-probabilities is a property of the
                    // model.
                    if failure.upstream_status == Some(200) {
                        self.remember_logprobs(false);
                    }
                    let answers = self.answer_structured().await?;
                    self.remember_logprobs(false);
                    Ok(answers)
                }
                ended => Ok(ended?),
            },
        }
    }

    async fn answer_structured(&self) -> Result<Vec<Json>, CallError> {
        let prompt = prompt::probabilities_prompt(&self.document, self.questions);
        let reply = self.calls.ask(&prompt, &structured::probabilities_output(self.questions)).await?;
        if reply.refused {
            return Ok(self.questions.iter().map(|_| refusal()).collect());
        }
        let stated = structured::read(&reply.content, self.questions).map_err(malformed)?;
        let pairs = self.questions.iter().zip(&stated);
        let made = pairs.map(|(question, weights)| self.answer(question, weights, Method::Structured));
        made.collect::<Result<_, _>>().map_err(malformed)
    }

    /// Runs the pending label rounds of all questions until every question has a distribution.
    async fn answer_by_labels(&self) -> Result<Vec<Json>, CallError> {
        let capacity = capacity(self.settings().top_logprobs);
        let start = |question: &Question| QuestionProgress {
            tournament: Tournament::new(outcomes(&question.kind), capacity),
            label_mass: 1.0,
            refused: false,
        };
        let mut all_progress: Vec<QuestionProgress> = self.questions.iter().map(start).collect();
        loop {
            let rounds: Vec<LabelRound> =
                (0..).zip(&all_progress).flat_map(|(place, progress)| progress.pending_rounds(place)).collect();
            if rounds.is_empty() {
                break;
            }
            let mut outcomes = self.run_label_rounds(&rounds).await?.into_iter();
            for progress in &mut all_progress {
                progress.take(&mut outcomes)?;
            }
        }
        let pairs = self.questions.iter().zip(all_progress);
        pairs.map(|(question, progress)| self.finish(question, &progress)).collect()
    }

    /// Runs the label rounds. For an unknown model the first one runs alone, so that the others use what it learnt.
    async fn run_label_rounds(&self, rounds: &[LabelRound]) -> Result<Vec<RoundOutcome>, CallError> {
        let first = usize::from(self.reports_logprobs() != Some(true));
        let mut outcomes = Vec::with_capacity(rounds.len());
        for round in rounds.iter().take(first) {
            outcomes.push(self.run_label_round(round).await?);
        }
        let rest = rounds.get(first..).unwrap_or_default();
        outcomes.extend(
            run_concurrently(rest.len(), self.calls.totals.deadline(), |place| self.run_label_round(&rest[place]))
                .await?,
        );
        Ok(outcomes)
    }

    async fn run_label_round(&self, (question, offered): &LabelRound) -> Result<RoundOutcome, CallError> {
        if offered.len() < 2 {
            return Ok(RoundOutcome::Weights { weights: vec![1.0; offered.len()], label_mass: 1.0 });
        }
        let question = &self.questions[*question];
        let labels = Labels::of(&question.kind).label(offered);
        let prompt = prompt::label_prompt(&self.document, question, offered);
        let output = RequestedOutput::Label { top_logprobs: self.settings().top_logprobs };
        let reply = self.calls.ask(&prompt, &output).await?;
        if reply.refused {
            return Ok(RoundOutcome::Refused);
        }
        let Some(tokens) = &reply.first_token else { return Err(CallError::NoLogprobs(unusable_answer(NO_LOGPROBS))) };
        let reading = labels::read(tokens, &labels);
        let least = f64::from(self.settings().min_label_probability_milli) / 1000.0;
        if reading.mass + EPSILON < least {
            let failure = AttemptFailure { kind: AttemptFailureKind::NoUsableAnswer, ..unusable_answer(NOT_ANSWERING) };
            // A reasoning model that cannot be switched off never begins with a label.
            let thinks = reply.reasoned || opens_tag(tokens);
            let unknown = self.reports_logprobs().is_none();
            return Err(if thinks && unknown { CallError::NoLogprobs(failure) } else { CallError::Failed(failure) });
        }
        self.remember_logprobs(true);
        Ok(RoundOutcome::Weights { weights: reading.weights, label_mass: reading.mass })
    }

    fn finish(&self, question: &Question, progress: &QuestionProgress) -> Result<Json, CallError> {
        if progress.refused {
            return Ok(refusal());
        }
        let weights = progress.tournament.weights().ok_or(NO_LABEL_PROBABILITY).map_err(malformed)?;
        self.answer(question, &weights, Method::Logprobs { label_mass: progress.label_mass }).map_err(malformed)
    }

    fn answer(&self, question: &Question, weights: &[f64], method: Method) -> Result<Json, MalformedAnswer> {
        answer(question, weights, self.settings().temperature_milli, method)
    }

    fn settings(&self) -> ChatSettings {
        self.calls.endpoint.chat
    }

    /// Returns whether the model reports log-probabilities, if known.
    fn reports_logprobs(&self) -> Option<bool> {
        self.calls.memory.recall(&self.calls.endpoint.upstream_model).logprobs
    }

    fn remember_logprobs(&self, logprobs: bool) {
        self.calls.memory.learn(&self.calls.endpoint.upstream_model, |learned| {
            learned.logprobs = Some(logprobs && learned.logprobs != Some(false));
        });
    }
}

const NO_LABEL_PROBABILITY: MalformedAnswer = MalformedAnswer::Answer("its labels have no probability");

fn malformed(error: MalformedAnswer) -> CallError {
    CallError::Failed(unusable_answer(error.to_string()))
}

impl QuestionProgress {
    fn pending_rounds(&self, question: usize) -> Vec<LabelRound> {
        if self.refused {
            return Vec::new();
        }
        self.tournament.contests().into_iter().map(|offered| (question, offered)).collect()
    }

    /// Consumes the results of this question's label rounds.
    fn take(&mut self, outcomes: &mut impl Iterator<Item = RoundOutcome>) -> Result<(), CallError> {
        let count = self.pending_rounds(0).len();
        if count == 0 {
            return Ok(());
        }
        let mut round = Vec::with_capacity(count);
        for outcome in outcomes.take(count) {
            match outcome {
                RoundOutcome::Refused => self.refused = true,
                RoundOutcome::Weights { weights, label_mass } => {
                    self.label_mass = self.label_mass.min(label_mass);
                    round.push(weights);
                }
            }
        }
        if self.refused {
            return Ok(());
        }
        self.tournament.record_results(&round).ok_or(NO_LABEL_PROBABILITY).map_err(malformed)
    }
}

/// The time that running calls have to end after the first failure. A call that is cancelled may be billed, so that the
/// bound of the whole attempt would be charged; a fallback waits no longer than this.
const GRACE: Duration = Duration::from_secs(2);
/// The part of the attempt's time that the first failure keeps, so that it is reported, and not a deadline.
const MARGIN: Duration = Duration::from_millis(50);

/// Runs jobs `0..count`, at most 8 at once, and returns their results in order. After the first failure no job begins,
/// and the running ones are cancelled after [`GRACE`], or just before the deadline.
async fn run_concurrently<T, E, F>(
    count: usize,
    deadline: Option<Instant>,
    job: impl Fn(usize) -> F,
) -> Result<Vec<T>, E>
where
    F: Future<Output = Result<T, E>>,
{
    let next = AtomicUsize::new(0);
    let made: Mutex<Vec<(usize, T)>> = Mutex::new(Vec::with_capacity(count));
    let (first_failure, failed) = (Mutex::new(None), Notify::new());
    let lane = || async {
        loop {
            let place = next.fetch_add(1, Ordering::Relaxed);
            if place >= count {
                return;
            }
            match Box::pin(job(place)).await {
                Ok(one) => lock(&made).push((place, one)),
                Err(error) => {
                    next.store(count, Ordering::Relaxed);
                    lock(&first_failure).get_or_insert(error);
                    failed.notify_one();
                }
            }
        }
    };
    let lanes = async { tokio::join!(lane(), lane(), lane(), lane(), lane(), lane(), lane(), lane()) };
    let end_of_grace = async {
        failed.notified().await;
        let left = deadline.map_or(GRACE, |deadline| deadline.saturating_duration_since(Instant::now() + MARGIN));
        tokio::time::sleep(left.min(GRACE)).await;
    };
    tokio::select! {
        _ = lanes => {}
        () = end_of_grace => {}
    }
    if let Some(error) = lock(&first_failure).take() {
        return Err(error);
    }
    let mut made = std::mem::take(&mut *lock(&made));
    made.sort_by_key(|(place, _)| *place);
    Ok(made.into_iter().map(|(_, one)| one).collect())
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn run_concurrently_runs_eight_jobs_and_keeps_order() {
        let (running, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let made = run_concurrently(100, None, |place| {
            let (running, most) = (&running, &most);
            async move {
                most.fetch_max(running.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                tokio::time::sleep(Duration::from_millis(place as u64 % 7)).await;
                running.fetch_sub(1, Ordering::SeqCst);
                Ok::<_, ()>(place * 2)
            }
        });
        assert_eq!(made.await.unwrap(), (0..100).map(|place| place * 2).collect::<Vec<_>>());
        assert_eq!(most.into_inner(), 8);
    }

    #[tokio::test(start_paused = true)]
    async fn run_concurrently_lets_running_jobs_end_after_failure() {
        let (begun, ended) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let made = run_concurrently(100, None, |place| {
            begun.fetch_add(1, Ordering::SeqCst);
            let ended = &ended;
            async move {
                tokio::time::sleep(Duration::from_millis(1 + place as u64 * 100)).await;
                ended.fetch_add(1, Ordering::SeqCst);
                if place % 2 == 0 { Err(place) } else { Ok(place) }
            }
        });
        assert_eq!(made.await, Err(0), "the first failure");
        assert_eq!((begun.into_inner(), ended.into_inner()), (8, 8));
    }

    #[tokio::test(start_paused = true)]
    async fn run_concurrently_reports_failure_before_deadline() {
        let deadline = Instant::now() + Duration::from_secs(1);
        let job =
            |place| async move { if place == 0 { Err(place) } else { std::future::pending::<Result<(), _>>().await } };
        assert_eq!(tokio::time::timeout_at(deadline, run_concurrently(9, Some(deadline), job)).await, Ok(Err(0)));
    }

    #[tokio::test(start_paused = true)]
    async fn run_concurrently_stops_at_first_failure() {
        let begun = AtomicUsize::new(0);
        let ended = run_concurrently(100, None, |place| {
            begun.fetch_add(1, Ordering::SeqCst);
            async move {
                if place == 3 {
                    // The other seven begin first.
                    tokio::time::sleep(Duration::from_millis(1)).await;
                    return Err(place);
                }
                std::future::pending::<Result<(), _>>().await
            }
        });
        assert_eq!(ended.await, Err(3));
        assert_eq!(begun.into_inner(), 8);
    }
}
