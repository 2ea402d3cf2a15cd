//! Cascades whose predicted cost is compared with the bill of their calls.

use std::error::Error;

use domain::statistics::{
    CascadeQuestion, CascadeRequest, Draws, EscalatedQuestions, PriceRatio, Probability, predict_cascade,
};

use super::scenario::CALIBRATED;

/// Requests of a prediction, and of a bill.
const REQUESTS: usize = 40_000;

/// About 80 % of the calibrated scores are above.
const THRESHOLD: f64 = 0.75;

/// Mean tokens of a state, and of a question.
const STATE_TOKENS: f64 = 500.0;
const QUESTION_TOKENS: f64 = 50.0;

/// A cascade of two models.
pub struct Cascade {
    pub questions: usize,
    /// Prices per token in picodollars.
    pub prices: [u64; 2],
}

pub const CASCADES: [Cascade; 3] = [
    Cascade { questions: 1, prices: [4_200, 42_000] },
    Cascade { questions: 5, prices: [4_200, 42_000] },
    Cascade { questions: 5, prices: [17_640, 42_000] },
];

/// The predicted and the measured cost, relative to the last model alone.
pub struct Costs {
    pub accepted: f64,
    pub predicted: f64,
    pub measured: f64,
}

impl Cascade {
    /// Returns the ratio of the prices.
    pub fn price_ratio(&self) -> f64 {
        self.prices[0] as f64 / self.prices[1] as f64
    }

    /// Predicts the cost from some requests and adds up the bill of others.
    pub fn simulate(&self, draws: &mut Draws) -> Result<Costs, Box<dyn Error>> {
        let threshold = Probability::new(THRESHOLD)?;
        let ratio = PriceRatio::new(self.price_ratio()).ok_or("the prices have no ratio")?;
        let labelled: Vec<_> = (0..REQUESTS).map(|_| self.draw(draws)).collect();
        let accepts = |question: &CascadeQuestion| question.is_accepted_at(Some(threshold));
        let prediction = predict_cascade(&labelled, ratio, EscalatedQuestions::Open, accepts);
        let (mut cascade, mut alone) = (0, 0);
        for _ in 0..REQUESTS {
            let request = self.draw(draws);
            let (first, last) = calls(&request, threshold);
            cascade += first * self.prices[0] + last.unwrap_or_default() * self.prices[1];
            // The last model alone would receive the same tokens as the first stage.
            alone += first * self.prices[1];
        }
        Ok(Costs {
            accepted: prediction.accepted.share().ok_or("there are no questions")?,
            predicted: prediction.relative_cost.ok_or("there are no tokens")?,
            measured: cascade as f64 / alone as f64,
        })
    }

    fn draw(&self, draws: &mut Draws) -> CascadeRequest {
        let state_tokens = draw_tokens(STATE_TOKENS, draws);
        let questions = (0..self.questions).map(|_| {
            let answer = CALIBRATED.draw(draws);
            CascadeQuestion {
                tokens: draw_tokens(QUESTION_TOKENS, draws),
                score: answer.score,
                tested: None,
                is_error_of_first: answer.is_error,
                is_error_of_last: draws.next_number() < 0.02,
            }
        });
        CascadeRequest { state_tokens, questions: questions.collect() }
    }
}

/// Returns the tokens of the call to the first model, and of that to the last one if it is made.
fn calls(request: &CascadeRequest, threshold: Probability) -> (u64, Option<u64>) {
    let first = request.state_tokens + request.questions.iter().map(|question| question.tokens).sum::<u64>();
    let escalated = request.questions.iter().filter(|question| question.score < Some(threshold));
    let tokens: Vec<u64> = escalated.map(|question| question.tokens).collect();
    let last = (!tokens.is_empty()).then(|| request.state_tokens + tokens.iter().sum::<u64>());
    (first, last)
}

/// Draws from half of the mean to one and a half.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a small positive number")]
fn draw_tokens(mean: f64, draws: &mut Draws) -> u64 {
    (mean * (0.5 + draws.next_number())).round() as u64
}
