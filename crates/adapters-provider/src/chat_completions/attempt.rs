//! One attempt: answers the questions of a provider input by one of the two methods.

use domain::decision::Question;
use domain::json::Json;
use domain::routing::{AttemptFailure, AttemptFailureKind, ChatMethod, ChatSettings};

use super::answers::{Method, answer};
use super::calls::{Calls, Setback, unbelieved};
use super::labels::{Labels, capacity};
use super::lanes::in_lanes;
use super::logprobs::{self, opens_a_tag};
use super::prompt::{self, Document, outcomes};
use super::request::{self, Wanted};
use super::structured;
use super::tournament::Tournament;
use crate::canonical::refusal;
use crate::wire::MalformedAnswer;

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
struct Course {
    tournament: Tournament,
    /// The smallest label probability of all rounds.
    label_mass: f64,
    refused: bool,
}

/// A label round: the index of the question and the outcomes to compare.
type Contest = (usize, Vec<usize>);

/// The result of a label round.
enum Outcome {
    Weights { weights: Vec<f64>, label_mass: f64 },
    Refused,
}

impl Attempt<'_> {
    /// Returns one answer per question, in order.
    pub(super) async fn answers(&self) -> Result<Vec<Json>, AttemptFailure> {
        let told = self.known();
        match (self.settings().method, told) {
            (ChatMethod::Structured, _) | (ChatMethod::Auto, Some(false)) => Ok(self.by_statement().await?),
            (ChatMethod::Logprobs, _) | (ChatMethod::Auto, Some(true) | None) => match self.by_labels().await {
                Err(Setback::NoLogprobs(failure)) if self.settings().method == ChatMethod::Auto => {
                    // An error may concern this request only; a 200 without log-probabilities is a property of the
                    // model.
                    if failure.upstream_status == Some(200) {
                        self.learn(false);
                    }
                    let answers = self.by_statement().await?;
                    self.learn(false);
                    Ok(answers)
                }
                ended => Ok(ended?),
            },
        }
    }

    async fn by_statement(&self) -> Result<Vec<Json>, Setback> {
        let prompt = prompt::stated(&self.document, self.questions);
        let reply = self.calls.ask(&prompt, &request::stated(self.questions)).await?;
        if reply.refused {
            return Ok(self.questions.iter().map(|_| refusal()).collect());
        }
        let stated = structured::read(&reply.content, self.questions).map_err(malformed)?;
        let pairs = self.questions.iter().zip(&stated);
        let made = pairs.map(|(question, weights)| self.answer(question, weights, Method::Structured));
        made.collect::<Result<_, _>>().map_err(malformed)
    }

    /// Runs the pending label rounds of all questions until every question has a distribution.
    async fn by_labels(&self) -> Result<Vec<Json>, Setback> {
        let capacity = capacity(self.settings().top_logprobs);
        let course = |question: &Question| Course {
            tournament: Tournament::new(outcomes(&question.kind), capacity),
            label_mass: 1.0,
            refused: false,
        };
        let mut courses: Vec<Course> = self.questions.iter().map(course).collect();
        loop {
            let contests: Vec<Contest> =
                (0..).zip(&courses).flat_map(|(place, course)| course.contests(place)).collect();
            if contests.is_empty() {
                break;
            }
            let mut outcomes = self.round(&contests).await?.into_iter();
            for course in &mut courses {
                course.take(&mut outcomes)?;
            }
        }
        let pairs = self.questions.iter().zip(courses);
        pairs.map(|(question, course)| self.ended(question, &course)).collect()
    }

    /// Runs the label rounds. For an unknown model the first one runs alone, so that the others use what it learnt.
    async fn round(&self, contests: &[Contest]) -> Result<Vec<Outcome>, Setback> {
        let alone = usize::from(self.known() != Some(true));
        let mut outcomes = Vec::with_capacity(contests.len());
        for contest in contests.iter().take(alone) {
            outcomes.push(self.contest(contest).await?);
        }
        let rest = contests.get(alone..).unwrap_or_default();
        outcomes.extend(in_lanes(rest.len(), |place| self.contest(&rest[place])).await?);
        Ok(outcomes)
    }

    async fn contest(&self, (question, offered): &Contest) -> Result<Outcome, Setback> {
        if offered.len() < 2 {
            return Ok(Outcome::Weights { weights: vec![1.0; offered.len()], label_mass: 1.0 });
        }
        let question = &self.questions[*question];
        let labels = Labels::of(&question.kind).label(offered);
        let prompt = prompt::one_label(&self.document, question, offered);
        let wanted = Wanted::Label { top_logprobs: self.settings().top_logprobs };
        let reply = self.calls.ask(&prompt, &wanted).await?;
        if reply.refused {
            return Ok(Outcome::Refused);
        }
        let Some(tokens) = &reply.first_token else { return Err(Setback::NoLogprobs(unbelieved(NO_LOGPROBS))) };
        let reading = logprobs::read(tokens, &labels);
        let least = f64::from(self.settings().min_label_probability_milli) / 1000.0;
        if reading.mass + EPSILON < least {
            let failure = AttemptFailure { kind: AttemptFailureKind::NotAnswered, ..unbelieved(NOT_ANSWERING) };
            // A reasoning model that cannot be switched off never begins with a label.
            let thinks = reply.reasoned || opens_a_tag(tokens);
            let unknown = self.known().is_none();
            return Err(if thinks && unknown { Setback::NoLogprobs(failure) } else { Setback::Failed(failure) });
        }
        self.learn(true);
        Ok(Outcome::Weights { weights: reading.weights, label_mass: reading.mass })
    }

    fn ended(&self, question: &Question, course: &Course) -> Result<Json, Setback> {
        if course.refused {
            return Ok(refusal());
        }
        let weights = course.tournament.weights().ok_or(NOT_OVER).map_err(malformed)?;
        self.answer(question, &weights, Method::Logprobs { label_mass: course.label_mass }).map_err(malformed)
    }

    fn answer(&self, question: &Question, weights: &[f64], method: Method) -> Result<Json, MalformedAnswer> {
        answer(question, weights, self.settings().temperature_milli, method)
    }

    fn settings(&self) -> ChatSettings {
        self.calls.endpoint.chat
    }

    /// Returns whether the model reports log-probabilities, if known.
    fn known(&self) -> Option<bool> {
        self.calls.memory.recall(&self.calls.endpoint.upstream_model).logprobs
    }

    fn learn(&self, logprobs: bool) {
        self.calls.memory.learn(&self.calls.endpoint.upstream_model, |learned| {
            learned.logprobs = Some(logprobs && learned.logprobs != Some(false));
        });
    }
}

const NOT_OVER: MalformedAnswer = MalformedAnswer::Answer("its labels have no probability");

fn malformed(fault: MalformedAnswer) -> Setback {
    Setback::Failed(unbelieved(fault.to_string()))
}

impl Course {
    fn contests(&self, question: usize) -> Vec<Contest> {
        if self.refused {
            return Vec::new();
        }
        self.tournament.contests().into_iter().map(|offered| (question, offered)).collect()
    }

    /// Consumes the results of this question's label rounds.
    fn take(&mut self, outcomes: &mut impl Iterator<Item = Outcome>) -> Result<(), Setback> {
        let count = self.contests(0).len();
        if count == 0 {
            return Ok(());
        }
        let mut round = Vec::with_capacity(count);
        for outcome in outcomes.take(count) {
            match outcome {
                Outcome::Refused => self.refused = true,
                Outcome::Weights { weights, label_mass } => {
                    self.label_mass = self.label_mass.min(label_mass);
                    round.push(weights);
                }
            }
        }
        if self.refused {
            return Ok(());
        }
        self.tournament.tell(&round).ok_or(NOT_OVER).map_err(malformed)
    }
}
