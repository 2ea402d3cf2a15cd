//! Models whose accuracy at each score is known.

use domain::statistics::{Draws, LabelledAnswer, Probability};

/// Scores have two decimals: 0.50, 0.51, … 1.
const SCORES: std::ops::RangeInclusive<u8> = 50..=100;

/// The scores are 0.5 + 0.5 Beta(2.2, 1), rounded.
const SHAPE: f64 = 2.2;

/// The accuracy of a model at each score.
#[derive(Clone, Copy)]
pub struct Scenario {
    pub name: &'static str,
    accuracy_at: fn(f64) -> f64,
}

impl PartialEq for Scenario {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

pub const CALIBRATED: Scenario = Scenario { name: "calibrated", accuracy_at: |score| logistic(1.0, 0.0, score) };
pub const UNDERCONFIDENT: Scenario =
    Scenario { name: "underconfident", accuracy_at: |score| logistic(1.8, 0.0, score) };
pub const LEANING: Scenario = Scenario { name: "leaning", accuracy_at: |score| logistic(1.0, -0.7, score) };
pub const CONSTANT: Scenario = Scenario { name: "constant 0.895", accuracy_at: |_| 0.895 };

pub const SCENARIOS: [Scenario; 6] = [
    CALIBRATED,
    Scenario { name: "overconfident", accuracy_at: |score| logistic(0.6, 0.0, score) },
    UNDERCONFIDENT,
    LEANING,
    CONSTANT,
    Scenario { name: "overconfident at the top", accuracy_at: |score| if score >= 0.97 { 0.8 } else { score } },
];

/// Returns sigmoid(slope logit(score) + shift).
fn logistic(slope: f64, shift: f64, score: f64) -> f64 {
    let odds = score / (1.0 - score);
    1.0 / (1.0 + (-slope * odds.ln() - shift).exp())
}

/// The true figures of a threshold.
#[derive(Clone, Copy, Default)]
pub struct Truth {
    pub coverage: f64,
    pub risk: f64,
}

impl Scenario {
    /// Draws an answer with its label.
    pub fn draw(&self, draws: &mut Draws) -> LabelledAnswer {
        let score = draw_score(draws);
        let is_error = draws.next_number() >= (self.accuracy_at)(score);
        LabelledAnswer { score: Probability::new(score).ok(), is_error }
    }

    /// Draws an answer that its user labels: right answers are confirmed twice as often as wrong ones.
    pub fn draw_volunteered(&self, draws: &mut Draws) -> LabelledAnswer {
        loop {
            let answer = self.draw(draws);
            if !answer.is_error || draws.next_number() < 0.5 {
                return answer;
            }
        }
    }

    /// Returns coverage and risk of a threshold.
    pub fn truth_at(&self, threshold: Probability) -> Truth {
        let (mut coverage, mut errors) = (0.0, 0.0);
        for hundredths in SCORES.rev() {
            let score = f64::from(hundredths) / 100.0;
            if score < threshold.get() {
                break;
            }
            let mass = distribution(score + 0.005) - distribution(score - 0.005);
            coverage += mass;
            errors += mass * (1.0 - (self.accuracy_at)(score));
        }
        Truth { coverage, risk: if coverage > 0.0 { errors / coverage } else { 0.0 } }
    }

    /// Returns the largest coverage of a threshold with this risk, and 0 if none has it.
    pub fn oracle_coverage(&self, alpha: f64) -> f64 {
        let thresholds = SCORES.filter_map(|hundredths| Probability::new(f64::from(hundredths) / 100.0).ok());
        let truths = thresholds.map(|threshold| self.truth_at(threshold));
        truths.filter(|truth| truth.risk <= alpha).map(|truth| truth.coverage).fold(0.0, f64::max)
    }
}

/// Draws a score.
pub fn draw_score(draws: &mut Draws) -> f64 {
    ((0.5 + 0.5 * draws.next_number().powf(1.0 / SHAPE)) * 100.0).round() / 100.0
}

/// Returns the share of scores below a number.
fn distribution(score: f64) -> f64 {
    (2.0 * score - 1.0).clamp(0.0, 1.0).powf(SHAPE)
}
