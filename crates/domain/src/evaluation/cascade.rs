//! The cascade of two models: the cheaper one answers first.

use std::collections::{BTreeMap, BTreeSet};

use super::model::Groups;
use super::{EvaluatedAnswer, Group};
use crate::statistics::{
    CascadePrediction, CascadeQuestion, CascadeRequest, EscalatedQuestions, PriceRatio, Probability, Proportion,
    predict_cascade,
};

/// The thresholds of the predictions, in hundredths.
const THRESHOLDS: [u8; 11] = [50, 55, 60, 65, 70, 75, 80, 85, 90, 95, 99];

/// A model by a provider, whose answers to all questions of a request belong together.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct CascadeModel {
    /// The resolved model.
    pub model: String,
    /// The provider.
    pub provider: String,
}

/// The cascade of a first and a last model.
#[derive(Debug, Clone, PartialEq)]
pub struct Cascade {
    /// The version of the preset.
    pub preset_version: u32,
    /// The first model: the cheaper one.
    pub first: CascadeModel,
    /// The last model.
    pub last: CascadeModel,
    /// The questions that the last model receives of an escalated request.
    pub escalated_questions: EscalatedQuestions,
    /// The errors of the last model alone.
    pub last_alone: Proportion,
    /// The predictions by threshold, lowest first. Empty if the last model costs nothing.
    pub predictions: Vec<(Probability, CascadePrediction)>,
    /// The prediction at the tested thresholds of the first model. A question without one always goes to the last model.
    /// `None` if no question has one.
    pub tested: Option<CascadePrediction>,
}

/// The tested thresholds of groups.
pub(super) type TestedThresholds<'a> = BTreeMap<&'a Group, Probability>;

/// The requests that two models answered, with the cost of each in picodollars.
#[derive(Default)]
struct Pair {
    requests: Vec<CascadeRequest>,
    costs: (i128, i128),
    receives_all: bool,
}

/// The answers of a model by item and question.
type Requests<'a> = BTreeMap<&'a str, BTreeMap<&'a str, &'a EvaluatedAnswer>>;

impl Cascade {
    /// Predicts the cascades of all pairs of models, from the items that both answered and whose questions all have
    /// labels.
    pub(super) fn of_groups(groups: &Groups<'_>, tested: &TestedThresholds<'_>, tolerance: usize) -> Vec<Self> {
        let mut models: BTreeMap<(u32, CascadeModel), Requests<'_>> = BTreeMap::new();
        let mut asked: BTreeMap<(u32, &str), BTreeSet<&str>> = BTreeMap::new();
        for (group, items) in groups {
            let (model, provider) = (group.origin.model.clone(), group.origin.provider.clone());
            let requests = models.entry((group.preset_version, CascadeModel { model, provider })).or_default();
            for (item, answer) in items {
                requests.entry(item).or_default().insert(&group.question, answer);
                asked.entry((group.preset_version, item)).or_default().insert(&group.question);
            }
        }
        let mut cascades = Vec::new();
        for (number, ((version, first), requests)) in models.iter().enumerate() {
            for ((other_version, second), others) in models.iter().skip(number + 1) {
                if version != other_version {
                    continue;
                }
                let is_whole = |item: &str, questions: usize| {
                    asked.get(&(*version, item)).is_some_and(|asked| asked.len() == questions)
                };
                let pair_of = |first, last| Pair::of(first, last, tested, tolerance, is_whole);
                let mut pair = (first, second, pair_of(requests, others));
                if pair.2.costs.0 > pair.2.costs.1 {
                    pair = (second, first, pair_of(others, requests));
                }
                let (first, last, pair) = pair;
                if !pair.requests.is_empty() {
                    cascades.push(pair.predict(*version, first, last));
                }
            }
        }
        cascades
    }

    /// Returns true if the cascade costs less than the last model alone, without more errors on these labels.
    pub fn pays(&self, prediction: &CascadePrediction) -> bool {
        let share = |errors: Proportion| errors.share().unwrap_or(1.0);
        prediction.relative_cost.is_some_and(|cost| cost < 1.0) && share(prediction.risk) <= share(self.last_alone)
    }

    /// Returns the cheapest threshold at which the cascade pays, chosen on these labels; `None` if it does not pay.
    pub fn cheapest(&self) -> Option<&(Probability, CascadePrediction)> {
        let paying = self.predictions.iter().filter(|(_, prediction)| self.pays(prediction));
        let cost = |prediction: &CascadePrediction| prediction.relative_cost.unwrap_or(f64::INFINITY);
        paying.min_by(|(_, one), (_, other)| cost(one).total_cmp(&cost(other)))
    }
}

impl Pair {
    fn of(
        first: &Requests<'_>,
        last: &Requests<'_>,
        thresholds: &TestedThresholds<'_>,
        tolerance: usize,
        is_whole: impl Fn(&str, usize) -> bool,
    ) -> Self {
        let mut pair = Self::default();
        for (item, answers) in first {
            let Some(others) = last.get(item).filter(|others| is_whole(item, others.len())) else { continue };
            let question = |(name, answer): (&&str, &&EvaluatedAnswer)| {
                Some(CascadeQuestion {
                    tokens: answer.size?.question,
                    score: answer.score,
                    tested: thresholds.get(&answer.group).copied(),
                    is_error_of_first: answer.labelled(tolerance)?.is_error,
                    is_error_of_last: others.get(name)?.labelled(tolerance)?.is_error,
                })
            };
            let questions: Option<Vec<CascadeQuestion>> =
                if is_whole(item, answers.len()) { answers.iter().map(question).collect() } else { None };
            let (Some(questions), Some(answer), Some(other)) =
                (questions, answers.values().next(), others.values().next())
            else {
                continue;
            };
            let state_tokens = answer.size.map(|size| size.state).unwrap_or_default();
            pair.requests.push(CascadeRequest { state_tokens, questions });
            pair.costs.0 += i128::from(answer.cost.pico());
            pair.costs.1 += i128::from(other.cost.pico());
            pair.receives_all |= other.escalated_questions == EscalatedQuestions::All;
        }
        pair
    }

    fn predict(self, preset_version: u32, first: &CascadeModel, last: &CascadeModel) -> Cascade {
        let questions = || self.requests.iter().flat_map(|request| &request.questions);
        let errors = questions().filter(|question| question.is_error_of_last).count();
        let last_alone = Proportion::new(errors, questions().count()).unwrap_or_default();
        #[expect(clippy::cast_precision_loss, reason = "a ratio is printed with a few digits")]
        let ratio = PriceRatio::new(self.costs.0 as f64 / self.costs.1 as f64);
        let escalated_questions = if self.receives_all { EscalatedQuestions::All } else { EscalatedQuestions::Open };
        let predict = |ratio, threshold| {
            let accepts = |question: &CascadeQuestion| question.is_accepted_at(Some(threshold));
            predict_cascade(&self.requests, ratio, escalated_questions, accepts)
        };
        let tested = ratio.filter(|_| questions().any(|question| question.tested.is_some())).map(|ratio| {
            let accepts = |question: &CascadeQuestion| question.is_accepted_at(question.tested);
            predict_cascade(&self.requests, ratio, escalated_questions, accepts)
        });
        let thresholds =
            THRESHOLDS.iter().filter_map(|hundredths| Probability::new(f64::from(*hundredths) / 100.0).ok());
        let predictions = ratio
            .into_iter()
            .flat_map(|ratio| thresholds.clone().map(move |threshold| (threshold, predict(ratio, threshold))));
        Cascade {
            preset_version,
            first: first.clone(),
            last: last.clone(),
            escalated_questions,
            last_alone,
            predictions: predictions.collect(),
            tested,
        }
    }
}
