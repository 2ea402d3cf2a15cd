//! The stages of a preset: a question whose answer one model does not give surely enough goes to the next.

use crate::json::Json;
use crate::question::AnswerValue;
use crate::statistics::{Decision, Probability, largest_probability};

named_enum! {
    /// The fate of an answer that the last stage does not accept.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum Otherwise {
        /// It is the answer.
        Answer = "answer",
        /// The question has no decision; the answer is shown beside.
        Abstain = "abstain",
    }
}

/// The stages of a preset. A question that a stage does not accept goes to the next one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cascade {
    /// The stages, in order.
    pub stages: Vec<CascadeStage>,
    /// The fate of an answer that no stage accepts.
    pub otherwise: Otherwise,
}

/// A stage: a model, and the answers of it that are accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CascadeStage {
    /// The name of the model.
    pub model: String,
    /// The accepted answers; `None` accepts every decision.
    pub accept: Option<Acceptance>,
}

/// The thresholds of a stage: the least scores of accepted answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Acceptance {
    /// As they were written.
    pub json: Json,
    /// By question, and by its decision: yes and no, each option, or each level.
    pub thresholds: Vec<Vec<Probability>>,
}

impl Cascade {
    /// The most stages.
    pub const MAX_STAGES: usize = 4;

    /// Returns the stages as they were written.
    pub(super) fn stages_json(&self) -> Json {
        let stage = |stage: &CascadeStage| {
            let model = Json::string(&stage.model);
            let accept = stage.accept.as_ref().map(|accept| ("accept", accept.json.text()));
            Json::object(std::iter::once(("model", model.text())).chain(accept))
        };
        let stages: Vec<Json> = self.stages.iter().map(stage).collect();
        Json::array(stages.iter().map(Json::text))
    }
}

impl CascadeStage {
    /// Returns true if the answer to the question at this position is accepted, and the threshold that decided. An
    /// answer without a decision is never accepted, one without a score by a stage without thresholds only.
    pub fn judge(&self, position: usize, answer: &AnswerValue) -> (bool, Option<Probability>) {
        let Some(decision) = Decision::from_answer(answer) else { return (false, None) };
        let Some(Acceptance { thresholds, .. }) = &self.accept else { return (true, None) };
        let place = match decision {
            Decision::Noul(yes) => usize::from(!yes),
            Decision::Choice(place) | Decision::Score(place) => place,
        };
        let threshold = thresholds.get(position).and_then(|by_decision| by_decision.get(place)).copied();
        let is_reached = threshold.is_some_and(|least| largest_probability(answer).is_some_and(|score| score >= least));
        (is_reached, threshold)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn probability(number: f64) -> Probability {
        Probability::new(number).unwrap()
    }

    fn stage(thresholds: &[&[f64]]) -> CascadeStage {
        let thresholds = thresholds.iter().map(|all| all.iter().copied().map(probability).collect()).collect();
        CascadeStage { model: "acme/judge".to_owned(), accept: Some(Acceptance { json: Json::object([]), thresholds }) }
    }

    #[test]
    fn judge_compares_the_score_with_the_threshold_of_the_decision() {
        let stage = stage(&[&[0.95, 0.7], &[0.5, 0.9]]);
        let noul = |probability| AnswerValue::Noul { probability };
        for (answer, expected) in [(0.95, true), (0.94, false), (0.3, true), (0.31, false), (0.5, false)] {
            assert_eq!(stage.judge(0, &noul(answer)).0, expected, "{answer}");
        }
        assert_eq!(stage.judge(0, &noul(0.2)), (true, Some(probability(0.7))));
        let choice = |chosen, numbers: Option<[f64; 2]>| AnswerValue::Choice {
            chosen,
            probabilities: numbers.map(Vec::from),
            confidence: Some(1.0),
        };
        assert_eq!(stage.judge(1, &choice(1, Some([0.2, 0.8]))), (false, Some(probability(0.9))));
        assert_eq!(stage.judge(1, &choice(0, Some([0.8, 0.2]))), (true, Some(probability(0.5))));
        assert!(!stage.judge(1, &choice(0, None)).0, "the confidence is no distribution");
        assert!(!stage.judge(2, &noul(1.0)).0, "no such question");
    }

    #[test]
    fn stage_without_thresholds_accepts_every_decision() {
        let all = CascadeStage { accept: None, ..stage(&[]) };
        let unscored = AnswerValue::Choice { chosen: 1, probabilities: None, confidence: None };
        assert_eq!(all.judge(0, &unscored), (true, None));
        for undecided in [
            AnswerValue::Refusal,
            AnswerValue::Box,
            AnswerValue::Score { score: 1.0, probabilities: None, confidence: None },
        ] {
            assert_eq!(all.judge(0, &undecided), (false, None), "{undecided:?}");
            assert!(!stage(&[&[]]).judge(0, &undecided).0);
        }
    }
}
