//! The cost of a cascade: a first model answers, and a last model receives the questions that are not accepted.

use super::{Probability, Proportion};

/// A request that both models answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CascadeRequest {
    /// The tokens of the state, which each stage receives.
    pub state_tokens: u64,
    /// The questions.
    pub questions: Vec<CascadeQuestion>,
}

/// A question with the answers of both models.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CascadeQuestion {
    /// The tokens of the question.
    pub tokens: u64,
    /// The score of the first model's answer.
    pub score: Option<Probability>,
    /// The tested threshold of such answers.
    pub tested: Option<Probability>,
    /// True if the first model is wrong.
    pub is_error_of_first: bool,
    /// True if the last model is wrong.
    pub is_error_of_last: bool,
}

impl CascadeQuestion {
    /// Returns true if the threshold accepts the first model's answer; `None` accepts none.
    pub fn is_accepted_at(&self, threshold: Option<Probability>) -> bool {
        self.score.zip(threshold).is_some_and(|(score, threshold)| score >= threshold)
    }
}

named_enum! {
    /// The questions that the last model receives of a request with a question that is not accepted.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum EscalatedQuestions {
        /// Those that are not accepted: its provider answers each question by itself.
        Open = "open",
        /// All of the request.
        All = "all",
    }
}

/// The price of a token of the first model divided by that of the last model.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd)]
pub struct PriceRatio(f64);

impl PriceRatio {
    /// Checks a ratio. `None` for a number that is negative or not finite.
    pub fn new(ratio: f64) -> Option<Self> {
        (ratio.is_finite() && ratio >= 0.0).then_some(Self(ratio))
    }
}

/// The prediction for a cascade at a threshold.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CascadePrediction {
    /// The questions that the first model's answer decides.
    pub accepted: Proportion,
    /// The requests with a question for the last model.
    pub escalated: Proportion,
    /// The errors of the deciding answers.
    pub risk: Proportion,
    /// The cost relative to the last model alone; `None` without tokens.
    pub relative_cost: Option<f64>,
}

/// Predicts accepted questions, errors and cost, if `accepts` decides about the first model's answers. The last model
/// receives the state and the open questions of a request, or all:
/// `relative cost = price ratio + tokens that it receives / all tokens`. Both models count tokens alike, and output
/// tokens are free.
pub fn predict_cascade(
    requests: &[CascadeRequest],
    ratio: PriceRatio,
    received: EscalatedQuestions,
    accepts: impl Fn(&CascadeQuestion) -> bool,
) -> CascadePrediction {
    let nothing = Proportion { count: 0, total: 0 };
    let (mut accepted, mut escalated, mut risk) = (nothing, nothing, nothing);
    let (mut tokens, mut escalated_tokens) = (0_u128, 0_u128);
    for request in requests {
        let mut request_tokens = u128::from(request.state_tokens);
        let mut open_tokens = request_tokens;
        let mut has_escalation = false;
        for question in &request.questions {
            let is_accepted = accepts(question);
            let is_error = if is_accepted { question.is_error_of_first } else { question.is_error_of_last };
            accepted = accepted.add(usize::from(is_accepted), 1);
            risk = risk.add(usize::from(is_error), 1);
            request_tokens += u128::from(question.tokens);
            if !is_accepted {
                has_escalation = true;
                open_tokens += u128::from(question.tokens);
            }
        }
        tokens += request_tokens;
        escalated = escalated.add(usize::from(has_escalation), 1);
        if has_escalation {
            escalated_tokens += match received {
                EscalatedQuestions::Open => open_tokens,
                EscalatedQuestions::All => request_tokens,
            };
        }
    }
    #[expect(clippy::cast_precision_loss, reason = "a ratio is printed with a few digits")]
    let relative_cost = (tokens > 0).then(|| ratio.0 + escalated_tokens as f64 / tokens as f64);
    CascadePrediction { accepted, escalated, risk, relative_cost }
}
